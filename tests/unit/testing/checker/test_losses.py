"""Messages that nobody handled, and what excuses that."""

import pytest
from tests.unit.testing.checker.story import OTHER, QUEUE, Story, found, message_of


def test_what_was_handled_is_not_lost() -> None:
    verdict = Story().sent(1, 0, 1).handled("m1", 0, 2, 3).handled("m2", 1, 3, 4).verdict()
    assert (verdict.sent, verdict.handled, found(verdict), verdict.ok) == (2, 2, {}, True)


def test_a_message_that_was_never_begun_is_unseen() -> None:
    verdict = Story().sent(1, 0, 1).handled("m1", 0, 2, 3).verdict()
    assert found(verdict) == {"unseen": 1}
    [finding] = verdict.findings
    assert finding.messages == (message_of(QUEUE, 1),)
    assert "was never begun" in str(finding)
    assert [event.message for event in finding.excerpt] == [message_of(QUEUE, 1)]


@pytest.mark.parametrize(("end", "outcome"), [(3, "error"), (3, "retry"), (3, "cut"), (None, "")])
def test_a_message_that_was_begun_and_never_handled_successfully_is_lost(end: float | None, outcome: str) -> None:
    verdict = Story().sent(1, 0).handled("m1", 0, 2, end, outcome=outcome).verdict()
    assert found(verdict) == {"lost": 1}
    assert verdict.handled == 0


def test_a_message_that_came_again_from_the_retry_topic_is_not_lost() -> None:
    story = Story().sent(1, 0).handled("m1", 0, 2, 3, outcome="error")
    story.handled("m2", 17, 13, 14, queue="%RETRY%g@broker-a/0", message=message_of(QUEUE, 0), tries=1)
    assert story.verdict().ok


def test_dead_letters_are_not_lost() -> None:
    story = Story().sent(1, 0, 1).handled("m1", 0, 2, 3, outcome="error")
    assert found(story.change(9, "dead_lettered", message=message_of(QUEUE, 0)).verdict()) == {"unseen": 1}


def test_a_group_that_begins_at_the_end_is_not_owed_what_was_sent_before() -> None:
    story = Story().sent(1, 0).sent(5, 1).change(3, "group_began")
    assert found(story.verdict(from_beginning=False)) == {"unseen": 1}
    assert found(story.verdict()) == {"unseen": 2}


def test_what_a_reset_forward_skips_is_not_lost() -> None:
    story = Story().sent(1, 0, 1, 2).sent(1, 1, queue=OTHER).change(3, "reset", queue=QUEUE, offset=2)
    assert {finding.messages[0] for finding in story.verdict().findings} == {
        message_of(QUEUE, 2),
        message_of(OTHER, 1),
    }


def test_a_reset_before_a_message_was_sent_skips_it_not() -> None:
    assert found(Story().change(1, "reset", queue=QUEUE, offset=9).sent(3, 0).verdict()) == {"unseen": 1}


def test_a_reset_of_several_queues_is_one_change() -> None:
    story = Story().sent(1, 0).sent(1, 0, queue=OTHER).change(3, "reset", offsets={QUEUE: 1, OTHER: 1})
    assert story.verdict().ok


def test_a_topic_that_is_deleted_takes_its_messages_with_it() -> None:
    story = Story().sent(1, 0).change(3, "topic_deleted", topic="orders").sent(5, 1)
    assert [finding.messages for finding in story.verdict().findings] == [(message_of(QUEUE, 1),)]
    assert found(Story().sent(1, 0).change(3, "topic_deleted", topic="others").verdict()) == {"unseen": 1}


def test_a_broker_that_loses_its_disk_loses_only_its_own_messages() -> None:
    story = Story().sent(1, 0).sent(1, 0, queue=OTHER).fault(3, "broker_lost", "broker-a", until=5).sent(6, 1)
    assert {finding.messages[0] for finding in story.verdict().findings} == {
        message_of(QUEUE, 1),
        message_of(OTHER, 0),
    }
    assert found(Story().sent(1, 0).fault(3, "broker_killed", "broker-a", until=5).verdict()) == {"unseen": 1}
