"""The order in a queue of an orderly group."""

from typing import Any

import pytest
from tests.unit.testing.checker.story import QUEUE, Story, found


def in_order() -> Story:
    return Story().sent(1, 0, 1, 2).handled("m1", 0, 2, 3).handled("m1", 1, 3, 4).handled("m1", 2, 4, 5)


def test_one_after_the_other_is_in_order() -> None:
    assert in_order().verdict(orderly=True).ok


def test_a_message_that_is_begun_before_the_last_one_is_done_is_out_of_order() -> None:
    story = Story().sent(1, 0, 1).handled("m1", 0, 2, 3).handled("m1", 1, 2.9, 4)
    verdict = story.verdict(orderly=True)
    assert found(verdict) == {"out of order": 1}
    assert "offset 1 of orders@broker-a/0 was begun by m1 0.100 s before offset 0 was done" in str(verdict)
    assert story.verdict().ok  # a concurrent group promises nothing


def test_a_later_message_first_is_out_of_order() -> None:
    story = Story().sent(1, 0, 1, 2).handled("m1", 0, 2, 3).handled("m1", 2, 3, 4).handled("m1", 1, 5, 6)
    assert found(story.verdict(orderly=True)) == {"out of order": 1}


def test_a_message_that_failed_holds_the_queue_up() -> None:
    failing = Story().sent(1, 0, 1).handled("m1", 0, 2, 3, outcome="retry").handled("m1", 0, 6, 7)
    assert found(failing.handled("m1", 1, 4, 5).verdict(orderly=True)) == {"out of order": 1}


def test_a_repetition_is_no_disorder_unless_something_was_skipped() -> None:
    story = Story().joined(0, "m1", "m2").sent(1, 0, 1, 2).handled("m1", 0, 2, 3).handled("m1", 1, 3, None)
    story.fault(3.5, "killed", "m1").handled("m2", 0, 6, 7)
    good = [*story.events]
    assert story.handled("m2", 1, 7, 8).handled("m2", 2, 8, 9).verdict(orderly=True).ok
    story.events = good
    assert found(story.handled("m2", 2, 7, 8).handled("m2", 1, 8, 9).verdict(orderly=True)) == {"out of order": 1}


def test_a_batch_is_begun_as_one() -> None:
    def batch(call: str | None) -> Story:
        more: dict[str, Any] = {"call": call} if call else {}
        story = Story().sent(1, 0, 1, 2).handled("m1", 0, 2, 3, **more).handled("m1", 1, 2, 3, **more)
        return story.handled("m1", 2, 3, 4)

    assert batch("7-1").verdict(orderly=True).ok
    assert found(batch(None).verdict(orderly=True)) == {"out of order": 1}
    assert found(batch("7-1").handled("m1", 3, 2.5, 4, call="7-2").verdict(orderly=True)) == {"out of order": 1}


def test_after_a_reset_a_queue_begins_anew() -> None:
    story = Story().sent(1, 0, 1, 2).change(2, "reset", queue=QUEUE, offset=2).handled("m1", 2, 3, 4)
    story.change(5, "reset", queue=QUEUE, offset=0).handled("m1", 0, 6, 7).handled("m1", 1, 7, 8)
    assert story.handled("m1", 2, 8, 9).verdict(orderly=True).ok
    assert found(story.handled("m1", 3, 7.5, 9).verdict(orderly=True)) == {"out of order": 1}


@pytest.mark.parametrize("end", [3, None])
def test_a_message_that_was_never_handled_is_a_finding_of_its_own(end: float | None) -> None:
    story = Story().sent(1, 0, 1).handled("m1", 0, 2, end, outcome="error").handled("m1", 1, 4, 5)
    assert found(story.verdict(orderly=True)) == {"lost": 1}
