"""The planner against a cluster in miniature: random changes, faults, stale caches, an operator killed at any point.

A script is a list of steps. In each, something may happen; then the operator looks, through a cache that may lag, makes
a plan, and follows it, or only its first few actions before it is killed; then time passes. When the script is over,
faults stop, and the group must come to what its manifest says. All along, the model notes what must never happen.
"""

from bisect import bisect_right
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.unit.controller import model_fates as happens
from tests.unit.controller.model_cluster import ModelCluster, asked_of
from tests.unit.controller.model_parts import NAME, QUEUES, DrainFate, Fate, ModelPod, StartFate, manifest

from rocketfleet.api.spec import DeletionPolicy, Engine, Update, UpdateType
from rocketfleet.controller.planning import actions as act
from rocketfleet.controller.planning.drain import deletion_late
from rocketfleet.controller.planning.joining import JOIN_LIMIT
from rocketfleet.controller.planning.plan import plan
from rocketfleet.controller.planning.snapshot import Pod, Snapshot
from rocketfleet.controller.planning.stuck import over_at
from rocketfleet.controller.planning.wanted import balanced, desired_replicas
from rocketfleet.controller.reconciling.sightings import OBJECT, Sightings
from rocketfleet.worker.configuration.setting_table import OnTimeout

CACHE_SECONDS = 6.0  # no cache is further behind
QUIET_STEPS = 200
CALM_STEPS = 20  # longer than any time limit of the planner: nothing is waited for any more
QUIET_SECONDS = 4.0
NEVER = 1e9
THEIRS = {"spec": {"containers": [{"name": "consumer", "image": "theirs"}]}}


@dataclass(frozen=True)
class Step:
    happens: str = "nothing"
    number: int = 0
    seconds: float = 1.0
    killed_after: int | None = None  # actions
    lag: int = 0  # states of the pods that the cache is behind
    object_lag: int = 0  # the same for the object: its spec, its deletion, its finalizer


@dataclass
class Operator:
    """What an operator remembers. It looks, plans and acts; killed, it remembers nothing, and its cache is fresh."""

    cluster: ModelCluster
    told: frozenset[str] = frozenset()
    last_desired: int | None = None
    place: int = 0  # in the history of the pods
    object_place: int = 0
    written: dict[str, int] = field(default_factory=dict)  # pods that we wrote to → place in that history
    sightings: Sightings = field(default_factory=Sightings)

    def look(self, lag: int = 0, object_lag: int = 0) -> Snapshot:
        """A cache may be behind for a while, but it never goes back, and it shows what we wrote ourselves."""
        history = self.cluster.history
        overdue = bisect_right(self.cluster.times, self.cluster.now - CACHE_SECONDS) - 1
        self.place = max(self.place, len(history) - 1 - lag, overdue)
        seen = {pod.name: pod for pod in history[self.place]}
        for name, place in self.written.items():
            if place > self.place:
                seen.pop(name, None)
                seen |= {pod.name: pod for pod in history[place] if pod.name == name}
        pods = tuple(seen[name] for name in sorted(seen))
        objects = self.cluster.objects
        overdue = bisect_right(self.cluster.object_times, self.cluster.now - CACHE_SECONDS) - 1
        self.object_place = max(self.object_place, len(objects) - 1 - object_lag, overdue)
        pods = tuple(self._by_our_clock(pod) for pod in pods)
        view = self.cluster.snapshot(objects[self.object_place], pods, self.told, self.last_desired)
        self.sightings.keep(pod.uid for pod in pods)
        if view.deleting_since is not None:
            view = replace(view, deleting_since=self.sightings.since(OBJECT, "deleting", self.cluster.now))
        return view

    def _by_our_clock(self, pod: Pod) -> Pod:
        """As the observer does it; nodes are asked for, so they are as they are now."""
        now, there = self.cluster.now, self.cluster.pods.get(pod.name)
        pod = self.sightings.pod(pod, now, now)
        state = None
        if pod.deleting is not None and (pod.lost or now > over_at(self.cluster.object.group, pod, pod.deleting)):
            same = there is not None and there.seen.uid == pod.uid
            state = there.node_state if there is not None and same else None
        return self.sightings.node(pod, state, now)

    def reconcile(self, step: Step = Step()) -> list[act.Action]:  # noqa: B008 - it is frozen
        cluster, killed_after = self.cluster, step.killed_after
        if cluster.object.gone:
            return []
        view = self.look(step.lag, step.object_lag)
        group = cluster.objects[self.object_place].group
        actions = plan(group, view, cluster.now)
        assert actions == plan(group, view, cluster.now), "a plan depends on nothing but its arguments"
        check_plan(actions, view)
        for done, action in enumerate(actions):
            if done == killed_after:
                break
            cluster.apply(action, actions, view, group)
            match action:
                case act.TellMembers(pods):
                    self.told = frozenset(pod.uid for pod in pods)
                case act.CreatePod(ordinal):
                    self.written[f"{NAME}-{ordinal}"] = len(cluster.history) - 1
                case act.MarkDrain(pod) | act.DeletePod(pod) | act.NoteShared(pod):
                    self.written[pod.name] = len(cluster.history) - 1
        self.last_desired = desired_replicas(group, view)  # written to the status
        if killed_after is not None:
            self.told, self.place, self.object_place = frozenset(), len(cluster.history) - 1, len(cluster.objects) - 1
            self.written.clear()
            self.sightings = Sightings()
        return actions


