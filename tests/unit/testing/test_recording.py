"""A recorded handler is the same handler, and the record says what the consumer will make of its answers."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.consumer.messages import received, several

from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.results import COMMIT, RETRY, ROLLBACK, SUCCESS, SUSPEND, Retry
from rocketfleet.testing.history import EventKind, Recorder, read
from rocketfleet.testing.recording import recorded
from rocketfleet.wire.message import ReceivedMessage


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "m1.jsonl", "m1")


def outcomes(tmp_path: Path) -> list[tuple[str, str | None]]:
    history = read([tmp_path])
    begun, ended = history.kind(EventKind.BEGIN), history.kind(EventKind.END)
    assert [event.details["handling"] for event in begun] == [event.details["handling"] for event in ended]
    assert len({event.details["handling"] for event in begun}) == len(begun)
    assert [(event.message, event.queue, event.offset) for event in begun] == [
        (event.message, event.queue, event.offset) for event in ended
    ]
    return [(event.details["outcome"], event.details.get("answer")) for event in ended]


ANSWERS: list[tuple[object, tuple[str, str | None]]] = [
    (None, ("success", None)),
    (True, ("success", None)),
    (SUCCESS, ("success", None)),
    (COMMIT, ("success", "commit")),
    (RETRY, ("retry", None)),
    (False, ("retry", None)),
    (Retry(3), ("retry", None)),
    (SUSPEND, ("retry", "suspend")),
    (ROLLBACK, ("retry", "rollback")),
    ("nonsense", ("error", None)),
]


@pytest.mark.parametrize(("answer", "outcome"), ANSWERS)
def test_an_answer_goes_through_and_is_judged(
    recorder: Recorder, tmp_path: Path, answer: object, outcome: tuple[str, str | None]
) -> None:
    def handle(message: ReceivedMessage) -> object:
        return answer

    assert recorded(handle, recorder)(received(3)) is answer
    assert outcomes(tmp_path) == [outcome]


@pytest.mark.parametrize("raised", [LookupError("no"), SystemExit(3)])
def test_an_exception_goes_through(recorder: Recorder, tmp_path: Path, raised: BaseException) -> None:
    def handle(message: ReceivedMessage) -> None:
        raise raised

    with pytest.raises(type(raised)):
        recorded(handle, recorder)(received(3))
    assert outcomes(tmp_path) == [("error", None)]


def test_a_batch_has_one_begin_and_end_for_each_message(recorder: Recorder, tmp_path: Path) -> None:
    def handle(messages: list[ReceivedMessage]) -> object:
        return [SUCCESS, RETRY, SUCCESS] if len(messages) == 3 else [SUCCESS]

    wrapped = recorded(handle, recorder)
    wrapped(several(0, 3))
    wrapped(several(3, 2))  # one answer for two: the consumer takes none of them
    assert [outcome for outcome, _ in outcomes(tmp_path)] == ["success", "retry", "success", "error", "error"]
    calls = [event.details["call"] for event in read([tmp_path]).kind(EventKind.BEGIN)]
    assert [calls.count(call) for call in calls] == [3, 3, 3, 2, 2]


async def test_a_coroutine_that_is_cancelled_was_cut(recorder: Recorder, tmp_path: Path) -> None:
    async def handle(message: ReceivedMessage) -> None:
        await asyncio.sleep(3600 if message.queue_offset else 0)

    wrapped = recorded(handle, recorder)
    await wrapped(received(0))
    task = asyncio.create_task(wrapped(received(1)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert outcomes(tmp_path) == [("success", None), ("cut", None)]


class Instance:
    def __call__(self, messages: list[ReceivedMessage]) -> None: ...


def one(message: ReceivedMessage) -> None: ...


async def later(messages: list[ReceivedMessage]) -> None: ...


@pytest.mark.parametrize("handler", [one, later, Instance(), lambda message: None])
def test_the_consumer_sees_the_same_handler(recorder: Recorder, handler: Callable[[Any], Any]) -> None:
    before, after = inspect_handler(handler), inspect_handler(recorded(handler, recorder))
    assert (after.is_async, after.takes_batch) == (before.is_async, before.takes_batch)


def test_begin_is_written_before_the_handler_is_called(recorder: Recorder, tmp_path: Path) -> None:
    seen: list[EventKind] = []

    def handle(message: ReceivedMessage) -> None:
        seen.extend(event.kind for event in read([tmp_path]))

    recorded(handle, recorder, identify=lambda message: message.body.decode())(received(7, body=b"k1:7", times=2))
    assert seen == [EventKind.BEGIN]
    begun = read([tmp_path]).events[0]
    assert (begun.by, begun.message, begun.queue, begun.offset) == ("m1", "k1:7", "t@broker-a/0", 7)
    assert begun.details["tries"] == 2
