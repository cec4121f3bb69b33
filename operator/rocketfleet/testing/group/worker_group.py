"""A consumer group of real worker processes on a development broker, in the hands of a test.

    group = worker_group("orders.handlers:on_order")
    group.start(2)
    group.begin_traffic(rate=100)
    group.kill()
    assert group.verdict().ok

Handlers run in processes of their own, as they do in pods, so that they can be killed; what they handled is recorded
around them, from outside. `verdict` waits until the group has worked everything off, or cannot, and compares the record
with what Rocketfleet promises.
"""

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rocketfleet.base.counting import counted
from rocketfleet.base.loop_thread import LoopThread
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.devbroker.fleet import Fleet
from rocketfleet.devbroker.topics import create_group, create_topic
from rocketfleet.testing.checker.check import check
from rocketfleet.testing.checker.history_verdict import HistoryVerdict
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.group.group_sight import GroupSight
from rocketfleet.testing.group.group_traffic import Body, GroupTraffic
from rocketfleet.testing.group.handler_place import HandlerPlace
from rocketfleet.testing.group.worker_under_test import WorkerUnderTest
from rocketfleet.testing.history import EventHistory, EventKind, FaultName, HandlingOutcome, Recorder, read
from rocketfleet.wire.message import Message

_LOOK_SECONDS = 0.1
_numbers = itertools.count(1)
_AT_LEISURE = Promises(
    commit_seconds=5.0,
    owned_after_handover=20.0,
    owned_after_kill=25.0,
    owned_after_broker=30.0,
    owned_after_growth=60.0,
)
"""A test of a handler is no test of how fast a queue is taken over on a machine with other things to do."""


