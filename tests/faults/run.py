"""One run: a group is set up, its schedule is played under traffic, it settles, and what happened is judged.

    brokers → topic → members own all queues → [faults, one task each, at their times] → traffic ends → all is
    committed (or time is up) → members leave → verdict

Whatever happens, members and brokers are ended by process id at the end of a run.
"""

import asyncio
import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.brokers import Brokers, FaultFleet, masters_of
from tests.faults.clocks import MemberClocks
from tests.faults.fault import Fault
from tests.faults.faults_by_kind import FAULTS
from tests.faults.faults_members import MemberLeaves
from tests.faults.manifest import ManifestRun
from tests.faults.members import Members
from tests.faults.network import MemberNetworks, NetworkError
from tests.faults.observer import Observer
from tests.faults.scene import RunScene, Say, TopicLayout
from tests.faults.schedule import ALL_MEMBERS, FaultFamily, FaultKind, FaultSchedule, TimedFault
from tests.faults.traffic import Traffic
from tests.faults.verdict import RunVerdict, expected, judge_run, succeeded

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.requests import broker_topics
from rocketfleet.control import exit_codes
from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.testing.history import ChangeName, EventKind, FaultName, Recorder, read
from rocketfleet.wire.bodies import TopicConfig

START_SECONDS = 60.0
SETTLE_SECONDS = 180.0
QUIET_SECONDS = 45.0  # all is committed, and nothing has been handled for so long: what is missing does not come
PROGRESS_SECONDS = 10.0
RESTART_SECONDS = 1.0
REPLICATION_SECONDS = 12.0
WATCH_SECONDS = 0.1
STANDSTILL_SECONDS = 0.7
_numbers = itertools.count(1)


class RunFailedError(Exception):
    """The harness could not do its work: no verdict about the product."""


@dataclass
class RunOptions:
    """What is not in the schedule."""

    package: Path | None = None
    keep: bool = False  # the directory, also when all is well
    settle_seconds: float = SETTLE_SECONDS


