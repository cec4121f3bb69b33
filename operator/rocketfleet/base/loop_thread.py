"""An event loop in a daemon thread of its own, for code that has none: the blocking producer, the facade, the control
port, Spark's tasks.

Closing it is the hard part. A loop that is closed while a task still waits leaves a coroutine that nobody ever ends: it
is thrown away later, wherever the garbage collector runs, and what it does then fails because its loop is gone. So the
loop ends as `asyncio.run` ends: every task is cancelled and awaited before the loop is closed.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """A running loop; `close` ends it. Made, used and closed from any other thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in this thread, where waiting for the loop would never end."""
        return threading.current_thread() is self._thread

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Begin something on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the loop and wait for it."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # interrupted: nobody waits for it any longer
            raise

    def close(self) -> None:
        """Cancel what is still running, wait until it has ended, and end the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            # A task may start others while it ends: a connection being accepted, a `finally` that says goodbye.
            while tasks := asyncio.all_tasks(self.loop):
                for task in tasks:
                    task.cancel()
                self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()  # does not wait for functions in threads: one that hangs would hang whoever closes