def check_plan(actions: list[act.Action], view: Snapshot) -> None:
    """What no plan may hold, whatever becomes of it."""
    creations = [action.ordinal for action in actions if isinstance(action, act.CreatePod)]
    assert len(creations) == len(set(creations)), "two creations of one ordinal"
    assert not set(creations) & {pod.ordinal for pod in view.pods}, "a creation beside a pod that is there"
    assert not creations or (view.prepared and view.finalizer and view.objects)
    touched = [action.pod.uid for action in actions if isinstance(action, act.DeletePod | act.MarkDrain)]
    assert len(touched) == len(set(touched)), "a pod is marked or deleted twice in one plan"


def happen(cluster: ModelCluster, step: Step) -> None:
    pods: list[ModelPod] = [cluster.pods[name] for name in sorted(cluster.pods)]
    pod = pods[step.number % len(pods)] if pods else None
    match step.happens:
        case "scale":
            happens.edit(cluster, replicas=step.number)
        case "suspend":
            happens.edit(cluster, suspend=not cluster.object.group.spec.suspend)
        case "change":
            happens.change_pods(cluster)
        case "filter":
            happens.filter_by(cluster, "abc"[step.number % 3])
        case "surge":
            update = cluster.object.group.spec.update
            happens.edit(cluster, update=update.model_copy(update={"surge": step.number % 2}))
        case "type":
            update = cluster.object.group.spec.update
            happens.edit(cluster, update=update.model_copy(update={"type": TYPES[step.number % len(TYPES)]}))
        case "engine":
            happens.change_pods(cluster, engine=tuple(Engine)[step.number % len(Engine)])
        case "claim":
            happens.claim(cluster)
        case "delete":
            happens.delete_object(cluster)
        case "broker":
            cluster.broker.up = not cluster.broker.up
        case "restart broker":
            happens.restart_broker(cluster)
        case "routes":
            cluster.routes = None if step.number > 4 else frozenset(sorted(QUEUES)[: step.number])
        case "forget finalizer":
            happens.forget_finalizer(cluster)
        case name if pod and name in TO_PODS:
            TO_PODS[name](cluster, pod)


TYPES = (None, UpdateType.ROLLING, UpdateType.RECREATE)
TO_PODS = {
    "delete pod": happens.delete_pod,
    "evict pod": happens.evict,
    "drain pod": happens.drain_pod,
    "hold pod": happens.hold_pod,
    "forget note": happens.forget_note,
    "quit pod": happens.quit_pod,
    "fail pod": happens.fail_pod,
    "restart pod": happens.restart_pod,
    "kill node": happens.kill_node,
    "cut node": happens.cut_node,
    "return node": happens.return_node,
    "remove node": happens.remove_node,
    "taint node": happens.taint_node,
}
TO_PODS_OF_OURS = [name for name in TO_PODS if name != "forget note"]  # then it is not known who differs
CALM = ["nothing"] * 5 + ["scale"] * 3 + ["change"] * 2
CHANGES = ["suspend", "suspend", "surge", "type", "filter", "filter", "engine", "claim", "claim", "delete"]
FAULTS = ["routes", "broker", "restart broker", "forget finalizer", *TO_PODS]

