"""Pods in memory: the kubelet that runs them, and the members in them, from their first heartbeat to their last words.

A pod's JSON is all that a member knows, as in reality: its settings stand in an annotation, its name and uid make its
client id. A member joins, shares queues out with the others, consumes under locks, commits every few seconds; asked to
drain, or on SIGTERM, it commits all that it has handled, gives its locks back, leaves and ends with its last words. A
member that dies does none of that: its locks stay for others to release.

All that a member has is in one small record, so that it can be forked with the rest of the cluster.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.unit.controller.faults.api_server import ApiServer, Object
from tests.unit.controller.faults.rocketmq import Member, RocketMq

from rocketfleet.base.timestamps import timestamp
from rocketfleet.control import exit_codes
from rocketfleet.control.last_words import encode
from rocketfleet.control.messages import Assignment, DrainOutcome, QueueReport, QueueState, WorkerPhase
from rocketfleet.controller.kube.pod import moment, pod_of
from rocketfleet.controller.resources.pod import SETTINGS_ANNOTATION
from rocketfleet.wire.queue import MessageQueue

STARTS, JOINS, DRAINS = 0.5, 1.0, 0.5  # seconds from creation to running, and to membership; from drain to its end
CRASHED = 1.0  # seconds until a container that crashed is started again
COMMIT_EVERY = 5.0
NODE = "node-1"


@dataclass(frozen=True)
class Mishap:
    """What is wrong with a pod. Given by name and the number of the pod under that name, from 0."""

    starts: float = STARTS  # infinite: it never runs
    drains: float = DRAINS
    ready: bool = True


WELL = Mishap()


@dataclass
class Process:
    """A pod's member."""

    uid: str
    name: str
    group: str
    engine: str
    born: float
    ids: tuple[str, ...]
    host: str
    shared: str
    subscriptions: tuple[tuple[str, str], ...]
    own_queues: tuple[MessageQueue, ...] | None  # Config: it is told
    broadcasts: bool
    mishap: Mishap = WELL
    running: bool = False
    joined: bool = False
    draining_since: float | None = None
    outcome: DrainOutcome | None = None
    ended: bool = False
    starts: int = 0
    crashed_at: float | None = None
    reached: dict[MessageQueue, int] = field(default_factory=dict)

    @property
    def able(self) -> bool:
        return self.joined and self.draining_since is None and not self.ended

    @property
    def ordinal(self) -> str:
        return self.name.rpartition("-")[2]

    def fork(self) -> "Process":
        return replace(self, reached=dict(self.reached))


