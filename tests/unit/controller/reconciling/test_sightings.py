"""Moments on our own clock: however wrong other clocks are, nothing comes before its time."""

from dataclasses import fields
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.controller.plan_parts import pod

from rocketfleet.controller.planning.snapshot import DrainMark, NodeState, Pod
from rocketfleet.controller.reconciling.sightings import Sightings

SKEWS = st.floats(-1e6, 1e6)
THERE = 5_000_000.0  # their clock


@given(SKEWS, st.floats(0, 1e5))
def test_a_deletion_and_a_drain_count_from_when_we_saw_them(skew: float, grace: float) -> None:
    sightings = Sightings()
    for passed in (0.0, 7.0):
        wall = THERE + skew + passed
        ours = sightings.pod(
            pod(0, deleting=THERE + grace, deleting_since=THERE, drain=DrainMark(THERE - 100, "why")), 50 + passed, wall
        )
        assert ours.deleting_since == 50
        assert ours.deleting is not None
        assert abs(ours.deleting - 50 - grace) < 1e-3
        assert ours.drain == DrainMark(50, "why")
        sightings.keep(["u0"])


@given(SKEWS)
def test_pods_that_come_while_we_look_are_as_old_as_we_saw_them_grow(skew: float) -> None:
    sightings = Sightings()
    sightings.keep([])
    for passed in (0.0, 9.0):
        ours = sightings.pod(pod(0, created=THERE, ready_since=THERE + 1), 50 + passed, THERE + skew + passed)
        assert (ours.created, ours.ready_since) == (50, 50)
    again = sightings.pod(pod(0, created=THERE, ready_since=THERE + 8), 60, THERE + skew)
    assert (again.created, again.ready_since) == (50, 60), "it was not ready in between"


def test_at_the_first_look_others_are_believed_about_the_age_of_pods() -> None:
    ours = Sightings().pod(pod(0, created=THERE - 300, ready_since=THERE - 200), 50, THERE)
    assert (ours.created, ours.ready_since) == (-250, -150)
    future = Sightings().pod(pod(0, created=THERE + 300, ready_since=THERE + 300), 50, THERE)
    assert (future.created, future.ready_since) == (50, 50)


def test_no_moment_of_a_pod_is_left_on_another_clock() -> None:
    ours_already = {"node_since"}
    moments: dict[str, Any] = {
        one.name: THERE for one in fields(Pod) if "float" in str(one.type) and one.name not in ours_already
    }
    assert {"created", "ready_since", "starting_since", "deleting"} <= moments.keys()
    ours = Sightings().pod(pod(0, **moments), 50, THERE)
    assert {name: getattr(ours, name) for name in moments} == dict.fromkeys(moments, 50)


def test_a_node_counts_as_silent_only_without_a_break() -> None:
    sightings = Sightings()
    seen = [
        (NodeState.SILENT, 10.0, 10.0),
        (NodeState.SILENT, 15.0, 10.0),
        (NodeState.ANSWERS, 16.0, 16.0),
        (NodeState.SILENT, 20.0, 20.0),
        (None, 25.0, None),  # nobody could say
        (NodeState.SILENT, 30.0, 30.0),
        (NodeState.GONE, 31.0, 31.0),
    ]
    for state, now, since in seen:
        found = sightings.node(pod(0), state, now)
        assert (found.node_state, found.node_since) == (state, since)


def test_what_is_gone_is_forgotten() -> None:
    sightings = Sightings()
    assert sightings.since("u0", "deleting", 10) == 10
    sightings.keep(["u1"])
    assert sightings.since("u0", "deleting", 20) == 20
