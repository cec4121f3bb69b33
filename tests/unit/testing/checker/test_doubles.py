"""Two members inside handlers of one queue: what excuses it, from when on, and what does not."""

import pytest
from tests.unit.testing.checker.story import OTHER, Story, found


def overlapping(begin: float = 100.0, end: float = 104.0, other: float = 103.0) -> Story:
    """m1 is inside from begin to end, and m2 begins the next message at `other`."""
    story = Story().joined(0, "m1", "m2").sent(1, 0, 1)
    return story.handled("m1", 0, begin, end).handled("m2", 1, other, other + 1)


def test_one_after_the_other_is_no_double() -> None:
    assert overlapping(other=104.0).verdict().ok


def test_two_at_once_are_a_double() -> None:
    verdict = overlapping().verdict()
    assert found(verdict) == {"double": 1}
    assert (
        "m2 began offset 1 of orders@broker-a/0 while m1 was inside its handler with offset 0 for 1.000 s more"
        in str(verdict)
    )


def test_the_same_member_or_another_queue_is_none() -> None:
    assert Story().sent(1, 0, 1).handled("m1", 0, 2, 9).handled("m1", 1, 3, 9).verdict().ok
    assert Story().sent(1, 0).sent(1, 0, queue=OTHER).handled("m1", 0, 2, 9).handled(
        "m2", 0, 3, 9, queue=OTHER
    ).verdict().ok  # fmt: skip


def test_where_members_do_not_wait_for_each_other_it_is_no_finding() -> None:
    assert overlapping().verdict(exclusive=False).ok


def test_a_killed_member_is_inside_until_it_is_killed() -> None:
    story = Story().joined(0, "m1", "m2").sent(1, 0).handled("m1", 0, 100, None).handled("m2", 0, 103, 104)
    assert found(story.verdict()) == {"double": 1}
    assert story.fault(102, "killed", "m1").verdict().ok
    story.events = [event for event in story.events if event.kind != "fault"]
    assert found(story.fault(103.5, "killed", "m1").verdict()) == {"double": 1}


def test_a_member_that_writes_after_its_fault_was_noted_lived_a_little_longer() -> None:
    story = Story().joined(0, "m1", "m2").sent(1, 0, 1).fault(99.9, "killed", "m1").handled("m1", 0, 100, None)
    assert story.handled("m2", 0, 100.5, 101).handled("m2", 1, 101, 102).verdict().ok


# name, target, from, until, details, whether it excuses m2's begin at 103 while m1 is inside from 100 to 104
FAULTS = [
    ("cut", "m1", 101.0, 110.0, {}, True),
    ("cut", "m1", 102.0, 110.0, {}, False),  # m2 began before m1 was away for long enough
    ("cut", "m1", 101.0, 102.0, {}, False),  # away for too short a time
    ("cut", "m1", 101.0, 110.0, {"broker": "broker-b"}, False),
    ("cut", "m2", 101.0, 110.0, {}, False),  # it is m1 that has to be away
    ("cut", "m2", 60.0, 110.0, {}, True),  # m2 lost the queue long ago, and goes on with what it had pulled
    ("frozen", "m1", 50.0, 110.0, {}, True),
    ("frozen", "m1", 80.0, 110.0, {}, False),  # its lease is not out
    ("lossy", "m1", 101.0, 110.0, {}, True),
    ("slowed", "m1", 50.0, 110.0, {}, False),
    ("killed", "m2", 101.0, None, {}, False),
    ("broker_killed", "broker-a", 101.0, 102.5, {}, False),  # it forgot all locks, but nobody else may have them yet
    ("broker_stopped", "broker-a", 20.0, 110.0, {}, True),
    ("broker_cut", "broker-a", 95.0, 110.0, {}, False),  # owners keep their queues for a minute
    ("clock_jumped", "broker-a", 101.0, None, {"seconds": 60}, True),
    ("clock_jumped", "broker-a", 101.0, None, {"seconds": 20}, False),
    ("clock_jumped", "broker-b", 101.0, None, {"seconds": 60}, False),
]


@pytest.mark.parametrize(("name", "target", "at", "until", "details", "excuses"), FAULTS)
def test_a_fault_excuses_it_only_from_when_the_promise_ends(
    name: str, target: str, at: float, until: float | None, details: dict[str, object], excuses: bool
) -> None:
    verdict = overlapping().fault(at, name, target, until, **details).verdict()
    assert found(verdict) == ({} if excuses else {"double": 1})


def test_what_a_member_begins_after_it_is_back_is_not_excused() -> None:
    story = Story().joined(0, "m1", "m2").sent(1, 0, 1).handled("m2", 0, 100, 104).handled("m1", 1, 103, 104)
    assert story.fault(95, "cut", "m1", until=102.5).verdict().ok
    story.events = [event for event in story.events if event.kind not in ("fault", "healed")]
    assert found(story.fault(95, "cut", "m1", until=101).verdict()) == {"double": 1}


def test_a_handler_is_waited_for_for_as_long_as_a_handover_takes() -> None:
    assert overlapping(begin=70, end=104, other=101).verdict().ok
    assert found(overlapping(begin=72, end=104, other=101).verdict()) == {"double": 1}
