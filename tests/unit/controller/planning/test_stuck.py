"""When a pod that does not end is removed by force, and when it is kept whatever happens."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.controller.model_parts import group_of, manifest
from tests.unit.controller.plan_parts import NOW, pod, quiet, snapshot

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine
from rocketfleet.controller.planning.actions import Action, DeletePod, Emit, EventReason
from rocketfleet.controller.planning.plan import plan
from rocketfleet.controller.planning.snapshot import NodeState, Pod
from rocketfleet.controller.planning.stuck import POD_STUCK_SECONDS
from rocketfleet.controller.resources.pod import grace_of
from rocketfleet.controller.resources.shared_settings import shared_settings_of

EAGER = group_of(rebalance={"handover": "Eager"})
AWAY = [NodeState.SILENT, NodeState.GONE, NodeState.OUT_OF_SERVICE]


def stuck(state: NodeState | None, since: float = NOW, **changes: Any) -> Pod:
    """Its grace period ended long ago; its node has been in this state since then."""
    facts = {"ready": False, "deleting": NOW - 3600, "deleting_since": NOW - 3640, "node": "w1", **changes}
    return pod(1, node_state=state, node_since=None if state is None else since, **facts)


def steps(one: Pod, now: float, group: ConsumerGroup | None = None) -> list[Action]:
    return plan(group or manifest(2), snapshot(pod(0), one), now)


def told(actions: list[Action]) -> str:
    (event,) = [action.event for action in actions if isinstance(action, Emit)]
    assert event.reason is EventReason.STUCK
    assert event.warning
    return event.message


@pytest.mark.parametrize("state", AWAY)
def test_a_pod_whose_node_is_away_is_removed_after_a_while(state: NodeState) -> None:
    one = stuck(state)
    assert steps(one, NOW + POD_STUCK_SECONDS) == []
    actions = steps(one, NOW + POD_STUCK_SECONDS + 1)
    assert quiet(actions) == [DeletePod(one, force=True)]
    assert "w1" in told(actions)
    assert actions == steps(one, NOW + POD_STUCK_SECONDS + 9), (
        "a text that changes with time would be told again and again"
    )


@pytest.mark.parametrize("state", [None, NodeState.ANSWERS, NodeState.HIDDEN])
def test_a_pod_whose_node_answers_or_is_not_known_is_never_removed_by_force(state: NodeState | None) -> None:
    assert quiet(steps(stuck(state), NOW + 1e6)) == []


def test_people_are_told_why_it_is_kept_and_what_to_do() -> None:
    assert steps(stuck(None), NOW + 1e6) == []
    assert "finalizers" in told(steps(stuck(NodeState.ANSWERS), NOW + 1e6))
    assert "may not read Nodes" in told(steps(stuck(NodeState.HIDDEN), NOW + 1e6))
    text = told(steps(stuck(NodeState.SILENT), NOW + 1e6, EAGER))
    assert "kubectl taint node w1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute" in text


@pytest.mark.parametrize(
    ("group", "changes"),
    [
        (None, {"engine": Engine.SPARK}),
        (None, {"engine": Engine.CONTAINER}),
        (EAGER, {}),
        (None, {"shared": shared_settings_of(EAGER)}),  # the manifest says Exclusive by now
    ],
    ids=["spark", "container", "eager", "was-eager"],
)
def test_who_has_no_lease_is_kept_while_its_node_may_still_run_it(
    group: ConsumerGroup | None, changes: dict[str, Any]
) -> None:
    assert quiet(steps(stuck(NodeState.SILENT, **changes), NOW + 1e6, group)) == []
    for state in (NodeState.GONE, NodeState.OUT_OF_SERVICE):
        one = stuck(state, **changes)
        assert quiet(steps(one, NOW + POD_STUCK_SECONDS + 1, group)) == [DeletePod(one, force=True)]


def test_what_a_pod_was_made_with_counts() -> None:
    one = stuck(NodeState.SILENT, shared=shared_settings_of(manifest(2)))
    assert quiet(steps(one, NOW + POD_STUCK_SECONDS + 1, EAGER)) == [DeletePod(one, force=True)]


def test_within_its_grace_period_a_pod_on_a_silent_node_is_left_alone() -> None:
    one = stuck(NodeState.SILENT, deleting=NOW + 40, deleting_since=NOW)
    assert steps(one, NOW + 40 + POD_STUCK_SECONDS) == []
    assert quiet(steps(one, NOW + 40 + POD_STUCK_SECONDS + 1)) == [DeletePod(one, force=True)]


def test_on_a_node_that_is_lost_nobody_gets_the_day_that_one_that_waits_may_take() -> None:
    group = manifest(2)
    one = stuck(NodeState.SILENT, deleting=NOW + 86_400, deleting_since=NOW)
    assert quiet(steps(one, NOW + 3600)) == []
    lost = replace(one, lost=True)
    limit = NOW + grace_of(group) + POD_STUCK_SECONDS
    assert steps(lost, limit) == []
    assert quiet(steps(lost, limit + 1)) == [DeletePod(lost, force=True)]


def test_a_pod_that_nobody_deletes_is_not_touched() -> None:
    for state in AWAY:
        one = pod(1, ready=False, node="w1", node_state=state, node_since=NOW - 1e6)
        assert quiet(steps(one, NOW)) == []
