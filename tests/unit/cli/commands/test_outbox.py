"""Towards a busy broker `rocketfleet send` is patient; towards everything else it is not."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rocketfleet.cli.commands import send as module
from rocketfleet.cli.commands.send import Envelope, _Outbox
from rocketfleet.client.errors import NoRoute, RocketMQError, SystemBusy
from rocketfleet.producer import Producer, SendFailed
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

BUSY = SystemBusy(2, "broker busy", "a:1", 310)


def given_up(cause: RocketMQError) -> SendFailed:
    error = SendFailed("orders", ("broker-a",), 0.1, cause)
    error.__cause__ = cause
    return error


class Answers:
    """A producer that answers with what it was given, one after the other."""

    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)
        self.offered: list[list[Message]] = []

    async def send(self, message: Message, **_: Any) -> SimpleNamespace:
        return await self.send_batch([message])

    async def send_batch(self, messages: Sequence[Message], **_: Any) -> SimpleNamespace:
        self.offered.append(list(messages))
        await asyncio.sleep(0)
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        return SimpleNamespace(queue=MessageQueue("orders", "broker-a", 0))


def outbox(answers: Answers, timeout: float = 60) -> _Outbox:
    return _Outbox(cast("Producer", answers), Envelope("orders", (), None, {}, None, 0), None, timeout)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHORTEST_PAUSE", 0.001)


@pytest.mark.parametrize("bodies", [[b"one"], [b"one", b"two"]], ids=["single", "batch"])
async def test_a_message_that_a_busy_broker_refused_is_offered_again(bodies: list[bytes]) -> None:
    answers = Answers(BUSY, given_up(BUSY), BUSY, None)
    await outbox(answers).send(bodies)
    assert len(answers.offered) == 4
    assert all(offered == answers.offered[0] for offered in answers.offered), "the same message keeps its id"
    assert [message.body for message in answers.offered[0]] == bodies


async def test_patience_ends_with_the_time_for_a_send() -> None:
    answers = Answers(*[BUSY] * 10)
    with pytest.raises(SystemBusy):
        await outbox(answers, timeout=0.0005).send([b"one"])
    assert len(answers.offered) == 1


@pytest.mark.parametrize("error", [NoRoute("orders", "gone"), given_up(NoRoute("orders", "gone"))])
async def test_other_failures_are_failures(error: RocketMQError) -> None:
    answers = Answers(error)
    with pytest.raises(type(error)):
        await outbox(answers).send([b"one"])
    assert len(answers.offered) == 1


def test_the_room_for_properties_in_a_batch_is_counted() -> None:
    bare = Envelope("orders", (), None, {}, None, 0).overhead()
    full = Envelope("orders", ("k" * 50,), "t" * 20, {"p": "v" * 30}, "s" * 10, 0).overhead()
    assert full >= bare + 50 + 20 + 30 + 10
