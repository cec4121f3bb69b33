"""A cluster in memory: the API server, RocketMQ and pods, which outlive every operator.

`World` does what the operator's requests ask for, notes every write, and what must never happen (`wrongs`): two pods of
one ordinal, more pods than were wanted, a pod that is deleted before its offsets are safe where nothing allows it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.unit.controller.faults.api_server import GROUPS, ApiServer, Asked, Object
from tests.unit.controller.faults.pods import Pods
from tests.unit.controller.faults.rocketmq import RocketMq, writes

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.controller.kube.pod import pod_of
from rocketfleet.controller.planning.drain import DELETION_MARGIN, drain_limit
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command
from rocketfleet.worker.configuration.setting_table import OnTimeout

BEGINS = 1_700_000_000.0
TICK = 0.25
CACHE_SECONDS = 15.0  # no cache is further behind than this


@dataclass
class World:
    """All that there is, without the operator."""

    server: ApiServer = field(default_factory=lambda: ApiServer(now))
    mq: RocketMq = field(default_factory=lambda: RocketMq(now))
    pods: Pods = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)  # requests by what they are
    writes: list[str] = field(default_factory=list)  # all that changes something, in order
    reads: list[str] = field(default_factory=list)
    wrongs: list[str] = field(default_factory=list)
    on_write: Callable[[str], None] = lambda what: None
    _moments: dict[int, float] = field(default_factory=dict)  # when each version was made

    def __post_init__(self) -> None:
        self.pods = Pods(self.server, self.mq, now)
        self.server.heard = lambda change: self._moments.setdefault(change.version, now())

    def fork(self) -> "World":
        """Another world, the same until now. Its counts begin anew."""
        other = World(self.server.fork(now), self.mq.fork(now))
        other.pods = self.pods.fork(other.server, other.mq, now)
        other._moments |= self._moments
        return other

    async def live(self) -> None:
        """Let time pass."""
        while True:
            await asyncio.sleep(TICK)
            self.pods.tick()
            self.wrongs += self.pods.wrongs
            self.pods.wrongs.clear()

    # -- what people do -----------------------------------------------------------------------------------------------

    def apply(self, manifest: Object) -> None:
        self.server.put(GROUPS, manifest)

    def edit(self, **changes: Any) -> None:
        """Change parts of the spec; what is None is taken away."""
        if self.server.get(GROUPS, "orders") is not None:
            self.server.change(GROUPS, "orders", {"spec": changes})

    def delete(self) -> None:
        if self.server.get(GROUPS, "orders") is not None:
            self.server.delete(GROUPS, "orders")

    @property
    def group(self) -> Object:
        found = self.server.get(GROUPS, "orders")
        assert found is not None, "the object is gone"
        return found

    # -- what the operator's requests do ------------------------------------------------------------------------------

    def do_api(self, asked: Asked, as_of: int | None) -> Object:
        if not asked.writes:
            self.reads.append(str(asked))
            return (self.server if as_of is None else self.server.at(as_of)).answer(asked)
        undrained = self._undrained(asked) if asked.method == "DELETE" and asked.key[0] == "pods" else None
        before = self.server.version
        answer = self.server.answer(asked)
        if undrained:
            self.wrongs.append(f"{asked.key[2]} is deleted: {undrained}")
        if asked.method == "POST" and asked.key[0] == "pods":
            self._judge_creation(asked)
        if self.server.version != before:
            self._wrote(str(asked), counted=asked.key[0] != "events")
        return answer

    def do_broker(self, broker: str, command: Command) -> Command:
        locks = dict(self.mq.locks)
        answer = self.mq.answer(broker, command)
        refused = command.code == RequestCode.LOCK_BATCH_MQ and locks == self.mq.locks
        if writes(command) and not refused:
            self._wrote(f"{RequestCode(command.code).name} {broker}".strip())
        return answer

    def _wrote(self, what: str, *, counted: bool = True) -> None:
        self.counts[what.partition("/")[0]] += 1
        if counted:
            self.writes.append(what)
            self.on_write(what)

    # -- what must never happen ---------------------------------------------------------------------------------------

    def _judge_creation(self, asked: Asked) -> None:
        labels = asked.body["metadata"]["labels"]
        ordinal = labels["rocketfleet.io/ordinal"]
        for body in self.server.all("pods"):
            same = body["metadata"]["labels"].get("rocketfleet.io/ordinal") == ordinal
            if same and body["metadata"]["name"] != asked.body["metadata"]["name"]:
                self.wrongs.append(f"a second pod of ordinal {ordinal} is created")
        there = [body for body in self.server.all("pods") if not _leaves(body)]
        most = self.most_wanted()
        if len(there) > most:
            self.wrongs.append(f"{len(there)} pods, and at most {most} were wanted of late")

    def most_wanted(self) -> int:
        """How many pods there may be by any spec that a cache may still show."""
        limit, most = now() - CACHE_SECONDS, 0
        versions = [change for change in self.server.log if change.key[0] == GROUPS]
        for number, change in enumerate(versions):
            following = versions[number + 1] if number + 1 < len(versions) else None
            if following is None or self.moment(following.version) >= limit:
                most = max(most, _most(change.body))
        return most

    def moment(self, version: int) -> float:
        """When a version was made."""
        return self._moments.get(version, now())

    def _undrained(self, asked: Asked) -> str | None:
        """Why a pod must not be deleted now; None: it may."""
        body = self.server.objects.get(asked.key)
        if body is None:
            return None
        uid = (asked.body.get("preconditions") or {}).get("uid")
        if uid is None:
            return "by its name alone"
        one = self.pods.processes.get(body["metadata"]["uid"])
        if uid != body["metadata"]["uid"] or one is None or not one.running or one.engine == "Container":
            return None
        if body["metadata"].get("deletionTimestamp"):
            return "by force" if asked.body.get("gracePeriodSeconds") == 0 else None
        if one.crashed_at is not None or (not one.joined and one.draining_since is None):
            return None
        group = ConsumerGroup.model_validate({**self.group, "status": None})
        deleted = self.group["metadata"].get("deletionTimestamp")
        if deleted and self._seconds_since(GROUPS, "deletionTimestamp") >= drain_limit(group) + DELETION_MARGIN:
            return None
        seen = pod_of(body)
        assert seen is not None
        if seen.pod.drain is None:
            return None if one.ended else "without a mark, and it runs"
        if one.outcome is not None:
            behind = [
                queue
                for queue, at in (one.outcome.offsets or {}).items()
                if self.mq.offsets.get((one.group, queue), -1) < at
            ]
            return f"its offsets are not safe: {behind}" if behind and not one.broadcasts else None
        late = now() >= seen.pod.drain.since + drain_limit(group) - 1.0
        if late and group.spec.shutdown.on_timeout is OnTimeout.PROCEED:
            return None
        return "it is not drained"

    def _seconds_since(self, plural: str, mark: str) -> float:
        for change in self.server.log:
            if change.key[0] == plural and change.body["metadata"].get(mark):
                return now() - self.moment(change.version)
        return 0.0


def _leaves(body: Object) -> bool:
    annotations = body["metadata"].get("annotations") or {}
    ended = (body.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return bool(body["metadata"].get("deletionTimestamp")) or "rocketfleet.io/drain" in annotations or ended


def _most(body: Object) -> int:
    spec = body["spec"]
    if spec.get("suspend") or body["metadata"].get("deletionTimestamp"):
        return 0
    bounds = spec.get("autoscaling")
    asked = bounds["maxReplicas"] if bounds else spec.get("replicas", 1)
    return int(asked) + int(spec.get("update", {}).get("surge", 0))


def now() -> float:
    return asyncio.get_running_loop().time()
