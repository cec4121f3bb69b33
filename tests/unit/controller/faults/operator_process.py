"""The real operator (view, backend, work queue, passes, reconciler, client) in a `World`, short of sockets and kopf.

It begins with a list, is told of changes a moment later, and may be killed at any point, after which nothing that it
still wants to do has any effect. `Faults` decides what becomes of each of its requests, and of each thing that a watch
tells; the default is that all goes well.
"""

import asyncio
import contextlib
import itertools
import logging
from dataclasses import dataclass, replace
from typing import Any, Self

import aiohttp
from tests.unit.controller.faults.api_server import GROUPS, Asked, Change, LocalClient, Object, Refused, refusal
from tests.unit.controller.faults.pods import Process
from tests.unit.controller.faults.rocketmq import LocalRemoting, broker_at
from tests.unit.controller.faults.world import TICK, World, now

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.client.client import Client
from rocketfleet.client.errors import ConnectError, RequestTimeout
from rocketfleet.control.http_call import CallFailed, Credential
from rocketfleet.control.messages import Assignment, DrainOutcome
from rocketfleet.controller.kube.api import KubeApi
from rocketfleet.controller.kube.backend import KubeBackend
from rocketfleet.controller.kube.pace import CallRate
from rocketfleet.controller.kube.view import KubeView
from rocketfleet.controller.operator.group_pass import RESYNC, GroupPass
from rocketfleet.controller.reconciling.backend import BackendError
from rocketfleet.controller.reconciling.reconcile import Reconciler
from rocketfleet.controller.reconciling.work_queue import Requeue, WorkQueue
from rocketfleet.controller.reconciling.worker_calls import WorkerCalls
from rocketfleet.controller.resources.pod import Defaults
from rocketfleet.controller.rocketmq.brokers import BrokerClients
from rocketfleet.wire.command import Command

LATENCY = 0.02  # seconds until a watch tells
ANSWERS = 0.001  # seconds that any call takes
PATIENCE = 75.0  # seconds without a write after which a group that is not at rest is waiting for something
DEFAULTS = Defaults("registry.example/worker:1")
KEY = GroupKey("default", "orders")
WATCHED = (GROUPS, "pods", "poddisruptionbudgets")
_addresses = itertools.count(1)


@dataclass(frozen=True)
class Verdict:
    """What becomes of a request. `status` 0: no answer. `done`: it has its effect all the same."""

    status: int = 200
    done: bool = True
    reason: str = ""
    retry_after: str | None = None
    as_of: int | None = None  # a read is answered from the state at this version


WELL = Verdict()


class Faults:
    """Nothing goes wrong."""

    def api(self, asked: Asked) -> Verdict:
        return WELL

    def broker(self, broker: str, command: Command) -> Verdict:
        return WELL

    def worker(self, address: str, path: str) -> bool:
        """Whether a control port answers."""
        return True

    def told(self, number: int, change: Change) -> float | None:
        """After how many seconds a watch tells of a change; None: never."""
        return LATENCY


class _Calls(WorkerCalls):
    """Calls to control ports, without a socket."""

    def __init__(self, process: "OperatorProcess") -> None:
        super().__init__(now)
        self._process = process

    async def _at(self, address: str, path: str) -> Process:
        await asyncio.sleep(ANSWERS)
        one = self._process.world.pods.at(address)
        if one is None or not self._process.alive or not self._process.faults.worker(address, path):
            raise CallFailed(f"{address} does not answer")
        return one

    async def assignment(self, address: str, token: Credential, limit: float = 2.0) -> Assignment:
        one = await self._at(address, "/assignment")
        return self._process.world.pods.report(one)

    async def rebalance(self, address: str, token: Credential, limit: float = 20.0) -> None:
        await self._at(address, "/rebalance")

    async def drain(self, address: str, token: Credential, limit: float) -> DrainOutcome:
        one = await self._at(address, "/drain")
        self._process.world.pods.drain(one)
        over = now() + limit
        while one.outcome is None:
            await asyncio.sleep(TICK)
            if now() > over or one.crashed_at is not None or one.uid not in self._process.world.pods.processes:
                raise CallFailed(f"{address} did not answer in time")
        if not self._process.alive:
            raise CallFailed("the operator is dead")
        return one.outcome