steps = st.builds(
    Step,
    happens=st.sampled_from([*CALM, *CHANGES, *FAULTS]),
    number=st.integers(0, 6),
    seconds=st.sampled_from([1.0, 1.0, 3.0, 10.0, 25.0]),
    killed_after=st.sampled_from([None, None, None, 0, 1, 2, 3, 5]),
    lag=st.sampled_from([0, 0, 0, 1, 2, 4]),
    object_lag=st.sampled_from([0, 0, 0, 1, 2]),
)
fates = st.builds(
    Fate,
    start=st.sampled_from([StartFate.QUICK] * 4 + list(StartFate)),
    drain=st.sampled_from([DrainFate.QUICK] * 4 + list(DrainFate)),
    joins=st.sampled_from([0.0, 5.0, 20.0, 100.0, NEVER]),
    hidden=st.sampled_from([False, False, False, True]),
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[ModelCluster, list[Step], bool, bool]:
    group = manifest(draw(st.integers(0, 5)))
    spec = group.spec.model_copy(
        update={
            "update": Update(surge=draw(st.integers(0, 1)), type=draw(st.sampled_from(TYPES))),
            "engine": draw(st.sampled_from([Engine.WORKER] * 2 + [Engine.CONTAINER, Engine.SPARK])),
            "shutdown": group.spec.shutdown.model_copy(update={"on_timeout": draw(st.sampled_from(OnTimeout))}),
            "deletion_policy": draw(st.sampled_from(DeletionPolicy)),
        }
    )
    cluster = ModelCluster(group.model_copy(update={"spec": spec}))
    cluster.fates = draw(st.lists(fates, max_size=16))
    # A few quiet steps, or the script would mostly be about the start; none, and the start would not be tried.
    script = [Step(seconds=4.0)] * draw(st.sampled_from([0, 4, 4, 4])) + draw(st.lists(steps, min_size=6, max_size=30))
    ends_deleted = draw(st.sampled_from([False, False, True]))
    broker_returns = draw(st.booleans())
    return cluster, script, ends_deleted, broker_returns


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds())
def test_whatever_happens_the_group_comes_to_its_manifest(
    world: tuple[ModelCluster, list[Step], bool, bool],
) -> None:
    cluster, script, ends_deleted, broker_returns = world
    operator = Operator(cluster)
    follow(cluster, operator, script)
    if ends_deleted:
        happens.delete_object(cluster)
    happens.heal(cluster, broker=broker_returns or cluster.object.deleting_since is None)
    come_to_rest(cluster, operator)


def follow(cluster: ModelCluster, operator: Operator, script: list[Step]) -> None:
    for step in script:
        happen(cluster, step)
        operator.reconcile(step)
        assert cluster.wrongs == []
        cluster.pass_time(step.seconds)


QUIET = [Step(seconds=4.0)] * 5
bumps = st.builds(
    Step,
    happens=st.sampled_from(["nothing"] * 5 + ["change"]),
    seconds=st.sampled_from([1.0, 2.0, 5.0]),
    # Not 0: an operator that is away for longer than a drain may take finds it late, and leaves the rest to SIGTERM.
    killed_after=st.sampled_from([None, None, 1, 2, 3]),
    lag=st.sampled_from([0, 0, 1, 2, 3]),
)


@settings(max_examples=100, deadline=None)
@given(
    replicas=st.integers(1, 4),
    surge=st.integers(0, 1),
    starts=st.lists(st.sampled_from([StartFate.QUICK, StartFate.SLOW]), max_size=12),
    script=st.lists(bumps, min_size=10, max_size=40),
)
def test_an_update_never_costs_more_than_one_member(
    replicas: int, surge: int, starts: list[StartFate], script: list[Step]
) -> None:
    cluster = ModelCluster(manifest(replicas, update={"surge": surge}))
    update(cluster, [Fate(start) for start in starts], script, at_least=replicas - 1 + surge)


