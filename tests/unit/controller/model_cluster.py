"""A cluster in miniature: an API server, pods with fates, a broker, and the caches through which an operator sees them.

It knows nothing of the planner. It does what actions ask for, as Kubernetes and RocketMQ would, lets time pass, and
keeps a list of `wrongs`: things that no plan, on whatever view of things, should have led to.

What is simplified: a member advances each of its queues by one offset a second and commits every five; queues move at
once when members are told, and after 20 s otherwise; locks do not expire, so that whoever dies leaves some.
"""

from dataclasses import replace

from tests.unit.controller.model_parts import (
    GOOD,
    GRACE,
    NAME,
    QUEUES,
    Broker,
    DrainFate,
    Fate,
    ModelPod,
    Object,
    StartFate,
    manifest,
)

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine, OnTimeout
from rocketfleet.controller import actions as act
from rocketfleet.controller.drain import deletion_late, drain_limit
from rocketfleet.controller.plan import STUCK_AFTER
from rocketfleet.controller.snapshot import DrainMark, DrainOutcome, Ownership, Phase, Pod, Snapshot
from rocketfleet.wire.queue import MessageQueue

SELF_REBALANCE = 20.0
SILENCE = 60.0  # after which a broker drops a member whose connection is not closed
COMMIT_EVERY = 5.0


