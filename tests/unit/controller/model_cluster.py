"""A cluster in miniature: an API server, pods with fates, a broker, and the caches through which an operator sees them.

It knows nothing of the planner. It does what actions ask for, as Kubernetes and RocketMQ would, lets time pass, and
keeps a list of `wrongs`: things that no plan, on whatever view of things, should have led to.

What is simplified: a member advances each of its queues by one offset a second and commits every five; queues move at
once when members are told, and after 20 s otherwise; locks do not expire, so that whoever dies leaves some.

What people and fate do to it is in model_fates.py.
"""

from collections.abc import Mapping
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
    address_of,
    manifest,
)

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import MOST_REPLICAS, Engine, UpdateType
from rocketfleet.control.messages import DrainOutcome
from rocketfleet.controller.planning import actions as act
from rocketfleet.controller.planning.drain import deletion_late, drain_limit
from rocketfleet.controller.planning.joining import JOIN_LIMIT, Candidate, with_members
from rocketfleet.controller.planning.snapshot import DrainMark, NodeState, Ownership, Pod, PodPhase, Snapshot
from rocketfleet.controller.resources.shared_settings import differing, shared_settings_of
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.configuration.setting_table import OnTimeout

SELF_REBALANCE = 20.0
SILENCE = 60.0  # after which a broker drops a member whose connection is not closed
COMMIT_EVERY = 5.0
GHOST_SECONDS = 30.0  # that a process lives on after its pod was removed by force


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
        self.ghosts: dict[str, float] = {}  # members whose pods were removed by force while they lived → until when
        self.history: list[tuple[Pod, ...]] = [()]
        self.times = [self.now]  # of the history
        self.objects: list[Object] = [replace(self.object)]  # the same for the object
        self.object_times = [self.now]

    # -- what the operator sees ---------------------------------------------------------------------------------------

    def snapshot(self, obj: Object, pods: tuple[Pod, ...], told: frozenset[str], last_desired: int | None) -> Snapshot:
        """The group as an operator sees it whose cache holds this object and these pods. What it asks for at the broker
        is fresh."""
        up = self.broker.up
        members = frozenset(self.broker.members)
        existing = {pod.client_id for pod in self.pods.values()}
        dead = frozenset(self.broker.locks.values()) - members - existing
        owners = {queue: frozenset(self._owners(queue)) for queue in QUEUES}
        silent = frozenset(pod.client_id for pod in self.pods.values() if pod.stopped) & members
        gone = members - existing
        return Snapshot(
            pods=self._with_members(pods),
            revision=str(obj.revision),
            shared=shared_settings_of(obj.group),
            finalizer=obj.finalizer,
            deleting_since=obj.deleting_since,
            taken_by=obj.taken_by,
            prepared=obj.prepared,
            objects=self.object.objects,
            budget=self.object.kept,
            reachable=up,
            queues=self.routes if up else None,
            members=members if up else None,
            ownership=Ownership(owners, silent) if up else None,
            committed=dict(self.broker.committed) if up else {},
            told=told,
            lingering=gone if up else gone | dead,
            departed=dead if up else frozenset(),
            last_desired=last_desired,
        )

    def _with_members(self, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        """Pods of another engine count as ready when they are seen at the broker."""
        others = [pod for pod in pods if pod.engine is Engine.CONTAINER]
        theirs = [pod for pod in self.pods.values() if pod.client_id in self.broker.members and self.broker.up]
        hosts = {pod.client_id: {pod.host} for pod in theirs if pod.seen.engine is Engine.CONTAINER}
        candidates = [Candidate(pod, address_of(pod.uid)) for pod in others]
        seen = {pod.uid: pod for pod in with_members(candidates, hosts, self.now, complete=self.broker.up)}
        return tuple(seen.get(pod.uid, pod) for pod in pods)

    def visible(self) -> tuple[Pod, ...]:
        return tuple(sorted((pod.seen for pod in self.pods.values()), key=lambda pod: pod.name))

    def record(self) -> None:
        if self.history[-1] != self.visible():
            self.history.append(self.visible())
            self.times.append(self.now)
        if self.objects[-1] != self.object:
            self.objects.append(replace(self.object))
            self.object_times.append(self.now)

    def _owners(self, queue: MessageQueue) -> list[str]:
        holder = self.broker.locks.get(queue)
        alive = [pod.client_id for pod in self.pods.values() if not pod.stopped]
        return [one for one in [*alive, *self.ghosts] if one == holder]

    # -- actions ------------------------------------------------------------------------------------------------------

    def apply(self, action: act.Action, plan: list[act.Action], view: Snapshot, group: ConsumerGroup) -> None:
        """Do one action, as the API server or the broker would. The rest is what it was part of, and made from."""
        obj = self.object
        if obj.gone:
            return
        match action:
            case act.AddFinalizer():
                obj.finalizer = obj.finalizer or obj.deleting_since is None
            case act.RemoveFinalizer():
                self._remove_finalizer(view)
            case act.PrepareGroup():
                obj.prepared = obj.prepared or (self.broker.up and view.revision == str(obj.revision))
            case act.EnsureObjects():
                obj.objects = True
            case act.LimitEvictions(keep):
                obj.kept = keep
            case act.CreatePod(ordinal):
                self._create(ordinal, view, group)
            case act.MarkDrain(pod, reason):
                self._mark(pod, reason, asked_of(group, view))
            case act.NoteShared(pod, shared):
                self._note_shared(pod, shared)
            case act.RequestDrain(pod):
                self._request_drain(pod)
            case act.DeletePod(pod, force):
                self._delete(pod, force, plan, view, group)
            case act.TellMembers(pods):
                self.told = frozenset(pod.uid for pod in pods)
                self._moved = self.now - SELF_REBALANCE
            case act.ReleaseLocks(client_ids):
                if self.broker.up:
                    self._release(client_ids)
            case act.DeleteGroup():
                if view.taken_by is not None:
                    self.wrongs.append("the group is deleted at the broker, and it is another's")
                self.broker.group_deleted = self.broker.up
            case act.Emit(event):
                self.events.append(event)
        self.record()

    def _remove_finalizer(self, view: Snapshot) -> None:
        if view.pods:
            self.wrongs.append("the finalizer is taken away while pods are seen")
        if not self.pods:  # whoever does it looks past the cache
            self.object.finalizer, self.object.gone = False, self.object.deleting_since is not None

    def _create(self, ordinal: int, view: Snapshot, group: ConsumerGroup) -> None:
        name = f"{NAME}-{ordinal}"
        if view.taken_by is not None:
            self.wrongs.append(f"{name} is created, and the group is another's")
        if not view.prepared:
            self.wrongs.append(f"{name} is created before the group is prepared")
        if not view.finalizer:
            self.wrongs.append(f"{name} is created without a finalizer")
        if view.pods and Engine.SPARK in {group.spec.engine, *(pod.engine for pod in view.pods)}:
            self.wrongs.append(f"{name} is created beside others, and one of them is a Spark driver")
        if any(pod.ordinal == ordinal for pod in view.pods):
            self.wrongs.append(f"{name} is created next to one with the same ordinal")
        if name in self.pods:
            return  # AlreadyExists
        shared = shared_settings_of(group)
        others = [pod for pod in self.pods.values() if differing(pod.seen.shared, shared)]
        if others and group.spec.update.type is not UpdateType.ROLLING:
            differ = sorted({aspect for pod in others for aspect in differing(pod.seen.shared, shared)})
            self.wrongs.append(
                f"{name} is created beside {[pod.seen.name for pod in others]}, which differ in {differ}"
            )
        if group.spec.update.type is UpdateType.RECREATE and any(
            p.seen.revision != view.revision for p in self.pods.values()
        ):
            self.wrongs.append(f"{name} is created beside pods of an old revision, and the type is Recreate")
        fate = self.fates.pop(0) if self.fates else GOOD
        self._next_uid += 1
        seen = Pod(
            name=name,
            ordinal=ordinal,
            uid=f"u{self._next_uid:03}",
            revision=view.revision,
            created=self.now,
            engine=group.spec.engine,
            shared=shared,
        )
        pod = ModelPod(seen, fate, self.now)
        if group.spec.engine.is_ours:
            pod.seen = replace(seen, client_ids=(pod.client_id,))
        self.pods[name] = pod
        self.created.append(ordinal)

    def _same(self, pod: Pod) -> ModelPod | None:
        found = self.pods.get(pod.name)
        return found if found is not None and found.seen.uid == pod.uid else None

    def _mark(self, pod: Pod, reason: str, asked: int) -> None:
        found = self._same(pod)
        if found is None or found.seen.drain is not None:
            return
        self.rolled = {ordinal for ordinal in self.rolled if ordinal < asked}  # a scale-in has taken the others
        if reason == "rolling update" and pod.ready:  # as it was seen: a cache may not know yet that it got ready
            down = self.rolled - {pod.ordinal}
            if down:
                self.wrongs.append(f"an update takes {pod.name} down while {down} are")
            self.rolled.add(pod.ordinal)
        if reason.startswith("scale-in") and 0 <= pod.ordinal < asked:
            self.wrongs.append(f"{pod.name} goes by a scale-in that nobody asked for")
        if reason.startswith(("scale-in", "rolling", "recreate")) and not self.broker.up and not pod.idle:
            self.wrongs.append(f"{pod.name} is to drain ({reason}) where no offset can be committed")
        found.seen = replace(found.seen, drain=DrainMark(self.now, reason))

    def _note_shared(self, pod: Pod, shared: Mapping[str, str]) -> None:
        found = self._same(pod)
        if found is not None:
            if found.seen.shared is not None and found.seen.shared != shared:
                self.wrongs.append(f"{pod.name} is said to be made with {shared}")
            found.seen = replace(found.seen, shared=shared)

    def _request_drain(self, pod: Pod) -> None:
        found = self._same(pod)
        if found is None or found.stopped or not found.node_alive or found.seen.phase is not PodPhase.RUNNING:
            return
        if found.seen.drain is None:
            self.wrongs.append(f"{pod.name} is asked to drain without a mark")
        if found.fate.drain is not DrainFate.DEAF:
            self.begin_drain(found)

    def begin_drain(self, pod: ModelPod) -> None:
        if pod.drain_ends is None:
            seconds = {DrainFate.SLOW: 60.0, DrainFate.HANGS: 1e9}.get(pod.fate.drain, 1.0)
            pod.drain_ends = self.now + seconds
            pod.seen = replace(pod.seen, ready=False, ready_since=None)

    def _delete(self, pod: Pod, force: bool, plan: list[act.Action], view: Snapshot, group: ConsumerGroup) -> None:
        found = self._same(pod)
        if found is None:
            return
        if force:
            if found.seen.deleting is None:
                self.wrongs.append(f"{pod.name} is removed by force, and nobody had deleted it")
            if found.node_state is NodeState.ANSWERS:
                self.wrongs.append(f"{pod.name} is removed by force, and its node answers")
            if found.node_state is NodeState.SILENT and found.seen.engine is not Engine.WORKER:
                self.wrongs.append(f"{pod.name} is removed by force, and nothing keeps it from consuming on")
            if not found.held:
                self._vanish(found)
            return
        why = self._may_go(found, pod, plan, view, group)
        if why is None:
            self.wrongs.append(f"{pod.name} is deleted undrained: {pod}")
        if found.seen.deleting is None:
            found.seen = replace(found.seen, deleting=self.now + GRACE, deleting_since=self.now)
            if found.seen.phase is PodPhase.RUNNING and not found.stopped and found.node_alive:
                self.begin_drain(found)

    def _may_go(
        self, found: ModelPod, pod: Pod, plan: list[act.Action], view: Snapshot, group: ConsumerGroup
    ) -> str | None:
        """Why this deletion is in order; None: it is not."""
        reasons = {
            action.event.reason
            for action in plan
            if isinstance(action, act.Emit) and f"{pod.name} " in f"{action.event.message} "
        }
        if found.seen.engine is Engine.CONTAINER:
            return "its deletion is its drain"
        if deletion_late(group, view, self.now) and act.EventReason.DELETION_GAVE_UP in reasons:
            return "the deletion's time is up"
        if pod.idle:
            return "it does not run"
        if pod.drain is None:
            return "it has ended" if pod.ended else None
        if found.drained and pod.outcome is not None and pod.outcome.confirmed and pod.outcome.offsets is not None:
            offsets = pod.outcome.offsets
            if all(self.broker.committed[queue] >= offset for queue, offset in offsets.items()):
                return "drained and verified"
        if pod.phase is PodPhase.FAILED and (act.EventReason.OFFSETS_UNSAFE in reasons or pod.outcome is not None):
            return "it failed"
        late = self.now - pod.drain.since > drain_limit(group)
        told = reasons & {act.EventReason.DRAIN_TIMED_OUT, act.EventReason.OFFSETS_UNSAFE}
        if late and told and group.spec.shutdown.on_timeout is OnTimeout.PROCEED:
            return "its time is up"
        return None

    def _release(self, client_ids: frozenset[str]) -> None:
        living = {pod.client_id for pod in self.pods.values() if not pod.stopped} | self.ghosts.keys()
        if client_ids & living:
            self.wrongs.append(f"locks of living members are taken: {client_ids & living}")
        self.broker.locks = {queue: holder for queue, holder in self.broker.locks.items() if holder not in client_ids}

    @property
    def asked(self) -> int:
        """The replicas that the manifest asks for."""
        return asked_of(self.object.group, self.object)

    # -- time ---------------------------------------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 1.0
            for pod in list(self.pods.values()):
                self._live(pod)
            for ghost in [one for one, until in self.ghosts.items() if self.now >= until]:
                del self.ghosts[ghost]  # its node is back, and ends what should not run: it drains
                self._leave(ghost)
            self._membership_ages()
            self._share_out()
            self.record()

    def _live(self, pod: ModelPod) -> None:
        seen = pod.seen
        if not pod.node_alive:
            if not pod.stopped and pod.member:
                self._consume(pod)  # only nobody hears of it
            return
        if seen.deleting is not None and pod.held and (seen.ended or pod.stopped):
            return
        if seen.ended:
            if seen.deleting is not None:
                self._vanish(pod)
            return
        if seen.deleting is not None and (self.now >= seen.deleting or seen.phase is PodPhase.PENDING or pod.stopped):
            if pod.held:
                self.stop(pod)
            else:
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
        if pod.seen.phase is PodPhase.PENDING and age >= 1:
            pod.seen = replace(pod.seen, phase=PodPhase.RUNNING)
        if start is StartFate.CRASHES:
            trouble = "exit code 1" if int(age) % 4 else None  # back-off, then another try
            pod.seen = replace(pod.seen, trouble=trouble, ready=False)
        elif start is StartFate.UNREADY:
            return
        elif pod.seen.phase is PodPhase.RUNNING and not pod.seen.ready and age >= start.value and self.broker.up:
            pod.seen = replace(pod.seen, ready=True, ready_since=self.now, trouble=None)
        if pod.seen.ready and not pod.member and age >= start.value + self._joins_after(pod) and self.broker.up:
            pod.member = True
            self.broker.members[pod.client_id] = None
        # Where nobody can tell whether it has joined, it is waited for no longer than this.
        waited = pod.seen.ready_since is not None and self.now >= pod.seen.ready_since + JOIN_LIMIT
        if (pod.member or waited) and pod.seen.drain is None:
            self.rolled.discard(pod.seen.ordinal)

    def _joins_after(self, pod: ModelPod) -> float:
        """Our worker is ready when it has joined; of another program Kubernetes only knows that it runs."""
        return pod.fate.joins if pod.seen.engine is Engine.CONTAINER else 0.0

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
        pod.member = False
        outcome = DrainOutcome(confirmed, offsets, 1.0)
        pod.seen = replace(pod.seen, outcome=outcome, ready=False, ready_since=None)
        if confirmed:
            pod.drained = pod.stopped = True
            pod.seen = replace(pod.seen, phase=PodPhase.SUCCEEDED)
        else:
            # Exit code 4: under restartPolicy OnFailure it is started again, unless it is being deleted.
            pod.start_again(self.now)
            pod.stopped = pod.seen.deleting is not None
            pod.fate = replace(pod.fate, drain=DrainFate.QUICK)

    def stop(self, pod: ModelPod) -> None:
        """Its process ends where it stands: the connection closes, the locks stay."""
        pod.stopped, pod.member = True, False
        self.broker.members.pop(pod.client_id, None)
        for queue in self._held(pod):
            self.reached[queue] = self.broker.committed[queue]

    def _vanish(self, pod: ModelPod) -> None:
        if pod.node_alive:
            self.stop(pod)
        elif pod.member:
            self.ghosts[pod.client_id] = self.now + GHOST_SECONDS
        del self.pods[pod.seen.name]

    def _leave(self, client_id: str) -> None:
        self.broker.members.pop(client_id, None)
        for queue in [queue for queue, holder in self.broker.locks.items() if holder == client_id]:
            self.broker.committed[queue] = self.reached[queue]
            del self.broker.locks[queue]

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


def asked_of(group: ConsumerGroup, seen: Object | Snapshot) -> int:
    """The replicas that this manifest asks for."""
    if group.spec.suspend or seen.deleting_since is not None or seen.taken_by is not None:
        return 0
    return min(group.spec.replicas or 0, 1 if group.spec.engine is Engine.SPARK else MOST_REPLICAS)
