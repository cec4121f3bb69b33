"""What people and fate do to the model cluster. None of it is the planner's doing; all of it may come at any moment."""

from dataclasses import replace

from tests.unit.controller.model_cluster import SILENCE, ModelCluster
from tests.unit.controller.model_parts import GRACE, QUEUES, DrainFate, ModelPod, StartFate

from rocketfleet.api.spec import Engine, TopicSubscription
from rocketfleet.controller.planning.snapshot import DrainMark, NodeState, PodPhase
from rocketfleet.worker.configuration.setting_table import OnTimeout

# -- people -----------------------------------------------------------------------------------------------------------


def edit(cluster: ModelCluster, **changes: object) -> None:
    """A change of the spec that leaves the pods as they are."""
    if not cluster.object.gone:
        spec = cluster.object.group.spec.model_copy(update=changes)
        cluster.object.group = cluster.object.group.model_copy(update={"spec": spec})
    cluster.record()


def change_pods(cluster: ModelCluster, **changes: object) -> None:
    """A change of the spec that makes a new revision, which has to be prepared at the broker."""
    cluster.object.revision += 1
    cluster.object.prepared = False
    edit(cluster, **changes)


def filter_by(cluster: ModelCluster, expression: str) -> None:
    """Another expression: members with the old one and with the new one may not be in the group together."""
    subscriptions = [TopicSubscription(topic="orders", expression=expression)]
    if subscriptions != cluster.object.group.spec.subscriptions:
        change_pods(cluster, subscriptions=subscriptions)


def forget_note(cluster: ModelCluster, pod: ModelPod) -> None:
    """As if an older operator had made it."""
    pod.seen = replace(pod.seen, shared=None)
    cluster.record()


def delete_object(cluster: ModelCluster) -> None:
    obj = cluster.object
    if obj.deleting_since is None:
        obj.deleting_since = cluster.now
        obj.gone = obj.by_force = not obj.finalizer
        if obj.gone:  # nothing held it: the garbage collector takes its pods
            for pod in cluster.pods.values():
                delete_pod(cluster, pod)
    cluster.record()


def claim(cluster: ModelCluster) -> None:
    """An older object with this group comes into sight, or goes."""
    if not cluster.object.gone:
        cluster.object.taken_by = None if cluster.object.taken_by else "billing/orders"
    cluster.record()


def forget_finalizer(cluster: ModelCluster) -> None:
    """Somebody patches it away."""
    if cluster.object.deleting_since is None:
        cluster.object.finalizer = False
    cluster.record()


def delete_pod(cluster: ModelCluster, pod: ModelPod) -> None:
    """`kubectl delete pod`."""
    if pod.seen.deleting is None:
        pod.seen = replace(pod.seen, deleting=cluster.now + GRACE, deleting_since=cluster.now)
        if pod.seen.phase is PodPhase.RUNNING and not pod.stopped and pod.node_alive:
            cluster.begin_drain(pod)
    cluster.record()


def may_be_evicted(cluster: ModelCluster, pod: ModelPod) -> bool:
    """What the API server says, as policy/v1 has it: a pod that is not ready may always go."""
    healthy = [one for one in cluster.pods.values() if one.seen.ready and one.seen.deleting is None]
    return pod not in healthy or len(healthy) - (cluster.object.kept or 0) >= 1


def evict(cluster: ModelCluster, pod: ModelPod) -> None:
    if may_be_evicted(cluster, pod):
        delete_pod(cluster, pod)


def drain_pod(cluster: ModelCluster, pod: ModelPod) -> None:
    """Somebody asks for one pod to be drained."""
    if pod.seen.drain is None:
        pod.seen = replace(pod.seen, drain=DrainMark(cluster.now, "asked for"))
    cluster.record()


def hold_pod(cluster: ModelCluster, pod: ModelPod) -> None:
    """Somebody puts a finalizer on it: however it is deleted, it stays."""
    pod.held = True


# -- fate -------------------------------------------------------------------------------------------------------------


def quit_pod(cluster: ModelCluster, pod: ModelPod) -> None:
    """Its worker drains and ends, and nobody of us asked it to."""
    if pod.consumes and pod.node_alive:
        cluster.begin_drain(pod)
        pod.drain_ends = cluster.now + 1
    cluster.record()


def fail_pod(cluster: ModelCluster, pod: ModelPod) -> None:
    """The node's pressure ends it for good."""
    if not pod.seen.ended and pod.node_alive:
        cluster.stop(pod)
        pod.seen = replace(pod.seen, phase=PodPhase.FAILED, ready=False, trouble="Evicted")
    cluster.record()