@settings(max_examples=100, deadline=None)
@given(
    replicas=st.integers(2, 4),
    surge=st.integers(0, 1),
    # Beyond JOIN_LIMIT too: others are seen at the broker, so it is certain that this one is not.
    joins=st.lists(st.sampled_from([0.0, 5.0, 20.0, 2 * JOIN_LIMIT]), max_size=12),
    script=st.lists(bumps, min_size=10, max_size=40),
)
def test_an_update_of_somebody_s_own_consumers_waits_for_each_to_join(
    replicas: int, surge: int, joins: list[float], script: list[Step]
) -> None:
    group = manifest(replicas, engine="Container", worker=None, template=THEIRS, update={"surge": surge})
    cluster = ModelCluster(group)
    update(cluster, [Fate(joins=seconds) for seconds in joins], script, at_least=replicas - 1 + surge)


@settings(max_examples=100, deadline=None)
@given(
    replicas=st.integers(1, 4),
    engines=st.lists(st.sampled_from(Engine), min_size=2, max_size=5),
    drains=st.lists(st.builds(Fate, drain=st.sampled_from(DrainFate)), min_size=4, max_size=12),
    pause=st.integers(2, 8),
)
@example(replicas=3, engines=[Engine.WORKER, Engine.WORKER, Engine.SPARK, Engine.WORKER], drains=[Fate()] * 4, pause=7)
def test_a_spark_driver_shares_with_nobody_however_the_engine_is_changed(
    replicas: int, engines: list[Engine], drains: list[Fate], pause: int
) -> None:
    cluster = ModelCluster(manifest(replicas))
    cluster.fates = drains
    operator = Operator(cluster)
    for engine in engines:
        happens.change_pods(cluster, engine=engine)
        follow(cluster, operator, [Step(seconds=4.0)] * pause)
    happens.heal(cluster)
    come_to_rest(cluster, operator)


@settings(max_examples=200, deadline=None)
@given(
    replicas=st.integers(1, 4),
    surge=st.integers(0, 1),
    kind=st.sampled_from([None, None, UpdateType.RECREATE]),
    fates=st.lists(fates, max_size=12),
    script=st.lists(
        st.builds(
            Step,
            happens=st.sampled_from(["nothing"] * 3 + ["filter"] * 3 + ["change", "scale", "broker", *TO_PODS_OF_OURS]),
            number=st.integers(0, 4),
            seconds=st.sampled_from([1.0, 3.0, 10.0]),
            killed_after=st.sampled_from([None, None, 0, 1, 2, 3]),
            lag=st.sampled_from([0, 0, 1, 2, 3]),
            object_lag=st.sampled_from([0, 0, 1, 2]),
        ),
        min_size=5,
        max_size=30,
    ),
)
def test_members_that_have_to_agree_are_never_in_the_group_together_when_they_do_not(
    replicas: int, surge: int, kind: UpdateType | None, fates: list[Fate], script: list[Step]
) -> None:
    cluster = ModelCluster(manifest(replicas))
    happens.edit(cluster, update=Update(surge=surge, type=kind))
    operator = Operator(cluster)
    follow(cluster, operator, QUIET)
    cluster.fates = fates
    for step in script:
        follow(cluster, operator, [step])
        live = {pod.seen.shared["subscriptions"] for pod in cluster.pods.values() if pod.seen.shared}
        assert len(live) <= 1, "they differ"
    happens.heal(cluster)
    come_to_rest(cluster, operator)


def update(cluster: ModelCluster, fates: list[Fate], script: list[Step], at_least: int) -> None:
    """An update, and then some more, under which at least so many members consume."""
    operator = Operator(cluster)
    follow(cluster, operator, QUIET)
    cluster.fates = fates
    for step in [Step("change"), *script]:
        follow(cluster, operator, [step])
        well = sum(pod.consumes for pod in cluster.pods.values())
        assert well >= at_least, f"{well} members consume"
    happens.heal(cluster)  # nothing is calm before the slowest has joined
    come_to_rest(cluster, operator)
    assert not [event for event in cluster.events if event.warning], "in peace nobody is warned"


