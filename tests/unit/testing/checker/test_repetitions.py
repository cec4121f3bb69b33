"""Messages that were handled twice: each excuse, and beside it the same fault at a time or place where it is none."""

import pytest
from tests.unit.testing.checker.story import OTHER, QUEUE, Story, found, message_of

RETRY = "%RETRY%g@broker-a/0"


def twice(by: str = "m2", again: float = 100.0) -> Story:
    """Handled by m1 from 10 to 11, seen committed at 12, and handled again."""
    story = Story().joined(0, "m1", "m2").sent(1, 0).handled("m1", 0, 10, 11)
    return story.committed(10.5, 0).committed(12, 1).handled(by, 0, again, again + 1)


def test_without_a_fault_it_is_a_finding() -> None:
    verdict = twice().verdict()
    assert found(verdict) == {"repeated": 1}
    [finding] = verdict.findings
    assert "was handled by m1, and 89.000 s later again by m2; no fault explains it" in finding.summary
    assert [str(event.kind) for event in finding.excerpt] == [
        "sent", "begin", "committed", "end", "committed", "begin", "end",
    ]  # fmt: skip


# name, target, from, until, details, whether it explains the repetition
FAULTS = [
    ("killed", "m1", 10.5, None, {}, True),  # in the handler
    ("killed", "m1", 11.2, None, {}, True),  # done, and not committed
    ("killed", "m1", 13.0, None, {}, False),  # after the offset was safe
    ("killed", "m1", 5.0, None, {}, False),  # and joined again before, see below
    ("killed", "m2", 10.5, None, {}, False),  # somebody else
    ("frozen", "m1", 10.5, 75.0, {}, True),
    ("frozen", "m1", 10.5, 40.0, {}, False),  # not for as long as its locks live
    ("frozen", "m1", 13.0, 90.0, {}, False),
    ("cut", "m1", 9.0, 14.0, {}, True),
    ("cut", "m1", 10.5, 11.9, {}, False),  # too short
    ("cut", "m1", 10.5, 15.0, {"broker": "broker-a"}, True),
    ("cut", "m1", 10.5, 15.0, {"broker": "broker-b"}, False),
    ("cut", "m1", 2.0, 9.0, {}, False),  # it was back
    ("lossy", "m1", 9.0, 14.0, {}, True),
    ("slowed", "m1", 9.0, 14.0, {}, False),
    ("broker_cut", "broker-a", 10.5, 15.0, {}, True),
    ("broker_cut", "broker-b", 10.5, 15.0, {}, False),
    ("broker_frozen", "broker-a", 10.5, 15.0, {}, True),
    ("broker_frozen", "broker-a", 10.5, 11.5, {}, False),
    ("broker_stopped", "broker-a", 10.5, 15.0, {}, False),  # in good order: nothing is repeated
    ("broker_killed", "broker-a", 10.5, 15.0, {}, True),
    ("broker_killed", "broker-b", 10.5, 15.0, {}, False),
    ("broker_killed", "broker-a", 14.0, 20.0, {}, False),  # m1 is there, and tells it again
    ("broker_killed", "broker-a", 30.0, 35.0, {}, False),
    ("broker_lost", "broker-a", 10.5, 15.0, {}, True),
    ("name_server_killed", "namesrv-1", 10.5, 15.0, {}, False),
    ("clock_jumped", "broker-a", 10.5, None, {"seconds": 60}, True),
    ("clock_jumped", "broker-a", 10.5, None, {"seconds": 30}, False),
    ("handlers_slowed", "m1", 10.5, 15.0, {}, False),  # a fault that the checker does not know
    ("cut", "all", 9.0, 14.0, {}, True),
]


@pytest.mark.parametrize(("name", "target", "at", "until", "details", "explains"), FAULTS)
def test_a_fault_explains_it_only_where_and_when_it_can(
    name: str, target: str, at: float, until: float | None, details: dict[str, object], explains: bool
) -> None:
    story = twice().fault(at, name, target, until, **details)
    if name == "killed" and at < 10:
        story.joined(8, target)
    verdict = story.verdict()
    assert found(verdict) == ({} if explains else {"repeated": 1})
    assert sum(verdict.excused.values()) == int(explains)