class ModelCluster:
    def __init__(self, group: ConsumerGroup | None = None) -> None:
        self.now = 1000.0
        self.object = Object(group or manifest())
        self.pods: dict[str, ModelPod] = {}
        self.broker = Broker()
        self.routes: frozenset[MessageQueue] | None = QUEUES  # as far as they are known
        self.reached: dict[MessageQueue, int] = dict.fromkeys(QUEUES, 0)
        self.fates: list[Fate] = []
        self.events: list[act.Event] = []
        self.wrongs: list[str] = []
        self.rolled: set[int] = set()  # ordinals that an update took down, and that are not back
        self.told: frozenset[str] = frozenset()
        self.created: list[int] = []
        self._moved = 0.0
        self._membership: frozenset[str] = frozenset()
        self._next_uid = 0
        self.history: list[tuple[Pod, ...]] = [()]
        self.times = [self.now]  # of the history

    # -- what the operator sees ---------------------------------------------------------------------------------------

    def snapshot(self, pods: tuple[Pod, ...], told: frozenset[str], last_desired: int | None) -> Snapshot:
        """The group as an operator sees it whose cache holds these pods. What it asks for at the broker is fresh."""
        obj, up = self.object, self.broker.up
        members = frozenset(self.broker.members)
        existing = {pod.client_id for pod in self.pods.values()}
        dead = frozenset(self.broker.locks.values()) - members - existing
        owners = {queue: frozenset(self._owners(queue)) for queue in QUEUES}
        silent = frozenset(
            pod.client_id for pod in self.pods.values() if not pod.node_alive and pod.client_id in members
        )
        return Snapshot(
            pods=pods,
            revision=str(obj.revision),
            finalizer=obj.finalizer,
            deleting_since=obj.deleting_since,
            prepared=obj.prepared,
            objects=obj.objects,
            reachable=up,
            queues=self.routes if up else None,
            members=members if up else None,
            ownership=Ownership(owners, silent) if up else None,
            committed=dict(self.broker.committed) if up else {},
            told=told,
            lingering=members - existing if up else frozenset(),
            departed=dead,
            last_desired=last_desired,
        )

    def visible(self) -> tuple[Pod, ...]:
        return tuple(sorted((pod.seen for pod in self.pods.values()), key=lambda pod: pod.name))

    def _record(self) -> None:
        if self.history[-1] != self.visible():
            self.history.append(self.visible())
            self.times.append(self.now)

    def _owners(self, queue: MessageQueue) -> list[str]:
        holder = self.broker.locks.get(queue)
        return [pod.client_id for pod in self.pods.values() if pod.client_id == holder and not pod.stopped]

    # -- actions ------------------------------------------------------------------------------------------------------

    def apply(self, action: act.Action, plan: list[act.Action], view: Snapshot) -> None:
        """Do one action, as the API server or the broker would. `plan` and `view`: what it was part of."""
        obj = self.object
        if obj.gone:
            return
        match action:
            case act.AddFinalizer():
                obj.finalizer = obj.finalizer or obj.deleting_since is None
            case act.RemoveFinalizer():
                self._remove_finalizer(view)
            case act.PrepareGroup():
                obj.prepared = obj.prepared or self.broker.up
            case act.EnsureObjects():
                obj.objects = True
            case act.CreatePod(ordinal):
                self._create(ordinal, view)
            case act.MarkDrain(pod, reason):
                self._mark(pod, reason)
            case act.RequestDrain(pod):
                self._request_drain(pod)
            case act.DeletePod(pod, force):
                self._delete(pod, force, plan, view)
            case act.TellMembers(pods):
                self.told = frozenset(pod.uid for pod in pods)
                self._moved = self.now - SELF_REBALANCE
            case act.ReleaseLocks(client_ids):
                if self.broker.up:
                    self._release(client_ids)
            case act.DeleteGroup():
                self.broker.group_deleted = self.broker.up
            case act.Emit(event):
                self.events.append(event)
        self._record()

    def _remove_finalizer(self, view: Snapshot) -> None:
        if view.pods:
            self.wrongs.append("the finalizer is taken away while pods are seen")
        if not self.pods:  # whoever does it looks past the cache
            self.object.finalizer, self.object.gone = False, self.object.deleting_since is not None

    def _create(self, ordinal: int, view: Snapshot) -> None:
        name = f"{NAME}-{ordinal}"
        if not self.object.prepared:
            self.wrongs.append(f"{name} is created before the group is prepared")
        if not self.object.finalizer:
            self.wrongs.append(f"{name} is created without a finalizer")
        if any(pod.ordinal == ordinal for pod in view.pods):
            self.wrongs.append(f"{name} is created next to one with the same ordinal")
        if name in self.pods:
            return  # AlreadyExists
        fate = self.fates.pop(0) if self.fates else GOOD
        self._next_uid += 1
        seen = Pod(
            name=name,
            ordinal=ordinal,
            uid=f"u{self._next_uid}",
            revision=str(self.object.revision),
            created=self.now,
            client_ids=(f"{name}@u{self._next_uid}",),
            engine=self.object.group.spec.engine,
        )
        self.pods[name] = ModelPod(seen, fate, self.now)
        self.created.append(ordinal)

    def _same(self, pod: Pod) -> ModelPod | None:
        found = self.pods.get(pod.name)
        return found if found is not None and found.seen.uid == pod.uid else None

    def _mark(self, pod: Pod, reason: str) -> None:
        found = self._same(pod)
        if found is None or found.seen.drain is not None:
            return
        if reason == "rolling update" and pod.ready:  # as it was seen: a cache may not know yet that it got ready
            down = {ordinal for ordinal in self.rolled - {pod.ordinal} if ordinal < self.asked}
            if down:
                self.wrongs.append(f"an update takes {pod.name} down while {down} are")
            self.rolled.add(pod.ordinal)
        if reason.startswith("scale-in") and 0 <= pod.ordinal < self.asked:
            self.wrongs.append(f"{pod.name} goes by a scale-in that nobody asked for")
        if reason.startswith(("scale-in", "rolling")) and not self.broker.up and not pod.idle:
            self.wrongs.append(f"{pod.name} is to drain ({reason}) where no offset can be committed")
        found.seen = replace(found.seen, drain=DrainMark(self.now, reason))

    def _request_drain(self, pod: Pod) -> None:
        found = self._same(pod)
        if found is None or found.stopped or not found.node_alive or found.seen.phase is not Phase.RUNNING:
            return
        if found.seen.drain is None:
            self.wrongs.append(f"{pod.name} is asked to drain without a mark")
        if found.fate.drain is not DrainFate.DEAF:
            self._begin_drain(found)

    def _begin_drain(self, pod: ModelPod) -> None:
        if pod.drain_ends is None:
            seconds = {DrainFate.SLOW: 60.0, DrainFate.HANGS: 1e9}.get(pod.fate.drain, 1.0)
            pod.drain_ends = self.now + seconds
            pod.seen = replace(pod.seen, ready=False, ready_since=None)

    def _delete(self, pod: Pod, force: bool, plan: list[act.Action], view: Snapshot) -> None:
        found = self._same(pod)
        if found is None:
            return
        if force:
            if found.seen.deleting is None or self.now <= found.seen.deleting + STUCK_AFTER:
                self.wrongs.append(f"{pod.name} is removed by force before its time")
            self._vanish(found)
            return
        why = self._may_go(found, pod, plan, view)
        if why is None:
            self.wrongs.append(f"{pod.name} is deleted undrained: {pod}")
        if found.seen.deleting is None:
            found.seen = replace(found.seen, deleting=self.now + GRACE)
            if found.seen.phase is Phase.RUNNING and not found.stopped and found.node_alive:
                self._begin_drain(found)

    def _may_go(self, found: ModelPod, pod: Pod, plan: list[act.Action], view: Snapshot) -> str | None:
        """Why this deletion is in order; None: it is not."""
        reasons = {
            action.event.reason
            for action in plan
            if isinstance(action, act.Emit) and f"{pod.name} " in f"{action.event.message} "
        }
        group = self.object.group
        if found.seen.engine is Engine.CONTAINER:
            return "its deletion is its drain"
        if deletion_late(group, view, self.now) and act.Reason.DELETION_GAVE_UP in reasons:
            return "the deletion's time is up"
        if pod.idle:
            return "it does not run"
        if pod.drain is None:
            return "it has ended" if pod.ended else None
        if found.drained and pod.outcome is not None and pod.outcome.confirmed and pod.outcome.offsets is not None:
            offsets = pod.outcome.offsets
            if all(self.broker.committed[queue] >= offset for queue, offset in offsets.items()):
                return "drained and verified"
        if pod.phase is Phase.FAILED and (act.Reason.OFFSETS_UNSAFE in reasons or pod.outcome is not None):
            return "it failed"
        late = self.now - pod.drain.since > drain_limit(group)
        told = reasons & {act.Reason.DRAIN_TIMED_OUT, act.Reason.OFFSETS_UNSAFE}
        if late and told and group.spec.shutdown.on_timeout is OnTimeout.PROCEED:
            return "its time is up"
        return None

    def _release(self, client_ids: frozenset[str]) -> None:
        living = {pod.client_id for pod in self.pods.values() if not pod.stopped}
        if client_ids & living:
            self.wrongs.append(f"locks of living members are taken: {client_ids & living}")
        self.broker.locks = {queue: holder for queue, holder in self.broker.locks.items() if holder not in client_ids}

    @property
    def asked(self) -> int:
        """The replicas that the manifest asks for."""
        spec = self.object.group.spec
        return 0 if spec.suspend or self.object.deleting_since is not None else spec.replicas or 0

    # -- what people and fate do --------------------------------------------------------------------------------------

    def edit(self, **changes: object) -> None:
        """A change of the spec that leaves the pods as they are."""
        if not self.object.gone:
            spec = self.object.group.spec.model_copy(update=changes)
            self.object.group = self.object.group.model_copy(update={"spec": spec})

    def change_pods(self, **changes: object) -> None:
        """A change of the spec that makes a new revision, which has to be prepared at the broker."""
        self.edit(**changes)
        self.object.revision += 1
        self.object.prepared = False

    def delete_object(self) -> None:
        if self.object.deleting_since is None:
            self.object.deleting_since = self.now
            self.object.gone = self.object.by_force = not self.object.finalizer
            if self.object.gone:  # nothing held it: the garbage collector takes its pods
                for pod in self.pods.values():
                    self.delete_pod(pod)

    def forget_finalizer(self) -> None:
        """Somebody patches it away."""
        if self.object.deleting_since is None:
            self.object.finalizer = False

    def delete_pod(self, pod: ModelPod) -> None:
        """kubectl delete pod, or an eviction."""
        if pod.seen.deleting is None:
            pod.seen = replace(pod.seen, deleting=self.now + GRACE)
            if pod.consumes:
                self._begin_drain(pod)
        self._record()

    def drain_pod(self, pod: ModelPod) -> None:
        """Somebody asks for one pod to be drained."""
        if pod.seen.drain is None:
            pod.seen = replace(pod.seen, drain=DrainMark(self.now, "asked for"))
        self._record()

    def quit_pod(self, pod: ModelPod) -> None:
        """Its worker drains and ends, and nobody of us asked it to."""
        if pod.consumes:
            self._begin_drain(pod)
            pod.drain_ends = self.now + 1
        self._record()

    def fail_pod(self, pod: ModelPod) -> None:
        """The node's pressure ends it for good."""
        if not pod.seen.ended and pod.node_alive:
            self._stop(pod)
            pod.seen = replace(pod.seen, phase=Phase.FAILED, ready=False, trouble="Evicted")
        self._record()

    def restart_pod(self, pod: ModelPod) -> None:
        """Its process crashes, and comes back."""
        if pod.seen.phase is Phase.RUNNING and pod.node_alive:
            self._stop(pod)
            pod.stopped, pod.born, pod.drain_ends = False, self.now, None
            pod.seen = replace(pod.seen, ready=False, ready_since=None)
        self._record()

    def kill_node(self, pod: ModelPod) -> None:
        """Its node is gone without a word; Kubernetes asks for the pod's deletion, and nobody answers."""
        if pod.node_alive and not pod.seen.ended:
            pod.node_alive = False
            pod.stopped = True
            if pod.client_id in self.broker.members:
                self.broker.members[pod.client_id] = self.now + SILENCE
            pod.seen = replace(pod.seen, ready=False, ready_since=None, deleting=pod.seen.deleting or self.now + GRACE)
        self._record()

    def heal(self, *, broker: bool = True) -> None:
        """Faults stop: what is wanted gets well. A drain that hangs is left to its time limit, if it has one, and what
        is not wanted stays as bad as it is: getting rid of it is the operator's part."""
        self.broker.up = self.broker.up or broker
        self.routes = QUEUES
        self.fates.clear()
        waits = self.object.group.spec.shutdown.on_timeout is OnTimeout.WAIT and self.object.deleting_since is None
        for pod in self.pods.values():
            extra = self.object.group.spec.update.surge  # an update waits for its extra pod: it may be a warning
            wanted = pod.seen.ordinal < self.asked + extra and pod.seen.revision == str(self.object.revision)
            if wanted and pod.seen.drain is None and pod.fate.start.value < 0:
                pod.fate, pod.born = replace(pod.fate, start=StartFate.QUICK), self.now
            if waits:
                pod.fate = replace(pod.fate, drain=DrainFate.QUICK)
                pod.drain_ends = None if pod.drain_ends is None else self.now + 1
                offsets = (pod.seen.outcome.offsets if pod.seen.outcome is not None else None) or {}
                for queue, offset in offsets.items():
                    self.broker.committed[queue] = max(self.broker.committed[queue], offset)

    # -- time ---------------------------------------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 1.0
            for pod in list(self.pods.values()):
                self._live(pod)
            self._membership_ages()
            self._share_out()
            self._record()

    def _live(self, pod: ModelPod) -> None:
        seen = pod.seen
        if not pod.node_alive:
            return
        if seen.ended:
            if seen.deleting is not None:
                self._vanish(pod)
            return
        if seen.deleting is not None and (self.now >= seen.deleting or seen.phase is Phase.PENDING or pod.stopped):
            self._vanish(pod)
            return
        if pod.drain_ends is not None:
            if self.now >= pod.drain_ends:
                self._end_drain(pod)
            return
        self._start(pod)
        if pod.consumes:
            self._consume(pod)

    def _start(self, pod: ModelPod) -> None:
        age, start = self.now - pod.born, pod.fate.start
        if start is StartFate.PENDING:
            return
        if pod.seen.phase is Phase.PENDING and age >= 1:
            pod.seen = replace(pod.seen, phase=Phase.RUNNING)
        if start is StartFate.CRASHES:
            trouble = "exit code 1" if int(age) % 4 else None  # back-off, then another try
            pod.seen = replace(pod.seen, trouble=trouble, ready=False)
        elif start is StartFate.UNREADY:
            return
        elif pod.seen.phase is Phase.RUNNING and not pod.seen.ready and age >= start.value and self.broker.up:
            pod.seen = replace(pod.seen, ready=True, ready_since=self.now, trouble=None)
            self.broker.members[pod.client_id] = None
            if pod.seen.revision == str(self.object.revision) or pod.seen.drain is None:
                self.rolled.discard(pod.seen.ordinal)

    def _consume(self, pod: ModelPod) -> None:
        for queue in self._held(pod):
            self.reached[queue] += 1
            if self.broker.up and self.now % COMMIT_EVERY == 0:
                self.broker.committed[queue] = self.reached[queue]

    def _held(self, pod: ModelPod) -> list[MessageQueue]:
        return [queue for queue, holder in self.broker.locks.items() if holder == pod.client_id]

    def _end_drain(self, pod: ModelPod) -> None:
        held = self._held(pod)
        offsets = {queue: self.reached[queue] for queue in held}
        confirmed = self.broker.up and pod.fate.drain is not DrainFate.UNCONFIRMED
        if self.broker.up:
            lost = 1 if pod.fate.drain is DrainFate.LOST else 0
            for queue in held:
                if confirmed:
                    self.broker.committed[queue] = self.reached[queue] - lost
                del self.broker.locks[queue]
        self.broker.members.pop(pod.client_id, None)
        outcome = DrainOutcome(confirmed, offsets, 1.0)
        pod.seen = replace(pod.seen, outcome=outcome, ready=False, ready_since=None)
        if confirmed:
            pod.drained = pod.stopped = True
            pod.seen = replace(pod.seen, phase=Phase.SUCCEEDED)
        else:
            # Exit code 4: under restartPolicy OnFailure it is started again, unless it is being deleted.
            pod.drain_ends, pod.born = None, self.now
            pod.stopped = pod.seen.deleting is not None
            pod.fate = replace(pod.fate, drain=DrainFate.QUICK)

    def _stop(self, pod: ModelPod) -> None:
        """Its process ends where it stands: the connection closes, the locks stay."""
        pod.stopped = True
        self.broker.members.pop(pod.client_id, None)
        for queue in self._held(pod):
            self.reached[queue] = self.broker.committed[queue]

    def _vanish(self, pod: ModelPod) -> None:
        if pod.node_alive:
            self._stop(pod)
        del self.pods[pod.seen.name]

    def _membership_ages(self) -> None:
        for client_id, until in list(self.broker.members.items()):
            if until is not None and self.now >= until:
                del self.broker.members[client_id]

    def _share_out(self) -> None:
        """Members share the queues out: when told, or when they notice by themselves. A lock has to be free."""
        able = sorted(pod.client_id for pod in self.pods.values() if pod.consumes)
        if frozenset(able) != self._membership:
            self._membership, self._moved = frozenset(able), self.now
        if not self.broker.up or self.now < self._moved + SELF_REBALANCE:
            return
        owners = able or [""]
        for number, queue in enumerate(sorted(QUEUES)):
            owner, holder = owners[number % len(owners)], self.broker.locks.get(queue)
            if holder in able and holder != owner:
                self.broker.committed[queue] = self.reached[queue]  # handed over
                del self.broker.locks[queue]
                holder = None
            if able and holder is None:
                self.reached[queue] = self.broker.committed[queue]
                self.broker.locks[queue] = owner