@settings(max_examples=100, deadline=None)
@given(
    replicas=st.integers(1, 4),
    surge=st.integers(0, 1),
    sick=st.lists(st.builds(Fate, start=st.sampled_from(StartFate)), min_size=1, max_size=8),
    pause=st.integers(0, 8),
)
def test_an_update_heals_what_is_broken(replicas: int, surge: int, sick: list[Fate], pause: int) -> None:
    cluster = ModelCluster(manifest(replicas, update={"surge": surge}))
    cluster.fates = sick
    operator = Operator(cluster)
    follow(cluster, operator, [*QUIET, Step("change"), *[Step(seconds=4.0)] * pause])
    cluster.fates = []
    happens.change_pods(cluster)
    come_to_rest(cluster, operator)


@settings(max_examples=150, deadline=None)
@given(
    replicas=st.integers(1, 4),
    policies=st.tuples(st.sampled_from(OnTimeout), st.sampled_from(DeletionPolicy)),
    drains=st.lists(st.builds(Fate, drain=st.sampled_from(DrainFate)), max_size=6),
    script=st.lists(
        st.builds(
            Step,
            happens=st.sampled_from(["broker", "nothing", "scale", "suspend", "engine", "change", "claim", *TO_PODS]),
            number=st.integers(0, 4),
            seconds=st.sampled_from([1.0, 3.0, 10.0]),
            killed_after=st.sampled_from([None, None, 0, 1, 3]),
            lag=st.sampled_from([0, 0, 1, 2]),
            object_lag=st.sampled_from([0, 0, 1]),
        ),
        max_size=10,
    ),
    deleted_at=st.integers(0, 10),
)
def test_a_deletion_ends_and_leaves_nothing_behind(
    replicas: int,
    policies: tuple[OnTimeout, DeletionPolicy],
    drains: list[Fate],
    script: list[Step],
    deleted_at: int,
) -> None:
    cluster = ModelCluster(manifest(replicas, deletionPolicy=policies[1]))
    shutdown = cluster.object.group.spec.shutdown.model_copy(update={"on_timeout": policies[0]})
    happens.edit(cluster, shutdown=shutdown)
    cluster.fates = drains
    operator = Operator(cluster)
    follow(cluster, operator, [*QUIET, *script[:deleted_at]])
    happens.delete_object(cluster)
    follow(cluster, operator, script[deleted_at:])
    for pod in cluster.pods.values():
        pod.held = False  # that is up to whoever holds it
        if pod.seen.engine is not Engine.WORKER:
            happens.remove_node(cluster, pod)  # and this to whoever knows that it is down
    come_to_rest(cluster, operator)


def come_to_rest(cluster: ModelCluster, operator: Operator) -> None:
    calm = 0
    for _ in range(QUIET_STEPS):
        actions = operator.reconcile()
        assert cluster.wrongs == []
        cluster.pass_time(QUIET_SECONDS)
        calm = 0 if actions else calm + 1
        if cluster.object.gone or (calm == CALM_STEPS and cluster.object.deleting_since is None):
            break
    if cluster.object.deleting_since is not None:
        assert cluster.object.gone, f"the deletion does not end: {actions}"
        if cluster.object.by_force:
            return  # somebody had taken the finalizer away: the garbage collector sees to the pods
        assert not cluster.pods, "pods are left"
        gave_up = deletion_late(cluster.object.group, operator.look(), cluster.now)
        others = cluster.object.taken_by is not None  # then the members there see to what was left behind
        assert gave_up or others or not (cluster.broker.up and cluster.broker.locks), "locks are left"
        return
    assert calm, f"still at it: {actions}"
    view = operator.look()
    group = cluster.object.group
    asked = asked_of(group, view)
    ordinals = sorted(pod.ordinal for pod in view.pods)
    assert ordinals == list(range(len(ordinals)))
    assert min(asked, len(QUEUES)) <= len(ordinals) <= asked
    assert all(pod.ready and pod.drain is None and pod.revision == view.revision for pod in view.pods)
    assert balanced(group, view) or not ordinals
    living = {pod.client_id for pod in cluster.pods.values()}
    assert set(cluster.broker.locks.values()) <= living, "locks of dead members are left"
    assert all(happens.may_be_evicted(cluster, pod) for pod in cluster.pods.values()), "a node cannot be drained"
    assert operator.reconcile() == [], "at rest there is nothing to do"