def test_a_broker_may_forget_what_it_had_not_saved_if_nobody_can_tell_it_again() -> None:
    story = twice().fault(14, "broker_killed", "broker-a", until=20)
    assert found(story.verdict()) == {"repeated": 1}
    story.fault(16, "killed", "m1")
    assert story.verdict().excused == {"broker killed": 1}
    assert found(twice().fault(25, "broker_killed", "broker-a", until=30).fault(26, "killed", "m1").verdict()) == {
        "repeated": 1
    }  # it had been saved by then


def test_whoever_dies_after_the_repetition_could_have_told_before_it() -> None:
    story = twice(again=22).fault(14, "broker_killed", "broker-a", until=20)
    assert story.fault(21, "killed", "m1").verdict().ok
    story.events = [event for event in story.events if event.details.get("name") != "killed"]
    assert found(story.fault(22.5, "killed", "m1").verdict()) == {"repeated": 1}


@pytest.mark.parametrize(
    ("name", "target", "cause"),
    [
        ("cut", "m1", "member cut off"),
        ("lossy", "m1", "packets of the member lost"),
        ("broker_cut", "broker-a", "broker cut off"),
        ("broker_frozen", "broker-a", "broker frozen"),
    ],
)
def test_an_excuse_has_its_name(name: str, target: str, cause: str) -> None:
    assert twice().fault(10.5, name, target, until=15).verdict().excused == {cause: 1}


def test_where_nobody_looked_the_offset_counts_as_safe_when_it_should_have_been() -> None:
    def unseen(kill: float) -> Story:
        story = Story().joined(0, "m1", "m2").sent(1, 0).handled("m1", 0, 10, 11).handled("m2", 0, 30, 31)
        return story.fault(kill, "killed", "m1")

    assert unseen(11.5).verdict().ok
    assert found(unseen(14.0).verdict()) == {"repeated": 1}


def test_a_message_that_waits_for_one_before_it_is_not_safe() -> None:
    story = Story().joined(0, "m1", "m2").sent(1, 0, 1).handled("m1", 0, 9, None).handled("m1", 1, 10, 11)
    story.fault(20, "killed", "m1").handled("m2", 0, 23, 24).handled("m2", 1, 23, 24)
    assert story.verdict().excused == {"member killed": 1}


def test_a_fault_that_was_on_puts_the_commit_off() -> None:
    story = Story().joined(0, "m1", "m2").sent(1, 0).handled("m1", 0, 10, 11).handled("m2", 0, 30, 31)
    story.fault(10.5, "broker_stopped", "broker-a", until=18).fault(20, "killed", "m1")
    assert story.verdict().excused == {"member killed": 1}


def test_a_fault_after_the_repetition_explains_nothing() -> None:
    def unseen(kill: float) -> Story:
        # Nobody saw the offset, and a fault that was never healed put its commit off for ever.
        story = Story().joined(0, "m1", "m2").sent(1, 0).handled("m1", 0, 10, 11).handled("m2", 0, 30, 31)
        return story.fault(10.5, "slowed", "m1").fault(kill, "killed", "m1")

    assert unseen(29).verdict().ok
    assert found(unseen(32).verdict()) == {"repeated": 1}


def test_a_member_is_known_by_its_client_id_too() -> None:
    story = twice().fault(10.5, "killed", "10.0.0.1@4711")
    assert found(story.verdict()) == {"repeated": 1}
    story.add(0, story.events[0].kind, "m1", client_id="10.0.0.1@4711")
    assert story.verdict().ok


def test_every_repetition_needs_its_own_excuse() -> None:
    story = twice(again=20).fault(10.5, "killed", "m1").handled("m3", 0, 40, 41)
    verdict = story.verdict()
    assert found(verdict) == {"repeated": 1}
    assert verdict.excused == {"member killed": 1}
    assert "handled by m2" in verdict.findings[0].summary
    assert story.fault(20.5, "killed", "m2").verdict().ok


def test_what_was_only_cut_off_in_its_handler_is_no_repetition() -> None:
    story = Story().joined(0, "m1").sent(1, 0).handled("m1", 0, 10, None).fault(11, "killed", "m1")
    verdict = story.handled("m2", 0, 15, 16).verdict()
    assert verdict.ok
    assert not verdict.excused


