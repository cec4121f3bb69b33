"""A consumer as a whole program: started, kept running until Ctrl-C or SIGTERM, and stopped as it must be.

Ctrl-C on its own would be a KeyboardInterrupt in the middle of whatever runs: handlers cut off, offsets not committed,
locks not released. So a signal asks for a stop, which drains, and a second one asks again, which hurries.
"""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def until_signalled(
    start: Callable[[], Awaitable[object]],
    stop: Callable[[], Coroutine[Any, Any, T]],
    closed: Callable[[], Awaitable[object]],
) -> T:
    """Run in an event loop of its own: `start`, wait for `closed`, which a signal brings about by `stop`.

    Returns what `stop` returns; so `stop` may be called several times.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("run() is for the main thread, which signals go to: elsewhere, use `async with`")
    if _in_event_loop():
        raise RuntimeError("run() makes an event loop of its own, and there is one already: use `async with`")
    return asyncio.run(_run(start, stop, closed))


async def _run(
    start: Callable[[], Awaitable[object]],
    stop: Callable[[], Coroutine[Any, Any, T]],
    closed: Callable[[], Awaitable[object]],
) -> T:
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[T]] = []  # a task that nobody holds may vanish
    for number in SIGNALS:
        loop.add_signal_handler(number, lambda: stopping.append(loop.create_task(stop())))
    await start()
    await closed()
    return await stop()


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
