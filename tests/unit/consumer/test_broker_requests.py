"""A message that the broker wants consumed at once: it gets an answer, whatever the handler makes of it."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.unit.consumer.messages import stored

from rocketfleet.consumer.broker_requests import BrokerRequests
from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.results import COMMIT, RETRY, ROLLBACK, SUCCESS, Retry
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.bodies import ConsumeMessageDirectlyResult
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command, request
from rocketfleet.wire.message import ReceivedMessage

if TYPE_CHECKING:
    from rocketfleet.client.client import Client
    from rocketfleet.consumer.handover.holdings import Holdings

DIRECTLY = RequestCode.CONSUME_MESSAGE_DIRECTLY


async def consumed(
    handler: Callable[[Any], Any], body: bytes | None = None, mode: ConsumeMode = ConsumeMode.CONCURRENT
) -> ConsumeMessageDirectlyResult:
    """What the broker is told."""
    table: dict[int, Any] = {}

    def on_request(code: int, answer: Any) -> Callable[[], None]:
        table[code] = answer
        return lambda: None

    BrokerRequests(
        cast("Client", SimpleNamespace(remoting=SimpleNamespace(on_request=on_request))),
        ConsumerSettings("g", (Subscription("t"),), consume_mode=mode),
        {},
        cast("Holdings", None),
        inspect_handler(handler),
        lambda: None,
        lambda: 0,
        clock=lambda: 0.0,
    )
    command = request(DIRECTLY, {"consumerGroup": "g", "brokerName": "broker-a"})
    command.body = stored(7) if body is None else body
    answer = await asyncio.wait_for(table[DIRECTLY]("peer", command), 20)
    assert isinstance(answer, Command)
    return ConsumeMessageDirectlyResult.decode(answer.body)


def answering(answer: Any) -> list[Callable[[Any], Any]]:
    """Handlers of all kinds with one answer; what is an exception they raise."""

    def result() -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer() if callable(answer) else answer

    def one(_message: ReceivedMessage) -> Any:
        return result()

    def batch(messages: list[ReceivedMessage]) -> Any:
        return result()

    async def one_async(_message: ReceivedMessage) -> Any:
        await asyncio.sleep(0)
        return result()

    async def batch_async(messages: list[ReceivedMessage]) -> Any:
        await asyncio.sleep(0)
        return result()

    return [one, batch, one_async, batch_async]


@pytest.mark.parametrize(
    ("mode", "answer", "word"),
    [
        (ConsumeMode.CONCURRENT, None, "CR_SUCCESS"),
        (ConsumeMode.CONCURRENT, [SUCCESS], "CR_SUCCESS"),
        (ConsumeMode.CONCURRENT, COMMIT, "CR_SUCCESS"),
        (ConsumeMode.CONCURRENT, RETRY, "CR_LATER"),
        (ConsumeMode.CONCURRENT, ROLLBACK, "CR_LATER"),
        (ConsumeMode.CONCURRENT, Retry(3), "CR_LATER"),
        (ConsumeMode.ORDERLY, COMMIT, "CR_COMMIT"),
        (ConsumeMode.ORDERLY, ROLLBACK, "CR_ROLLBACK"),
        (ConsumeMode.ORDERLY, RETRY, "CR_LATER"),
    ],
)
async def test_a_result_in_the_brokers_words(mode: ConsumeMode, answer: object, word: str) -> None:
    for handler in answering(answer):
        told = await consumed(handler, mode=mode)
        assert (told.consume_result, told.remark, told.order) == (word, None, mode is ConsumeMode.ORDERLY)


class OfNoClass:
    @property
    def __class__(self) -> type:
        raise RuntimeError("of no class")

    @__class__.setter
    def __class__(self, _kind: type) -> None: ...


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise SystemExit(5)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ValueError("the handler's own words"), "the handler's own words"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
        (StopIteration(), "StopIteration"),
        (StopAsyncIteration(), "StopAsyncIteration"),
        (asyncio.CancelledError(), "CancelledError"),
        (UnspeakableError(), "UnspeakableError"),
        ("nonsense", "returned str"),
        (OfNoClass, "returned OfNoClass"),
        (lambda: Retry(seconds=timedelta(1)), "takes a number of seconds"),  # type: ignore[arg-type]
        ([], "returned list"),
    ],
)
async def test_trouble_of_any_kind_is_an_answer_too(answer: Any, words: str) -> None:
    for handler in answering(answer):
        told = await consumed(handler)
        assert told.consume_result == "CR_THROW_EXCEPTION"
        assert told.remark is not None
        assert words in told.remark


@pytest.mark.parametrize("waits", [False, True])
async def test_a_handler_that_cancels_the_task_it_runs_in_is_answered_for(waits: bool) -> None:
    async def handler(_message: ReceivedMessage) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if waits:
            await asyncio.sleep(0)

    told = await consumed(handler)
    assert told.consume_result == "CR_THROW_EXCEPTION"
    assert told.remark is not None
    assert "ancelled" in told.remark


@pytest.mark.parametrize("body", [b"", b"\x00\x00", stored(7)[:40]])
async def test_a_request_without_a_message_is_answered_too(body: bytes) -> None:
    called: list[object] = []
    told = await consumed(called.append, body)
    assert told.consume_result == "CR_THROW_EXCEPTION"
    assert told.remark
    assert called == []


async def test_who_gives_up_waiting_takes_the_handler_along() -> None:
    ended: list[bool] = []

    async def handler(_message: ReceivedMessage) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)

    asking = asyncio.create_task(consumed(handler))
    for _ in range(10):
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    for _ in range(10):
        await asyncio.sleep(0)
    assert ended == [True]