class WorkerGroup:
    """See the module. Use `close` when it is done; the fixture `worker_group` does."""

    def __init__(
        self,
        fleet: Fleet,
        handler: Callable[[Any], Any] | str,
        directory: Path,
        *,
        path: Path | str | None = None,
        orderly: bool = False,
        queues: int = 4,
        key: Callable[[Message], str] | None = None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._place = HandlerPlace.of(handler, path)
        unique = f"{os.getpid()}-{next(_numbers)}"
        self.topic, self.group = f"test-{unique}", f"test-group-{unique}"
        self._orderly = orderly
        self._directory = directory
        self._records = directory / "records"
        self._records.mkdir(parents=True)
        create_topic(fleet, self.topic, queues, order=orderly)
        create_group(fleet, self.group, consumeMessageOrderly=orderly)
        self._name_server = fleet.name_server
        self._arguments = tuple(arguments)
        self._environment = dict(environment or {})
        self._recorder = Recorder(self._records / "test.jsonl", "test")
        self.workers: list[WorkerUnderTest] = []
        self._traffic = GroupTraffic(self._name_server, self.topic, self._recorder, key)
        self._loop = LoopThread(f"look at {self.group}")
        self._client = Client(ClientConfig(self._name_server))
        self._sight = GroupSight(
            self._client, self.group, self.topic, self._recorder, lambda: [one for one in self.workers if one.answers]
        )
        self._loop.call(self._begin_to_look())

    async def _begin_to_look(self) -> None:
        self._client.start()
        self._looking = asyncio.get_running_loop().create_task(self._sight.look_for_ever(), name="look")

    # -- workers ------------------------------------------------------------------------------------------------------

    def start(self, count: int = 1, timeout: float = 90.0) -> list[WorkerUnderTest]:
        """Start so many more workers, and wait until they have joined. Fails with the log of one that ends."""
        started = []
        for _ in range(count):
            name = f"{self.group}-w{len(self.workers) + 1}"
            worker = WorkerUnderTest(
                name, self._arguments_of_all, self._environment_of(name), self._directory, self._recorder
            )
            started.append(worker)
            self.workers.append(worker)
        for worker in started:
            self.until(
                lambda worker=worker: self._loop.call(worker.is_ready()),  # type: ignore[misc]  # a default, not an argument
                f"{worker.name} is ready",
                timeout,
            )
            worker.joined()
        return started

    @property
    def _arguments_of_all(self) -> list[str]:
        settings = {
            "handler": "rocketfleet.testing.group.recorded_worker:handle",
            "group": self.group,
            "topic": self.topic,
            "name-server": self._name_server,
            "consume-from-where": "FirstOffset",
            "consume-mode": "Orderly" if self._orderly else "Concurrent",
        }
        return [*(part for name, value in settings.items() for part in (f"--{name}", value)), *self._arguments]

    def _environment_of(self, name: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("ROCKETFLEET_")}
        return {**inherited, **self._place.variables(self._records / f"{name}.jsonl", name), **self._environment}

    @property
    def alive(self) -> list[WorkerUnderTest]:
        """The workers that run, the oldest first."""
        return [worker for worker in self.workers if worker.alive]

    def _oldest(self) -> WorkerUnderTest:
        if not self.alive:
            raise ValueError("no worker runs: start one")
        return self.alive[0]

    def kill(self, worker: WorkerUnderTest | None = None) -> WorkerUnderTest:
        """Kill a worker, or the oldest, wherever it is; returns it."""
        worker = worker or self._oldest()
        worker.kill()
        return worker

    def kill_inside_handler(self, worker: WorkerUnderTest | None = None, timeout: float = 30.0) -> WorkerUnderTest:
        """Kill a worker, or the oldest, while it has a message in its handler."""
        worker = worker or self._oldest()
        record = self._records / f"{worker.name}.jsonl"

        def is_inside() -> bool:
            # A process that is stopped leaves its handler in peace while we read what it wrote.
            with worker.stopped():
                history = read([record]) if record.exists() else EventHistory(())
                inside = len(history.kind(EventKind.BEGIN)) > len(history.kind(EventKind.END))
                if inside:
                    worker.kill()
            return inside

        self.until(is_inside, f"{worker.name} is inside its handler", timeout, every=0.005)
        return worker

    def freeze(self, worker: WorkerUnderTest | None = None) -> WorkerUnderTest:
        """Stop a worker, or the oldest, as a paused machine does, until its `thaw`; returns it."""
        worker = worker or self._oldest()
        worker.freeze()
        return worker

    def leave(self, worker: WorkerUnderTest | None = None) -> WorkerUnderTest:
        """Have a worker, or the oldest, drain and end; returns it."""
        worker = worker or self._oldest()
        worker.leave()
        return worker

    @contextmanager
    def fault(self, name: FaultName, target: str) -> Iterator[None]:
        """Write down a fault that the test makes itself: enter before it, leave when it is healed."""
        self._recorder.note(EventKind.FAULT, name=name.value, target=target)
        try:
            yield
        finally:
            self._recorder.note(EventKind.HEALED, name=name.value, target=target)

    # -- traffic ------------------------------------------------------------------------------------------------------

    def send(self, bodies: Iterable[Body]) -> None:
        """Send these, and return when all are acknowledged."""
        self._traffic.send(bodies)

    def begin_traffic(self, bodies: Iterable[Body] | None = None, *, rate: float = 50.0) -> None:
        """Send so many per second from now on, beside what the test does; without `bodies`, numbers."""
        self._traffic.begin((f"{number}" for number in itertools.count()) if bodies is None else bodies, rate)

    def stop_traffic(self) -> None:
        """Send nothing more."""
        self._traffic.stop()

    # -- what happened ------------------------------------------------------------------------------------------------

    @property
    def history(self) -> EventHistory:
        """What was written down so far."""
        return read([self._records])

    @property
    def handled(self) -> int:
        """How many messages were handled successfully so far."""
        return len(_succeeded(self.history))

    def until_handled(self, count: int, timeout: float = 60.0) -> None:
        """Wait until so many messages were handled successfully."""
        self.until(lambda: self.handled >= count, f"{counted(count)} handled", timeout)

    def until(
        self, holds: Callable[[], bool], what: str, timeout: float = 60.0, *, every: float = _LOOK_SECONDS
    ) -> None:
        """Wait for something. A worker that ends by itself, and the end of the time, are failures of the test."""
        deadline = time.monotonic() + timeout
        while not holds():
            for worker in self.workers:
                worker.check()
            if time.monotonic() > deadline:
                raise AssertionError(f"after {timeout:g} s still not so: {what}")
            time.sleep(every)

    def verdict(self, timeout: float = 60.0, promises: Promises | None = None) -> HistoryVerdict:
        """End the traffic, let the group work off what is there for at most `timeout` seconds, and judge.

        A message that the handler never manages is a finding then: `lost`, or `stuck` if nobody has sent it back.
        Without `promises` there is more time for everything than Rocketfleet promises, for the test's machine may be
        busy; whether the group is orderly is known.
        """
        self.stop_traffic()
        deadline = time.monotonic() + timeout
        while self.alive and time.monotonic() < deadline and not self._is_done():
            for worker in self.workers:
                worker.check()
            time.sleep(_LOOK_SECONDS)
        self._recorder.note(EventKind.END_OF_RUN)
        return check(self.history, replace(promises or _AT_LEISURE, orderly=self._orderly))

    def _is_done(self) -> bool:
        history = self.history
        sent = {event.message for event in history.kind(EventKind.SENT)}
        return sent <= _succeeded(history) and self._loop.call(self._sight.behind()) == 0

    def close(self) -> None:
        """End everything, however it is."""
        for worker in self.workers:
            worker.end()
        self._traffic.close()
        self._loop.call(self._stop_looking())
        self._loop.close()
        self._recorder.close()

    async def _stop_looking(self) -> None:
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)
        await self._client.close()


def _succeeded(history: EventHistory) -> set[str]:
    return {
        event.message
        for event in history.kind(EventKind.END)
        if event.details.get("outcome") == HandlingOutcome.SUCCESS
    }
