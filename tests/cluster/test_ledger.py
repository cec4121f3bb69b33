"""The verdict itself can fail: records with each kind of fault are seen for what they are."""

from typing import Any

import pytest
from tests.cluster.ledger import Ledger

pytestmark = pytest.mark.core


def ledger(*lines: str) -> Ledger:
    """`sent k1:0`, `unsure k1:0`, or `begin k1:0 QUEUE/OFFSET`: a line an event, one second apart."""
    events: list[dict[str, Any]] = []
    for time, line in enumerate(lines):
        event, one, *place = line.split()
        queue, _, offset = place[0].partition("/") if place else ("", "", "0")
        events.append({"time": time, "event": event, "id": one, "pod": "p", "queue": queue, "offset": int(offset)})
    return Ledger(tuple(events))


HANDLED = ("sent k1:0", "begin k1:0 q/0", "finish k1:0 q/0")


def test_all_is_well() -> None:
    assert ledger(*HANDLED).verdict().good
    assert ledger(*HANDLED).stands() == {"q": 1}


def test_what_was_sent_and_never_finished_is_lost() -> None:
    assert ledger(*HANDLED, "sent k1:1", "begin k1:1 q/1").verdict().lost == {"k1:1"}


def test_what_was_finished_twice_is_repeated() -> None:
    assert ledger(*HANDLED, "begin k1:0 q/0", "finish k1:0 q/0").verdict().repeated == {"k1:0"}


def test_what_was_stored_twice_is_not_repeated_but_its_first_copy_may_be() -> None:
    unsure = ("unsure k1:0", *HANDLED)
    assert ledger(*unsure, "begin k1:0 q/1", "finish k1:0 q/1").verdict().good
    assert ledger(*unsure, "begin k1:0 q/0", "finish k1:0 q/0").verdict().repeated == {"k1:0"}


def test_a_later_message_of_a_key_that_begins_first_is_out_of_order() -> None:
    swapped = ledger("sent k1:0", "sent k1:1", "begin k1:1 q/1", "finish k1:1 q/1", "begin k1:0 q/0", "finish k1:0 q/0")
    assert swapped.verdict().out_of_order == ("k1:0",)
