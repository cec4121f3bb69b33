"""Events: once, and not too many."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.controller.kube_objects import group

from rocketfleet.controller.kube.events import (
    BURST,
    LONGEST_NOTE,
    REFILL,
    REPEAT_AFTER_SECONDS,
    EventFilter,
    event_manifest,
)
from rocketfleet.controller.planning.actions import Event, EventReason


def test_the_same_sentence_is_told_once_in_five_minutes() -> None:
    telling, event = EventFilter(), Event(EventReason.DRAINED, "orders-1 drained")
    assert telling.worth("u", event, 0.0)
    assert not telling.worth("u", event, REPEAT_AFTER_SECONDS - 1)
    assert telling.worth("u", event, REPEAT_AFTER_SECONDS)
    assert telling.worth("another", event, 1.0)


def test_the_next_pod_of_a_name_is_told_of_too() -> None:
    telling, message = EventFilter(), "orders-1 is created"
    assert telling.worth("u", Event(EventReason.CREATED, message, pod_uid="first"), 0.0)
    assert not telling.worth("u", Event(EventReason.CREATED, message, pod_uid="first"), 1.0)
    assert telling.worth("u", Event(EventReason.CREATED, message, pod_uid="second"), 2.0)


def test_a_sentence_with_a_number_that_moves_is_bounded() -> None:
    telling = EventFilter()
    told = sum(telling.worth("u", Event(EventReason.STUCK, f"{n} s ago"), n * 0.25) for n in range(400))
    assert told <= BURST + 100 / REFILL + 1
    assert telling.worth("u", Event(EventReason.DRAINED, "another reason"), 100.0)


@given(st.text(max_size=3000))
def test_the_note_fits(text: str) -> None:
    made = event_manifest(group(), Event(EventReason.INVALID, text, warning=True), "me", 0.0)
    assert len(made["note"].encode()) <= LONGEST_NOTE
    assert made["type"] == "Warning"
    assert made["regarding"]["uid"] == "uid-of-orders"