@dataclass
class FaultRun:
    """One run in a directory of its own."""

    schedule: FaultSchedule
    brokers: Brokers
    directory: Path
    say: Say
    options: RunOptions = field(default_factory=RunOptions)

    async def play(self) -> RunVerdict:
        """All of it. The directory is removed if nothing was found."""
        began = time.monotonic()
        self.directory.mkdir(parents=True)
        (self.directory / "schedule.json").write_text(self.schedule.to_json())
        self.say(f"seed {self.schedule.seed}, {self.schedule.mode}, {self.schedule.duration:g} s: starting brokers")
        fleet = await asyncio.to_thread(self.brokers.fleet_for, self.schedule.stage)
        verdict = await self._on(fleet)
        verdict.seconds = time.monotonic() - began
        (self.directory / "verdict.txt").write_text(f"{verdict}\n")
        if not verdict.findings and not self.options.keep:
            shutil.rmtree(self.directory, ignore_errors=True)
        return verdict

    async def _on(self, fleet: FaultFleet) -> RunVerdict:
        stage, number = self.schedule.stage, f"{os.getpid()}-{next(_numbers)}"
        topic, group = f"faults-{number}", f"faults-group-{number}"
        members = Members(
            self.directory, fleet.name_server, group, topic, self.schedule.mode, stage, package=self.options.package
        )
        networks, clocks = None, MemberClocks(self.directory)
        if FaultFamily.CLOCKS in self.schedule.families:
            members.environment = clocks.environment
        if FaultFamily.NETWORK in self.schedule.families:
            networks = MemberNetworks([n for port in fleet.known().ports.values() for n in (port, port - 2)])
            members.preparation = networks.preparation
        recorder = Recorder(members.records / "harness.jsonl", "harness")
        layout = TopicLayout(stage.broker_names[: stage.topic_brokers], stage.queues)
        async with contextlib.AsyncExitStack() as stack:
            if networks is not None:
                stack.callback(networks.close)
            stack.callback(members.close)
            manifest = None
            if stage.manifest:
                manifest = ManifestRun(self.directory, fleet.name_server, group, topic, self.schedule.mode, stage)
                stack.callback(manifest.close)
            client = await stack.enter_async_context(Client(ClientConfig(fleet.name_server)))
            scene = RunScene(
                self.schedule,
                self.directory,
                fleet,
                topic,
                group,
                layout,
                members,
                client,
                recorder,
                networks,
                clocks,
                manifest,
                self.say,
            )
            await self._make_topic(scene)
            observer = await stack.enter_async_context(
                Observer(fleet.name_server, topic, group, lambda: masters_of(fleet), stage.brokers, recorder)
            )
            traffic = await stack.enter_async_context(
                Traffic(fleet.name_server, topic, stage.broker_names, stage.rate, recorder)
            )
            keeper = asyncio.create_task(self._keep(scene), name="start members again")
            stack.callback(keeper.cancel)
            watch = asyncio.create_task(self._watch_machine(recorder), name="watch the machine")
            stack.callback(watch.cancel)
            await self._begin(scene, observer, traffic)
            await self._play_faults(scene, observer, traffic, keeper)
            await self._settle(scene, observer, traffic)
            keeper.cancel()
            await self._end(scene, observer)
        recorder.close()
        return judge_run(self.schedule, members.records, scene.problems)

    # -- the beginning ------------------------------------------------------------------------------------------------

    async def _make_topic(self, scene: RunScene) -> None:
        config = TopicConfig(
            topic_name=scene.topic, read_queue_nums=scene.layout.queues, write_queue_nums=scene.layout.queues
        )
        masters = await asyncio.to_thread(masters_of, scene.fleet)
        for broker in scene.layout.brokers:
            await broker_topics.create_topic(scene.client.remoting, masters[broker], config)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                route = await scene.client.routes.refresh(scene.topic)
                if {data.broker_name for data in route.queue_datas} >= set(scene.layout.brokers):
                    return
            except RocketMQError as error:
                if time.monotonic() > deadline:
                    raise RunFailedError(f"the name server does not know the topic: {error}") from error
            await asyncio.sleep(0.1)

    async def _begin(self, scene: RunScene, observer: Observer, traffic: Traffic) -> None:
        stage = scene.schedule.stage
        await traffic.send_some(3)
        if not stage.from_last_offset:
            traffic.start()
        if scene.manifest is not None:
            scene.manifest.start()
        else:
            for name in stage.member_names:
                scene.members.start(name)
        deadline = time.monotonic() + START_SECONDS
        while True:
            owners = {queue: members for queue, members in observer.owners.items() if queue.topic == scene.topic}
            if len(owners) >= stage.queues * stage.topic_brokers and all(len(them) == 1 for them in owners.values()):
                break
            if time.monotonic() > deadline:
                paths = [*scene.members.logs.glob("*.log"), *self.directory.glob("*.log")]
                logs = "\n".join(path.read_text()[-2000:] for path in paths)
                raise RunFailedError(f"the members do not own all queues after {START_SECONDS:g} s: {owners}\n{logs}")
            await asyncio.sleep(0.2)
        if stage.from_last_offset:
            scene.recorder.note(EventKind.CHANGE, what=ChangeName.GROUP_BEGAN, group=scene.group)
            traffic.start()
        if stage.slaves:
            # A slave copies topics, groups and offsets every ten seconds: killed before that, a master has no stand-in.
            await asyncio.sleep(REPLICATION_SECONDS)
        self.say(
            f"{len(stage.member_names)} members own {len(owners)} queues; {len(scene.schedule.faults)} faults follow"
        )

    # -- the faults ---------------------------------------------------------------------------------------------------

    async def _play_faults(
        self, scene: RunScene, observer: Observer, traffic: Traffic, keeper: "asyncio.Task[None]"
    ) -> None:
        began = time.monotonic()

        def now() -> float:
            return time.monotonic() - began

        async def play(timed: TimedFault) -> None:
            fault = FAULTS[timed.kind](timed, scene)
            await asyncio.sleep(timed.at - now())
            self.say(f"{now():6.1f} s  {str(timed)[10:]}")
            await self._carried_out(fault.apply, fault)
            if timed.lasts:
                await asyncio.sleep(timed.ends - now())
                await self._carried_out(fault.heal, fault)
                self.say(f"{now():6.1f} s  healed: {timed.kind} {timed.target}")

        async def progress() -> None:
            while True:
                await asyncio.sleep(PROGRESS_SECONDS)
                self.say(f"{now():6.1f} s  … {self._state(scene, observer, traffic)}")

        telling = asyncio.create_task(progress())
        playing: asyncio.Future[list[None]] = asyncio.gather(
            *(play(timed) for timed in scene.schedule.faults), asyncio.sleep(scene.schedule.duration)
        )
        try:
            everybody: set[asyncio.Future[Any]] = {playing, keeper, observer.looking}
            await asyncio.wait(everybody, return_when=asyncio.FIRST_COMPLETED)
            for task in (keeper, observer.looking):
                if task.done():
                    task.result()
            await playing
        finally:
            telling.cancel()
            playing.cancel()
            await asyncio.gather(playing, telling, return_exceptions=True)

    async def _carried_out(self, step: Callable[[], Awaitable[None]], fault: Fault) -> None:
        try:
            await step()
        except (RocketMQError, OSError, NetworkError, DevBrokerError) as error:
            raise RunFailedError(f"{fault.timed} could not be made: {error!r}") from error

    def _state(self, scene: RunScene, observer: Observer, traffic: Traffic) -> str:
        behind = sum(observer.sight.behind.values())
        silent = f", silent: {', '.join(observer.sight.silent_brokers)}" if observer.sight.silent_brokers else ""
        members = ", ".join(member.name for member in scene.members.alive)
        if scene.manifest is not None:
            members = ", ".join(client_id.partition("@")[0] for client_id, _ in scene.manifest.pods())
        return f"sent {traffic.sent}, behind {behind}{silent}; members: {members or 'none'}"

    async def _watch_machine(self, recorder: Recorder) -> None:
        """Note when the machine itself stood still: nobody can keep times that the harness cannot keep either."""
        while True:
            asleep = time.monotonic()
            await asyncio.sleep(WATCH_SECONDS)
            late = time.monotonic() - asleep - WATCH_SECONDS
            if late > STANDSTILL_SECONDS:
                self.say(f"the machine stood still for {late:.1f} s")
                recorder.note(EventKind.FAULT, name=FaultName.SLOWED, target=ALL_MEMBERS, at=asleep, why="machine")
                recorder.note(EventKind.HEALED, name=FaultName.SLOWED, target=ALL_MEMBERS)

    async def _keep(self, scene: RunScene) -> None:
        """Start again what ended by itself, as a kubelet does. One that could not join is no finding."""
        while True:
            for member in scene.members.ended_by_itself():
                self.say(f"{member.name} ended by itself with exit code {member.exit_code}: started again")
                if member.exit_code != exit_codes.NOT_JOINED:
                    scene.problems.append(f"{member.name} ended by itself with exit code {member.exit_code}")
                member.told_to_end = True
                await asyncio.sleep(RESTART_SECONDS)
                scene.members.start(member.name)
            run = scene.manifest
            if run is not None and run.ended_by_itself:
                raise RunFailedError(f"rocketfleet run ended by itself:\n{run.output.read_text()[-3000:]}")
            await asyncio.sleep(0.2)

    # -- the end ------------------------------------------------------------------------------------------------------

    async def _settle(self, scene: RunScene, observer: Observer, traffic: Traffic) -> None:
        """Until everything that was sent is handled and committed, or nothing more happens, or time is up."""
        await asyncio.to_thread(scene.fleet.mend)
        await traffic.stop()
        await asyncio.gather(*scene.tending)
        self.say(f"traffic has ended: {traffic.sent} sent, {traffic.failed} refused; waiting until all is handled")
        deadline, quiet_since, before = time.monotonic() + self.options.settle_seconds, time.monotonic(), -1
        told = time.monotonic()
        while True:
            history = await asyncio.to_thread(read, [scene.members.records])
            done = succeeded(history)
            if len(done) != before:
                before, quiet_since = len(done), time.monotonic()
            sight = observer.sight
            committed = not sight.behind and not sight.silent_brokers and sight.at > quiet_since
            missing = expected(history) - done
            if committed and self._owned_once(scene, observer):
                if not missing and time.monotonic() - quiet_since > 2.0:
                    break
                if time.monotonic() - quiet_since > QUIET_SECONDS:
                    break
            if time.monotonic() > deadline:
                self.say(
                    f"not settled after {self.options.settle_seconds:g} s: {self._state(scene, observer, traffic)}"
                )
                scene.problems.append(
                    f"the group has not settled {self.options.settle_seconds:g} s after the last fault: "
                    f"{sum(sight.behind.values())} messages are not committed, {len(missing)} not handled"
                )
                break
            if time.monotonic() - told > PROGRESS_SECONDS:
                told = time.monotonic()
                self.say(f"{len(missing)} not handled yet; {self._state(scene, observer, traffic)}")
            await asyncio.sleep(1.0)
        await observer.look(owners=True)
        scene.recorder.note(EventKind.END_OF_RUN)

    @staticmethod
    def _owned_once(scene: RunScene, observer: Observer) -> bool:
        owners = [members for queue, members in observer.owners.items() if queue.topic == scene.topic]
        return bool(owners) and all(len(members) == 1 for members in owners)

    async def _end(self, scene: RunScene, observer: Observer) -> None:
        """All members leave, in good order."""
        if scene.manifest is not None:
            code = await asyncio.to_thread(scene.manifest.stop)
            if code:
                scene.problems.append(f"rocketfleet run was told to stop in the end, and its exit code is {code}")
        leaving = scene.members.alive
        for member in leaving:
            await MemberLeaves(TimedFault(0.0, FaultKind.MEMBER_LEAVES, member.name), scene).apply()
        await asyncio.gather(*scene.tending)
        for member in leaving:
            if member.exit_code != exit_codes.DRAINED:
                scene.problems.append(
                    f"{member.name} was told to leave in the end, and its exit code is {member.exit_code}"
                )
        await observer.look(owners=False)
