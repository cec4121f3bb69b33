"""A pod that should have ended and has not: may it be removed by force? A pure decision.

Kubernetes removes the pod's object, and its ordinal is free: another takes its place, whether or not the process has
ended. So that is done only where nothing can come of it:

- its Node is gone, or somebody has tainted it out-of-service, which says that nothing runs there any more;
- its Node does not answer (NotReady, or unreachable), and the pod's members consume only under locks: what may still
  run there stops when its lease is out, and nobody takes its queues before.

A Spark driver, somebody's own consumer, or a worker with Eager handover has no lease: on a node that is only cut off it
would go on beside its successor. It is kept until the Node object goes or is tainted; StatefulSet does the same. On a
node that answers, the kubelet ends the pod, however long that takes. In all these cases people are told.

`pod.node_state` is known only of pods that are overdue and do not answer themselves; times are our own (sightings.py).
"""

from collections.abc import Iterator

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine
from rocketfleet.consumer.settings import Handover
from rocketfleet.controller.planning.actions import Action, DeletePod, Emit, Event, EventReason
from rocketfleet.controller.planning.snapshot import NodeState, Pod
from rocketfleet.controller.resources.pod import grace_of
from rocketfleet.controller.resources.shared_settings import HANDOVER

POD_STUCK_SECONDS = (
    15.0  # seconds that a node is seen to be away, and the grace period over, before anything is done about it
)


def remove_stuck(group: ConsumerGroup, pod: Pod, now: float) -> Iterator[Action]:
    """What to do about a pod whose deletion was asked for."""
    if pod.deleting is None or pod.node_state is None or pod.node_since is None:
        return
    nothing_runs = pod.node_state in (NodeState.GONE, NodeState.OUT_OF_SERVICE)
    over = pod.node_since if nothing_runs else max(pod.node_since, over_at(group, pod, pod.deleting))
    if now <= over + POD_STUCK_SECONDS:
        return
    forced = nothing_runs or (pod.node_state is NodeState.SILENT and takes_locks(group, pod))
    text = f"{pod.name} should have ended long ago. {_about(group, pod)}"
    yield Emit(Event(EventReason.STUCK, text, warning=True))
    if forced:
        yield DeletePod(pod, force=True)


def over_at(group: ConsumerGroup, pod: Pod, grace_over: float) -> float:
    """When a pod that is deleted should have ended. On a node that is lost nobody finishes anything: there it gets what
    a drain gets, and not the whole day that a pod with onTimeout Wait may take.
    """
    if not pod.lost or pod.deleting_since is None:
        return grace_over
    return min(grace_over, pod.deleting_since + grace_of(group))


def takes_locks(group: ConsumerGroup, pod: Pod) -> bool:
    """Whether its members consume a queue only under its lock: as it was made, else as the manifest says now."""
    handover = (pod.shared or {}).get(HANDOVER, group.spec.rebalance.handover)
    return (pod.engine or group.spec.engine) is Engine.WORKER and handover == Handover.EXCLUSIVE


def _about(group: ConsumerGroup, pod: Pod) -> str:
    by_hand = f"kubectl delete pod {pod.name} --force --grace-period=0"
    match pod.node_state:
        case NodeState.GONE:
            return f"Its node {pod.node} is gone, so it is removed by force"
        case NodeState.OUT_OF_SERVICE:
            return f"Its node {pod.node} is tainted out-of-service, so it is removed by force"
        case NodeState.SILENT if takes_locks(group, pod):
            return (
                f"Its node {pod.node} does not answer, so it is removed by force. Its leases on queues are over, or "
                "will be before others take them"
            )
        case NodeState.SILENT:
            return (
                f"Its node {pod.node} does not answer, but it may still run there, and nothing would keep it from "
                "consuming beside its successor: it is kept. When the node is certainly down, delete the Node or taint "
                f"it: kubectl taint node {pod.node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
            )
        case NodeState.HIDDEN:
            return (
                f"The operator may not read Nodes, so it cannot know whether {pod.node} is down, and removes nothing "
                f"by force. When it certainly is: {by_hand}"
            )
        case _:
            return (
                f"Its node {pod.node} answers, so it is not removed by force: look at the pod's finalizers and "
                "volumes, and at the node's container runtime"
            )