@dataclass
class Pods:
    """All pods of the cluster. `wrongs` is what must never happen between processes."""

    server: ApiServer
    mq: RocketMq
    now: Callable[[], float]
    processes: dict[str, Process] = field(default_factory=dict)  # by pod uid
    mishaps: dict[tuple[str, int], Mishap] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)  # how many pods of a name there have been
    wrongs: list[str] = field(default_factory=list)
    restless: bool = True  # something has moved in the last tick
    _second: int = 0

    def fork(self, server: ApiServer, mq: RocketMq, now: Callable[[], float]) -> "Pods":
        processes = {uid: one.fork() for uid, one in self.processes.items()}
        return Pods(server, mq, now, processes, dict(self.mishaps), dict(self.names))

    # -- time ---------------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Everything that is due."""
        before = self.server.version
        bodies = {body["metadata"]["uid"]: body for body in self.server.all("pods")}
        for uid in self.processes.keys() - bodies.keys():
            one = self.processes.pop(uid)
            self._dies(one)  # its object was removed by force, or at once
        for uid, body in bodies.items():
            if uid not in self.processes:
                self.processes[uid] = self._made(body)
            self._live(body, self.processes[uid])
        moved = self._share_out()
        self._consume()
        self.restless = moved or self.server.version != before or any(map(self._is_restless, self.processes.values()))

    def _is_restless(self, one: Process) -> bool:
        patience = 60.0
        if one.ended:
            return False
        if one.draining_since is not None:
            return self.now() < one.draining_since + patience
        return not one.joined and self.now() < one.born + patience

    def _made(self, body: Object) -> Process:
        metadata = body["metadata"]
        seen = pod_of(body)
        assert seen is not None
        settings = json.loads(metadata["annotations"][SETTINGS_ANNOTATION])
        told = settings.get("allocation", {}).get("queues")
        number = int(metadata["uid"].rpartition("-")[2])
        host = f"10.2.{number // 256}.{number % 256}"
        engine = metadata["labels"]["rocketfleet.io/engine"]
        name, count = metadata["name"], self.names.get(metadata["name"], 0)
        self.names[name] = count + 1
        return Process(
            uid=metadata["uid"],
            name=name,
            group=settings["groupName"],
            engine=engine,
            born=self.now(),
            ids=seen.pod.client_ids or (f"{host}@1#7",),
            host=host,
            shared=metadata["annotations"].get("rocketfleet.io/shared-settings", ""),
            subscriptions=tuple((one["topic"], one.get("expression", "*")) for one in settings["subscriptions"]),
            own_queues=None
            if told is None
            else tuple(MessageQueue(q["topic"], q["broker"], q["queueId"]) for q in told),
            broadcasts=settings.get("messageModel") == "Broadcasting",
            mishap=self.mishaps.get((name, count), WELL),
        )

    def _live(self, body: Object, one: Process) -> None:
        now, deleted = self.now(), body["metadata"].get("deletionTimestamp")
        if one.ended or (deleted and not one.running):
            if deleted:
                self._gone(body, one)
            return
        if deleted and one.draining_since is None:
            self.drain(one)
        if one.draining_since is not None and now >= one.draining_since + one.mishap.drains:
            self._drained(one, now - one.draining_since)
            if deleted:
                self._gone(body, one)
            return
        if deleted and now >= (moment(deleted) or now):
            self._dies(one)
            self._gone(body, one)
            return
        if one.crashed_at is not None and now < one.crashed_at + CRASHED:
            return
        began = one.born if one.crashed_at is None else one.crashed_at
        if not one.running and now >= began + one.mishap.starts:
            self._runs(body, one)
        elif one.running and not one.joined and one.draining_since is None and now >= began + one.mishap.starts + JOINS:
            self._joins(one)

    def _gone(self, body: Object, one: Process) -> None:
        metadata = body["metadata"]
        self.processes.pop(one.uid, None)
        self.server.vanish(("pods", metadata["namespace"], metadata["name"]))

    def _status(self, one: Process, **status: Any) -> None:
        self.server.change("pods", one.name, {"status": status}, "status")

    def _runs(self, body: Object, one: Process) -> None:
        others = [other for other in self.processes.values() if other.running and not other.ended and other is not one]
        for other in others:
            if other.group == one.group and other.ordinal == one.ordinal and other.name == one.name:
                self.wrongs.append(f"two processes of {one.name} run at once")
            if "Spark" in (one.engine, other.engine) and other.group == one.group:
                self.wrongs.append(f"{one.name} runs beside {other.name}, and one of them is a Spark driver")
        one.running, one.crashed_at = True, None
        one.starts += 1
        if not body["spec"].get("nodeName"):
            self.server.change("pods", one.name, {"spec": {"nodeName": NODE}})
        ours = one.engine != "Container"
        self._status(
            one,
            phase="Running",
            podIP=one.host,
            hostIP="10.3.0.1",
            conditions=self._conditions(ready=not ours),
            containerStatuses=[{"name": "consumer", "state": {"running": {}}, "imageID": "image@sha256:1"}],
        )

    def _conditions(self, *, ready: bool) -> list[Object]:
        now = timestamp(self.now())
        return [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": now},
            {"type": "Ready", "status": str(ready), "lastTransitionTime": now},
        ]

    def _joins(self, one: Process) -> None:
        one.joined = True
        for client_id in one.ids:
            self.mq.members.setdefault(one.group, {})[client_id] = Member(one.host, one.subscriptions)
        if one.mishap.ready:
            self._status(one, conditions=self._conditions(ready=True))

    # -- what members do ----------------------------------------------------------------------------------------------

    def _share_out(self) -> bool:
        """Members share the queues out; a queue is handed over at once. Whether anything moved."""
        moved = False
        for group in {one.group for one in self.processes.values()}:
            able = sorted((one for one in self.processes.values() if one.group == group and one.able), key=_rank)
            sharing = [one for one in able if not one.broadcasts]
            wanted: dict[MessageQueue, tuple[Process, str]] = {}
            topics = {topic for one in sharing for topic, _ in one.subscriptions}
            for topic in sorted(topics):
                there = [one for one in sharing if topic in dict(one.subscriptions)]
                takers = [(one, client_id) for one in there for client_id in one.ids]
                for number, queue in enumerate(self.mq.queues(topic)):
                    told = [(one, one.ids[0]) for one in there if queue in (one.own_queues or ())]
                    if any(one.own_queues is not None for one in there):
                        wanted |= {queue: told[0]} if told else {}
                    else:
                        wanted[queue] = takers[number % len(takers)]
            moved |= self._hand_over(group, able, wanted)
        return moved

    def _hand_over(self, group: str, able: list[Process], wanted: dict[MessageQueue, tuple[Process, str]]) -> bool:
        moved = False
        for one in able:
            for queue in [queue for queue in one.reached if wanted.get(queue, (None, ""))[0] is not one]:
                self.mq.offsets[group, queue] = one.reached.pop(queue)
                for client_id in one.ids:
                    if self.mq.holder(group, queue) == client_id:
                        del self.mq.locks[group, queue]
                moved = True
        for queue, (one, client_id) in wanted.items():
            holder = self.mq.holder(group, queue)
            if one.engine != "Worker" or holder in (None, client_id):
                if queue not in one.reached:
                    one.reached[queue] = self.mq.offsets.get((group, queue), self.mq.ends.get(queue, 0))
                    moved = True
                self.mq.locks[group, queue] = (client_id, self.now())
        return moved

    def _consume(self) -> None:
        """One message in each queue each second, and a commit every five."""
        second = int(self.now())
        if second == self._second:
            return
        self._second = second
        for topic in self.mq.topics:
            for queue in self.mq.queues(topic):
                self.mq.ends[queue] = self.mq.ends.get(queue, 0) + 1
        for one in self.processes.values():
            if one.joined and not one.ended:
                for queue, offset in one.reached.items():
                    one.reached[queue] = min(offset + 2, self.mq.ends.get(queue, 0))
                    if second % COMMIT_EVERY == 0 and one.draining_since is None and not one.broadcasts:
                        self.mq.offsets[one.group, queue] = one.reached[queue]

    def drain(self, one: Process) -> None:
        if one.draining_since is None and one.running and not one.ended:
            one.draining_since = self.now()
            if one.mishap.ready:
                self._status(one, conditions=self._conditions(ready=False))

    def _drained(self, one: Process, seconds: float) -> None:
        offsets = dict(one.reached)
        self.mq.offsets |= {(one.group, queue): offset for queue, offset in offsets.items()}
        one.outcome = DrainOutcome(confirmed=True, offsets=offsets, seconds=seconds)
        self._leave(one)
        self._locks_back(one)
        one.ended = True
        words = encode(one.outcome) if one.engine != "Container" else ""
        code = exit_codes.DRAINED if one.engine != "Container" else 143
        ended = {"exitCode": code, "message": words, "containerID": f"{one.uid}-{one.starts}"}
        phase = "Succeeded" if one.engine != "Container" else "Failed"
        self._status(
            one,
            phase=phase,
            conditions=self._conditions(ready=False),
            containerStatuses=[{"name": "consumer", "state": {"terminated": ended}}],
        )

    def _leave(self, one: Process) -> None:
        one.joined = False
        for client_id in one.ids:
            self.mq.members.get(one.group, {}).pop(client_id, None)

    def _locks_back(self, one: Process) -> None:
        for group, queue in list(self.mq.locks):
            if group == one.group and self.mq.locks[group, queue][0] in one.ids:
                del self.mq.locks[group, queue]

    def _dies(self, one: Process) -> None:
        """Where it stands: its locks stay."""
        self._leave(one)
        one.running, one.reached = False, {}

    def crash(self, one: Process) -> None:
        """Its container ends, and is started again."""
        if one.running and not one.ended:
            self._dies(one)
            one.crashed_at, one.draining_since = self.now(), None
            ended = {"exitCode": 1, "containerID": f"{one.uid}-{one.starts}"}
            state = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}}
            self._status(
                one, conditions=self._conditions(ready=False), containerStatuses=[{"name": "consumer", **state}]
            )

    def fail(self, one: Process) -> None:
        """The node evicts it for good."""
        if not one.ended:
            self._dies(one)
            one.ended = True
            self._status(one, phase="Failed", reason="Evicted", conditions=self._conditions(ready=False))

    def report(self, one: Process) -> Assignment:
        """What its control port answers."""
        queues = [
            QueueReport(queue, client_id, QueueState.OWNED)
            for client_id in one.ids
            for queue in self.mq.held_by(one.group, client_id)
            if queue in one.reached
        ]
        phase = WorkerPhase.RUNNING if one.joined else WorkerPhase.JOINING
        return Assignment(
            client_ids=one.ids,
            phase=WorkerPhase.DRAINING if one.draining_since is not None else phase,
            ready=one.able,
            settled=one.able,
            members=tuple(sorted(self.mq.members.get(one.group, {}))),
            queues=tuple(queues),
        )

    def at(self, address: str) -> Process | None:
        """Whose control port is at an address."""
        host = address.rpartition(":")[0]
        return next(
            (one for one in self.processes.values() if one.host == host and one.running and not one.ended), None
        )


def _rank(one: Process) -> tuple[int, str]:
    return (int(one.ordinal) if one.ordinal.isdecimal() else -1, one.uid)