class Alarms(logging.Handler):
    """What the operator logs with a traceback: an exception that nobody foresaw."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[0] is not None:
            self.found.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


class OperatorProcess:
    """One operator, from its first list to its death."""

    def __init__(self, world: World, faults: Faults | None = None) -> None:
        self.world, self.faults = world, faults or Faults()
        self.alive = True
        self.again: dict[GroupKey, Requeue | None] = {}
        self.passes = 0
        self.news = 0  # changes that the watch was to tell so far
        self.untold = 0  # those of them that are on their way
        self.fresh: list[bool] = []  # whether each was news to the view
        self._tasks: list[asyncio.Task[Any]] = []
        clock = now
        self.api = KubeApi(LocalClient(self._reach_api), pace=CallRate(clock=clock))  # type: ignore[arg-type] # what it uses of it
        self.view = KubeView(self.api)
        self.backend = KubeBackend(
            self.api, self.view, DEFAULTS, instance="test", clock=clock, wall=clock, lost=self._look_again
        )
        self.brokers = BrokerClients(
            lambda config: Client(
                replace(config, client_id=f"10.4.0.{next(_addresses)}@operator"),  # each has an address of its own
                clock=clock,
                remoting=lambda given: LocalRemoting(given, clock, self._reach_broker),
            )
        )
        self.group_pass = GroupPass(self.view, self.backend, lambda: self.alive, clock)
        self.queue: WorkQueue[GroupKey] = WorkQueue(
            self._work, 4, clock=clock, random=lambda: 0.0, foreseen=(BackendError,)
        )
        self.reconciler = Reconciler(
            self.backend,
            self.brokers,
            workers=_Calls(self),
            defaults=DEFAULTS,
            wake=self.queue.wake,
            clock=clock,
            ticks=clock,
        )
        self.group_pass.begin_term(self.reconciler)  # type: ignore[arg-type] # as much of a term as a pass uses

    async def _work(self, key: GroupKey) -> Requeue | None:
        self.passes += 1
        again = await self.group_pass(key)
        self.again[key] = again
        return again

    # -- its life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        while True:
            try:
                await self.view.sync()
                break
            except BackendError:
                await asyncio.sleep(2.0)
        listed = min(cache._listed.get(None, 0) for cache in (self.view.groups, self.view.pods, self.view.budgets))
        self._tasks = [asyncio.create_task(self._watch(listed)), asyncio.create_task(self.queue.run())]
        for key in self.view.keys():  # noqa: SIM118 - a method of the view
            self.queue.wake(key)
        self.queue.open()

    async def _watch(self, position: int) -> None:
        """In place of kopf: each change some time after it was made."""
        server, loop = self.world.server, asyncio.get_running_loop()
        place = next((n for n, change in enumerate(server.log) if change.version > position), len(server.log))
        while True:
            while place < len(server.log):
                change = server.log[place]
                place += 1
                if change.key[0] in WATCHED:
                    after = self.faults.told(self.news, change)
                    self.news += 1
                    if after is not None:
                        self.untold += 1
                        loop.call_later(after, self._tell, change)
            await asyncio.sleep(LATENCY)

    def _tell(self, change: Change) -> None:
        self.untold -= 1
        if not self.alive:
            return
        saw = dict(zip(WATCHED, (self.view.saw_group, self.view.saw_pod, self.view.saw_budget), strict=True))
        key = saw[change.key[0]](change.kind, change.body)
        self.fresh.append(key is not None)
        if key is not None:
            self.queue.wake(key)

    def _look_again(self) -> None:
        """The lists are read again a moment later."""

        async def later() -> None:
            await asyncio.sleep(1.0)
            with contextlib.suppress(BackendError):
                await self.relist()

        self._tasks.append(asyncio.create_task(later()))

    async def relist(self) -> None:
        """Read the lists again, as after a watch that was interrupted."""
        for key in await self.view.sync():
            self.queue.wake(key)

    async def kill(self) -> None:
        """From here on nothing that it does has an effect."""
        self.alive = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.queue.close(0.0)
        await self.reconciler.close()
        await self.brokers.close()
        self.backend.close()

    # -- its requests -------------------------------------------------------------------------------------------------

    async def _reach_api(self, asked: Asked, timeout: float) -> tuple[int, dict[str, str], Object]:
        await asyncio.sleep(ANSWERS)
        if not self.alive:
            raise aiohttp.ClientError("the operator is dead")
        verdict = self.faults.api(asked)
        if not verdict.done and verdict.status:
            return refusal(Refused(verdict.status, verdict.reason, retry_after=verdict.retry_after))
        try:
            answer = self.world.do_api(asked, verdict.as_of) if verdict.done else {}
        except Refused as refused:
            if verdict.status:
                return refusal(refused)
            answer = {}
        if not self.alive:
            raise aiohttp.ClientError("the operator is dead")
        if not verdict.status:
            await asyncio.sleep(timeout)
            raise TimeoutError
        if verdict.status != 200:
            return refusal(Refused(verdict.status, verdict.reason, retry_after=verdict.retry_after))
        return 200, {}, answer

    async def _reach_broker(self, address: str, command: Command) -> Command:
        broker = broker_at(address)
        await asyncio.sleep(ANSWERS)
        if not self.alive or broker in self.world.mq.away:
            raise ConnectError(address, "nobody is there")
        verdict = self.faults.broker(broker, command)
        answer = self.world.do_broker(broker, command) if verdict.done else None
        if not self.alive:
            raise ConnectError(address, "the operator is dead")
        if verdict.status != 200 or answer is None:
            await asyncio.sleep(3.0)
            raise RequestTimeout(address, command.code, 3.0)
        return answer


class Run:
    """A world that lives, with an operator. `async with Run(world) as run:`"""

    def __init__(self, world: World, faults: Faults | None = None) -> None:
        self.world = world
        self.operator = OperatorProcess(world, faults)
        self._life: asyncio.Task[None] | None = None
        self.alarms = Alarms()
        self.passes = 0

    async def __aenter__(self) -> Self:
        logging.getLogger("rocketfleet").addHandler(self.alarms)
        self._life = asyncio.create_task(self.world.live())
        await self.operator.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.operator.kill()
        assert self._life is not None
        self._life.cancel()
        await asyncio.gather(self._life, return_exceptions=True)
        logging.getLogger("rocketfleet").removeHandler(self.alarms)
        self.world.wrongs += self.alarms.found

    async def restart(self, after: float = 0.5, faults: Faults | None = None) -> None:
        """Kill the operator; another one begins."""
        await self.operator.kill()
        self.passes += self.operator.passes
        await asyncio.sleep(after)
        self.operator = OperatorProcess(self.world, faults or self.operator.faults)
        await self.operator.start()

    async def settle(self, limit: float = 900.0) -> None:
        """Wait until nothing happens any more."""
        over, since, version = now() + limit, now(), (-1, -1)
        while now() < over:
            await asyncio.sleep(1.0)
            moved = (self.world.server.version, len(self.world.writes))
            if moved != version or self.world.pods.restless or self.operator.untold:
                version, since = moved, now()
                continue
            again = self.operator.again.get(KEY, Requeue(0.0))
            rests = again is None or again.after >= RESYNC
            if (rests and now() - since >= 2.0) or now() - since >= PATIENCE:
                return
        self.world.wrongs.append(f"it does not come to rest within {limit:g} s")
