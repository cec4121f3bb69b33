"""Requests from the peer to us, and a peer that asks us to go away."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest
from tests.support.waiting import until
from tests.unit.client.peer import Channel, Peer, obedient

from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConnectionLost
from rocketfleet.client.transport.incoming import Incoming
from rocketfleet.client.transport.remoting import Remoting
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, HeaderForm, reply_to, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NOTIFY = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
CHECK = RequestCode.CHECK_TRANSACTION_STATE
INFO = RequestCode.GET_CONSUMER_RUNNING_INFO
CONFIG = ClientConfig("127.0.0.1:1")


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with Peer() as made:
        yield made


@pytest.fixture
async def remoting(peer: Peer) -> AsyncIterator[Remoting]:
    made = Remoting(CONFIG)
    assert (await made.call(peer.address, request(RequestCode.GET_MAX_OFFSET))).code == 0
    yield made
    await made.close()


async def _ask(peer: Peer, command: Command, number: int = 77) -> Command:
    """Let the peer ask and wait for what comes back."""
    command.opaque = number
    channel = peer.channels[0]
    before = len(channel.received)
    channel.send(command)
    await until(lambda: len(channel.received) > before)
    answer = channel.received[-1]
    assert answer.is_response
    assert answer.opaque == number
    return answer


@pytest.mark.parametrize("form", list(HeaderForm))
async def test_a_handler_answers_in_the_form_it_was_asked_in(peer: Peer, remoting: Remoting, form: HeaderForm) -> None:
    async def handler(address: str, command: Command) -> Command:
        return reply_to(command, body=f"{address} {command.fields['consumerGroup']}".encode())

    remoting.on_request(INFO, handler)
    answer = await _ask(peer, request(INFO, {"consumerGroup": "G"}, form=form))
    assert (answer.code, answer.body, answer.form) == (0, f"{peer.address} G".encode(), form)


async def test_what_nobody_handles_is_answered_as_java_does(
    peer: Peer, remoting: Remoting, caplog: pytest.LogCaptureFixture
) -> None:
    del remoting
    with caplog.at_level(logging.WARNING):
        for number in range(1, 6):
            answer = await _ask(peer, request(CHECK), number)
            assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            assert answer.remark == " request type 39 not supported"
    assert sum("no handler" in record.message for record in caplog.records) == 1


async def test_a_handler_that_fails_is_answered_and_logged_once(
    peer: Peer, remoting: Remoting, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_address: str, _command: Command) -> None:
        raise LookupError("no such group")

    remoting.on_request(INFO, broken)
    with caplog.at_level(logging.WARNING):
        for number in range(1, 6):
            answer = await _ask(peer, request(INFO), number)
            assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "LookupError: no such group")
    assert sum(record.exc_info is not None for record in caplog.records) == 1


async def test_a_oneway_is_never_answered(peer: Peer, remoting: Remoting) -> None:
    seen: list[str] = []

    def handler(_address: str, command: Command) -> Command:
        seen.append(command.fields["group"])
        return reply_to(command)

    remoting.on_request(NOTIFY, handler)
    channel = peer.channels[0]
    channel.send(request(NOTIFY, {"group": "a"}, oneway=True))
    channel.send(request(CHECK, oneway=True))  # nobody handles this one, and that is not answered either
    assert (await _ask(peer, request(NOTIFY, {"group": "b"}), 78)).code == 0
    assert seen == ["a", "b"]
    assert [command.opaque for command in channel.received if command.is_response] == [78]


async def test_all_handlers_hear_and_the_first_that_knows_answers(peer: Peer, remoting: Remoting) -> None:
    heard: list[str] = []

    def one(name: str, answers: bool) -> None:
        def handler(_address: str, command: Command) -> Command | None:
            heard.append(name)
            return reply_to(command, remark=name) if answers else None

        removers[name] = remoting.on_request(INFO, handler)

    removers: dict[str, object] = {}
    for name, answers in (("a", False), ("b", True), ("c", True)):
        one(name, answers)
    assert (await _ask(peer, request(INFO), 1)).remark == "b"
    assert heard == ["a", "b", "c"]
    removers["b"]()  # type: ignore[operator]  # the functions that on_request returned
    assert (await _ask(peer, request(INFO), 2)).remark == "c"


async def test_a_slow_handler_holds_up_neither_answers_nor_other_requests(peer: Peer, remoting: Remoting) -> None:
    go = asyncio.Event()

    async def slow(_address: str, command: Command) -> Command:
        await go.wait()
        return reply_to(command)

    remoting.on_request(INFO, slow)
    remoting.on_request(CHECK, lambda _address, command: reply_to(command))
    peer.channels[0].send(request(INFO))
    assert (await remoting.call(peer.address, request(RequestCode.GET_MAX_OFFSET))).code == 0
    assert (await _ask(peer, request(CHECK), 5)).code == 0
    go.set()
    await until(lambda: sum(command.is_response for command in peer.received) == 2)


async def test_too_many_requests_at_once_are_told_so(peer: Peer, remoting: Remoting) -> None:
    remoting._incoming._limit = 3
    go = asyncio.Event()

    async def slow(_address: str, command: Command) -> Command:
        await go.wait()
        return reply_to(command)

    remoting.on_request(INFO, slow)
    channel = peer.channels[0]
    for number in range(1, 6):
        command = request(INFO)
        command.opaque = number
        channel.send(command)
    await until(lambda: sum(command.is_response for command in channel.received) == 2)
    busy = [command for command in channel.received if command.is_response]
    assert [(command.opaque, command.code) for command in busy] == [(4, 2), (5, 2)]
    go.set()
    await until(lambda: sum(command.is_response for command in channel.received) == 5)
    assert remoting._incoming._tasks == set()


async def test_complaints_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    incoming = Incoming(limit=5)
    with caplog.at_level(logging.WARNING):
        for code in range(1000, 1100):
            incoming._complain(request(code), "no handler", None)
    assert len(caplog.records) == 5


async def test_close_ends_handlers(peer: Peer) -> None:
    made = Remoting(CONFIG)
    await made.connect(peer.address)
    ended = asyncio.Event()

    async def endless(_address: str, _command: Command) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    made.on_request(INFO, endless)
    await until(lambda: peer.channels)
    peer.channels[0].send(request(INFO))
    await until(lambda: made._incoming._tasks)
    await made.close()
    assert ended.is_set()


async def test_go_away_is_obeyed_once_and_what_is_under_way_may_finish() -> None:
    asked: list[tuple[Channel, Command]] = []

    def leaving(channel: Channel, command: Command) -> None:
        asked.append((channel, command))
        if command.code != RequestCode.PULL_MESSAGE:
            server.script = obedient
            channel.answer(command, ResponseCode.GO_AWAY, "please go away")

    async with Peer(leaving) as server:
        remoting = Remoting(CONFIG)
        news: list[str] = []
        remoting.on_connect(lambda _: news.append("connected"))
        remoting.on_disconnect(lambda _, why: news.append(str(why)))
        pull = asyncio.create_task(remoting.call(server.address, request(RequestCode.PULL_MESSAGE), 30))
        await until(lambda: asked)
        answer = await remoting.call(server.address, request(RequestCode.GET_MAX_OFFSET, {"a": 1}))
        assert (answer.code, answer.fields) == (0, {"a": "1"})
        assert len(server.channels) == 2
        assert not pull.done()
        channel, command = asked[0]
        channel.answer(command)
        assert (await pull).code == 0
        await until(lambda: not remoting._retired)
        assert remoting.connected == (server.address,)
        # Told once, when it was retired, and not again when it ended.
        lost = f"connection to {server.address} lost: the peer asked us to go away"
        assert news == ["connected", lost, "connected"]
        await remoting.close()


async def test_go_away_twice_is_an_error() -> None:
    def leaving(channel: Channel, command: Command) -> None:
        channel.answer(command, ResponseCode.GO_AWAY, "please go away")

    async with Peer(leaving) as peer:
        remoting = Remoting(CONFIG)
        news: list[str] = []
        remoting.on_connect(lambda _: news.append("connected"))
        remoting.on_disconnect(lambda *_: news.append("lost"))
        with pytest.raises(ConnectionLost, match="asked us twice to go away during GET_MAX_OFFSET"):
            await remoting.call(peer.address, request(RequestCode.GET_MAX_OFFSET))
        assert len(peer.channels) == 2
        await until(lambda: not remoting._retired)
        assert news == ["connected", "lost", "connected", "lost"]
        assert not remoting.is_connected(peer.address)
        await remoting.close()