@pytest.mark.parametrize(("offset", "at", "excused"), [(0, 50, True), (1, 50, False), (0, 5, False), (0, 150, False)])
def test_a_reset_back_explains_what_it_covers(offset: int, at: float, excused: bool) -> None:
    verdict = twice().change(at, "reset", queue=QUEUE, offset=offset).verdict()
    assert found(verdict) == ({} if excused else {"repeated": 1})


def test_a_reset_of_another_queue_explains_nothing() -> None:
    assert found(twice().change(50, "reset", queue=OTHER, offset=0).verdict()) == {"repeated": 1}


def test_one_reset_explains_one_repetition() -> None:
    story = twice(again=60).change(50, "reset", queue=QUEUE, offset=0).handled("m1", 0, 70, 71).committed(62, 1)
    assert found(story.verdict()) == {"repeated": 1}


def test_a_handler_that_failed_asked_for_it() -> None:
    story = Story().sent(1, 0).handled("m1", 0, 2, 3, outcome="retry").handled("m1", 0, 4, 5, outcome="error")
    assert story.handled("m1", 0, 6, 7).verdict().ok
    assert found(story.handled("m1", 0, 8, 9).verdict()) == {"repeated": 1}


def test_a_failure_between_two_successes_explains_nothing() -> None:
    story = twice(again=60).handled("m1", 0, 40, 41, outcome="error")
    assert found(story.verdict()) == {"repeated": 1}
    assert story.fault(10.5, "killed", "m1", until=None).joined(30, "m1").verdict().ok


def test_a_copy_from_the_retry_topic_is_the_same_message() -> None:
    def story() -> Story:
        first = Story().joined(0, "m1", "m2").sent(1, 0).handled("m1", 0, 10, 11, outcome="error").committed(12, 1)
        return first.handled("m2", 5, 20, 21, queue=RETRY, message=message_of(QUEUE, 0), tries=1)

    assert story().verdict().ok
    # Its old place comes again although nothing happened to m1; and because m1 died before that was safe.
    assert found(story().handled("m2", 0, 22, 23).verdict()) == {"repeated": 1}
    assert story().handled("m2", 0, 22, 23).fault(11.1, "killed", "m1").verdict().ok
    # The broker has two copies of it: it died with the first, and gave no answer.
    again = story().handled("m2", 6, 30, 31, queue=RETRY, message=message_of(QUEUE, 0), tries=1)
    assert found(again.verdict()) == {"repeated": 1}
    assert again.fault(11.1, "broker_killed", "broker-a", until=13).verdict().ok


def test_a_message_that_its_sender_stored_twice_is_two() -> None:
    story = Story().sent(1, 0).handled("m1", 0, 2, 3).handled("m1", 1, 4, 5, message=message_of(QUEUE, 0))
    assert story.verdict().excused == {"stored twice by its sender": 1}


@pytest.mark.parametrize(
    ("lasts", "by", "excused"), [(29, "m2", False), (31, "m2", True), (31, "m1", False), (901, "m1", True)]
)
def test_a_handler_that_takes_too_long_is_done_without(lasts: float, by: str, excused: bool) -> None:
    story = Story().sent(1, 0).handled("m1", 0, 10, 10 + lasts).handled(by, 0, 2000, 2001).committed(11 + lasts, 1)
    assert found(story.verdict()) == ({} if excused else {"repeated": 1})


def test_where_nothing_is_promised_they_are_only_counted() -> None:
    verdict = twice().verdict(repeats=True)
    assert verdict.ok
    assert verdict.excused == {"not promised": 1}


def test_a_topic_that_was_made_anew_has_other_messages() -> None:
    assert twice().change(50, "topic_created", topic="orders").verdict().ok
    assert found(twice().change(50, "topic_created", topic="others").verdict()) == {"repeated": 1}


def test_a_failure_meanwhile_does_not_stand_in_the_way_of_an_excuse() -> None:
    # Somebody else began it and failed before the kill, which is a finding of its own.
    story = (
        Story().joined(0, "m1", "m2").sent(1, 0).handled("m1", 0, 10, 11).handled("m3", 0, 10.9, 10.95, outcome="error")
    )
    verdict = story.fault(11.1, "killed", "m1").handled("m2", 0, 14, 15).verdict()
    assert found(verdict) == {"double": 1}
    assert verdict.excused == {"member killed": 1}
