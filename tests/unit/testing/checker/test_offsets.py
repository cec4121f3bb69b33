"""Offsets that went back, and backlogs at the end."""

import pytest
from tests.unit.testing.checker.story import OTHER, QUEUE, Story, found

from rocketfleet.testing.history import EventKind


def back(to: int = 60) -> Story:
    """50 at 10 s, 100 at 20 s, less at 30 s, and then again more."""
    return Story().committed(10, 50).committed(20, 100).committed(30, to).committed(40, 200)


def test_an_offset_that_goes_back_is_a_finding() -> None:
    verdict = back().verdict()
    assert found(verdict) == {"went back": 1}
    assert "the offset of orders@broker-a/0 was 100 and then 60, 10.000 s later" in str(verdict)
    assert back(100).verdict().ok


# name, target, from, until, the offset afterwards, whether it explains it
FAULTS = [
    ("broker_killed", "broker-a", 25.0, 28.0, 60, True),
    ("broker_killed", "broker-a", 25.0, 28.0, 40, False),  # it forgot more than it had not saved
    ("broker_killed", "broker-a", 27.0, 28.0, 99, False),  # 100 was seen more than 6 s before
    ("broker_killed", "broker-b", 25.0, 28.0, 60, False),
    ("broker_killed", "broker-a", 12.0, 18.0, 60, False),  # before 100 was seen
    ("broker_stopped", "broker-a", 25.0, 28.0, 60, False),
    ("broker_lost", "broker-a", 25.0, 28.0, 0, True),
    ("killed", "m1", 25.0, 28.0, 60, False),
]


@pytest.mark.parametrize(("name", "target", "at", "until", "to", "explains"), FAULTS)
def test_a_broker_that_is_killed_forgets_what_it_had_not_saved(
    name: str, target: str, at: float, until: float, to: int, explains: bool
) -> None:
    assert found(back(to).fault(at, name, target, until).verdict()) == ({} if explains else {"went back": 1})


@pytest.mark.parametrize(("queue", "offset", "at", "explains"), [
    (QUEUE, 60, 25, True),
    (QUEUE, 50, 25, True),
    (QUEUE, 70, 25, False),
    (OTHER, 60, 25, False),
    (QUEUE, 60, 15, False),
])  # fmt: skip
def test_a_reset_sets_it_back(queue: str, offset: int, at: float, explains: bool) -> None:
    verdict = back().change(at, "reset", queue=queue, offset=offset).verdict()
    assert found(verdict) == ({} if explains else {"went back": 1})


def test_what_a_member_left_behind_is_an_offset_too() -> None:
    story = Story().add(10, EventKind.LEFT, "m1", offsets={QUEUE: 100}, confirmed=True).committed(12, 90)
    assert found(story.verdict()) == {"went back": 1}
    story = Story().add(10, EventKind.LEFT, "m1", offsets={QUEUE: 100}, confirmed=False).committed(12, 90)
    assert story.verdict().ok


def test_a_leaver_whose_words_are_read_late_sets_nothing_back() -> None:
    story = Story().committed(10, 90).committed(11, 150)
    assert story.add(11.5, EventKind.LEFT, "m1", offsets={QUEUE: 100}, confirmed=True).committed(12, 160).verdict().ok
    assert found(story.committed(13, 120).verdict()) == {"went back": 1}


def test_a_look_takes_a_while_and_a_reset_may_come_in_between() -> None:
    story = Story().add(10.5, EventKind.COMMITTED, queue=QUEUE, offset=100, began=10.0).committed(12, 50)
    assert found(story.verdict()) == {"went back": 1}
    assert story.change(10.2, "reset", queue=QUEUE, offset=50).verdict().ok


def test_a_topic_that_is_made_anew_begins_at_its_beginning() -> None:
    assert back(0).change(25, "topic_created", topic="orders").verdict().ok


def test_a_backlog_at_the_end_is_stuck() -> None:
    verdict = Story().committed(10, 99).ended(12, end=100).verdict()
    assert found(verdict) == {"stuck": 1}
    assert "orders@broker-a/0 ends at offset 100 and the group is at 99 when all is healed" in str(verdict)
    assert Story().committed(10, 99).committed(11, 100).ended(12, end=100).verdict().ok


def test_a_backlog_before_the_end_is_none() -> None:
    assert Story().committed(10, 99).add(11, EventKind.END_OFFSET, queue=QUEUE, offset=100).verdict().ok


def test_a_deleted_topic_has_no_backlog() -> None:
    assert Story().committed(10, 99).change(11, "topic_deleted", topic="orders").ended(12, end=100).verdict().ok
