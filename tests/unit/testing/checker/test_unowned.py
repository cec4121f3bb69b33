"""Queues without an owner: for how long, after what."""

import pytest
from tests.unit.testing.checker.story import OTHER, QUEUE, Story, found


def handed_over(after: float) -> Story:
    """m1 has the queue, and gives it to m2 at 100."""
    story = Story().joined(0, "m1", "m2").owns(1, "m1", QUEUE, OTHER).owns(2, "m2")
    return story.owns(100, "m1", OTHER).owns(100 + after, "m2", QUEUE).ended(300)


def test_a_handover_takes_some_seconds_at_most() -> None:
    assert handed_over(4.5).verdict().ok
    verdict = handed_over(6.0).verdict()
    assert found(verdict) == {"unowned": 1}
    assert "orders@broker-a/0 had no owner for 6.0 s, 1.0 s longer than promised, as its members say" in str(verdict)


def test_a_queue_that_nobody_takes_is_unowned_until_the_end() -> None:
    story = Story().joined(0, "m1", "m2").owns(1, "m1", QUEUE).owns(100, "m1").ended(200)
    assert "had no owner for 100.0 s" in str(story.verdict())


def test_the_promises_may_be_others() -> None:
    assert handed_over(6.0).verdict(owned_after_handover=7.0).ok


# name, target, from, until, details, for how long from 100 on a queue may be without an owner
FAULTS = [
    ("killed", "m3", 98.0, None, {}, 5),
    ("killed", "m3", 104.0, None, {}, 10),
    ("killed", "m3", 106.0, None, {}, 5),  # it was late by then
    ("frozen", "m3", 100.0, 140.0, {}, 46),
    ("frozen", "m3", 100.0, 190.0, {}, 66),
    ("cut", "m3", 99.0, 120.0, {}, 32),
    ("cut", "m3", 99.0, 120.0, {"broker": "broker-b"}, 5),
    ("broker_killed", "broker-a", 99.0, 120.0, {}, 32),
    ("broker_killed", "broker-b", 99.0, 120.0, {}, 5),  # queues of a healthy broker stay owned
    ("broker_stopped", "broker-a", 99.0, 110.0, {}, 22),
    ("name_server_killed", "namesrv-1", 99.0, 120.0, {}, 5),
    ("slowed", "m1", 90.0, 120.0, {}, 5),
    ("clock_jumped", "broker-a", 99.0, None, {"seconds": -60}, 65),
]


@pytest.mark.parametrize(("name", "target", "at", "until", "details", "allowed"), FAULTS)
def test_each_fault_puts_the_deadline_off_by_as_much_as_is_promised(
    name: str, target: str, at: float, until: float | None, details: dict[str, object], allowed: float
) -> None:
    for after, families in ((allowed - 0.1, {}), (allowed + 0.1, {"unowned": 1})):
        story = handed_over(after).joined(0, "m3").fault(at, name, target, until, **details)
        assert found(story.verdict()) == families


def test_a_newcomer_finds_no_broker_while_the_name_server_is_away() -> None:
    story = handed_over(15).fault(99, "name_server_killed", "namesrv-1", until=110).joined(101, "m4")
    assert story.verdict().ok


def test_a_member_that_joins_or_leaves_makes_another_handover() -> None:
    assert handed_over(9).joined(104.5, "m4").verdict().ok
    assert found(handed_over(9).joined(103, "m4").verdict()) == {"unowned": 1}


def test_without_members_nobody_can_own_it() -> None:
    story = Story().joined(0, "m1").owns(1, "m1", QUEUE).fault(50, "killed", "m1").joined(200, "m2")
    assert story.owns(205, "m2", QUEUE).ended(300).verdict().ok
    late = Story().joined(0, "m1").owns(1, "m1", QUEUE).fault(50, "killed", "m1").joined(200, "m2")
    assert found(late.owns(215, "m2", QUEUE).ended(300).verdict()) == {"unowned": 1}
    left = Story().joined(0, "m1").owns(1, "m1", QUEUE).fault(50, "killed", "m1")
    assert left.ended(300).verdict().ok


def test_a_dead_member_owns_nothing() -> None:
    story = Story().joined(0, "m1", "m2").owns(1, "m1", QUEUE).owns(1, "m2", OTHER).fault(50, "killed", "m1")
    assert found(story.ended(300).verdict()) == {"unowned": 1}


def test_a_handler_that_runs_is_waited_for() -> None:
    def story(end: float) -> Story:
        return handed_over(14).sent(1, 0).handled("m1", 0, 99, end)

    assert story(110).verdict().ok
    assert found(story(108).verdict()) == {"unowned": 1}
    assert found(handed_over(36).sent(1, 0).handled("m1", 0, 99, 140).verdict()) == {"unowned": 1}  # not for ever


def seen(*looks: tuple[float, list[str]]) -> Story:
    story = Story().joined(0, "m1", "m2")
    for at, owners in looks:
        story.owners(at, queue=owners)
    return story.ended(looks[-1][0])


def test_what_the_broker_says_counts_from_look_to_look() -> None:
    assert seen((90, ["m1"]), (100, []), (104, []), (105, ["m2"])).verdict().ok
    assert seen((90, ["m1"]), (100, []), (104, []), (200, ["m2"])).verdict().ok  # nobody saw more than 4 s of it
    late = seen((90, ["m1"]), (100, []), (108, []), (109, ["m2"])).verdict()
    assert "had no owner for 8.0 s, 3.0 s longer than promised, as the broker says" in str(late)
    assert found(seen((90, ["m1"]), (100, []), (200, [])).verdict()) == {"unowned": 1}


def test_a_new_queue_is_seen_when_routes_are_refreshed() -> None:
    def grown(taken: float) -> Story:
        looks: list[tuple[float, list[str]]] = [(100.0 + second, []) for second in range(int(taken))]
        return seen(*looks, (100 + taken, ["m1"])).change(100, "topic_grew", topic="orders")

    assert grown(38).verdict().ok
    assert found(grown(45).verdict()) == {"unowned": 1}


def test_one_stretch_is_one_finding_whoever_saw_it() -> None:
    story = handed_over(20).owners(101, queue=[]).owners(119, queue=[]).owners(121, queue=["m2"])
    assert found(story.verdict()) == {"unowned": 1}


def test_a_topic_that_is_deleted_has_no_owners() -> None:
    story = Story().joined(0, "m1").owns(1, "m1", QUEUE).owns(50, "m1").change(49, "topic_deleted", topic="orders")
    assert story.ended(300).verdict().ok