def restart_pod(cluster: ModelCluster, pod: ModelPod) -> None:
    """Its process crashes, and comes back."""
    if pod.seen.phase is PodPhase.RUNNING and pod.node_alive:
        cluster.stop(pod)
        pod.start_again(cluster.now)
        pod.seen = replace(pod.seen, ready=False, ready_since=None)
    cluster.record()


def kill_node(cluster: ModelCluster, pod: ModelPod) -> None:
    """Its node is gone without a word; Kubernetes asks for the pod's deletion, and nobody answers."""
    if pod.node_alive and not pod.seen.ended:
        if pod.client_id in cluster.broker.members:
            cluster.broker.members[pod.client_id] = cluster.now + SILENCE
        pod.stopped, pod.member = True, False
        _lose_node(cluster, pod)
    cluster.record()


def cut_node(cluster: ModelCluster, pod: ModelPod) -> None:
    """Kubernetes does not hear of its node any more, but the broker does: it goes on consuming."""
    if pod.node_alive and not pod.seen.ended:
        _lose_node(cluster, pod)
    cluster.record()


def _lose_node(cluster: ModelCluster, pod: ModelPod) -> None:
    pod.node_alive, pod.node_state = False, NodeState.SILENT
    pod.seen = replace(pod.seen, ready=False, ready_since=None)
    if pod.seen.deleting is None:
        pod.seen = replace(pod.seen, deleting=cluster.now + GRACE, deleting_since=cluster.now, lost=True)


def remove_node(cluster: ModelCluster, pod: ModelPod) -> None:
    """Its node is certainly down, and somebody deletes the Node."""
    _end_node(cluster, pod, NodeState.GONE)


def taint_node(cluster: ModelCluster, pod: ModelPod) -> None:
    """The same, said by the taint out-of-service."""
    _end_node(cluster, pod, NodeState.OUT_OF_SERVICE)


def _end_node(cluster: ModelCluster, pod: ModelPod, state: NodeState) -> None:
    if pod.node_state is NodeState.SILENT:
        if not pod.stopped:
            cluster.stop(pod)
        pod.node_state = state
    cluster.record()


def return_node(cluster: ModelCluster, pod: ModelPod) -> None:
    """It is back, learns of the deletion, and ends the pod as it should."""
    if pod.node_state is NodeState.SILENT:
        pod.node_alive, pod.node_state = True, NodeState.ANSWERS
        if not pod.stopped and pod.seen.phase is PodPhase.RUNNING:
            cluster.begin_drain(pod)
    cluster.record()


def restart_broker(cluster: ModelCluster) -> None:
    """It forgets who holds which lock; members are back at once."""
    cluster.broker.locks.clear()


def heal(cluster: ModelCluster, *, broker: bool = True) -> None:
    """Faults stop: what is wanted gets well. A drain that hangs is left to its time limit, if it has one, and what is
    not wanted stays as bad as it is: getting rid of it is the operator's part."""
    cluster.broker.up = cluster.broker.up or broker
    cluster.routes = QUEUES
    if not cluster.object.gone:  # else it went as it was: another's
        cluster.object.taken_by = None
    cluster.record()
    cluster.fates.clear()
    spec = cluster.object.group.spec
    waits = spec.shutdown.on_timeout is OnTimeout.WAIT and cluster.object.deleting_since is None
    for pod in cluster.pods.values():
        pod.held = False
        if pod.seen.engine is not Engine.WORKER:
            remove_node(cluster, pod)  # else it is kept for as long as it may run
        extra = spec.update.surge  # an update waits for its extra pod: it may be a warning
        wanted = pod.seen.ordinal < cluster.asked + extra and pod.seen.revision == str(cluster.object.revision)
        if wanted and pod.seen.drain is None:
            if pod.fate.start.value < 0:
                pod.fate, pod.born = replace(pod.fate, start=StartFate.QUICK), cluster.now
            pod.fate = replace(pod.fate, joins=min(pod.fate.joins, 10.0))
        if waits:
            pod.fate = replace(pod.fate, drain=DrainFate.QUICK)
            pod.drain_ends = None if pod.drain_ends is None else cluster.now + 1
            offsets = (pod.seen.outcome.offsets if pod.seen.outcome is not None else None) or {}
            for queue, offset in offsets.items():
                cluster.broker.committed[queue] = max(cluster.broker.committed[queue], offset)
