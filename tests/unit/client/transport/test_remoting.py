"""Calls over real sockets to a scripted peer: answers, deadlines, lost connections, back-off."""

from __future__ import annotations

import asyncio
import gc
import random
import socket

import pytest
from tests.support.waiting import until
from tests.unit.client.peer import Channel, Peer, obedient

from rocketfleet.base.backoff import BackoffPolicy
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import (
    BackingOff,
    ClientClosed,
    ConnectError,
    ConnectionLost,
    RequestTimeout,
    RocketMQError,
)
from rocketfleet.client.transport.remoting import Remoting
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command, request

MAX = RequestCode.GET_MAX_OFFSET


def config(**settings: object) -> ClientConfig:
    return ClientConfig("127.0.0.1:1", **settings)  # type: ignore[arg-type]  # the tests name fields at run time


def silent(_channel: Channel, _command: Command) -> None:
    """Answer nothing."""


async def test_an_answer_goes_to_its_caller() -> None:
    async with Peer() as peer:
        remoting = Remoting(config())
        answer = await remoting.call(peer.address, request(MAX, {"topic": "T", "queueId": 3}, b"body"))
        assert (answer.code, answer.fields, bytes(answer.body)) == (0, {"topic": "T", "queueId": "3"}, b"body")
        await remoting.close()


async def test_an_address_that_is_refused_is_not_connected_to() -> None:
    judged: list[str] = []

    def refused(address: str) -> str | None:
        judged.append(address)
        return f"{address} is not for us" if address.startswith("127.") else None

    async with Peer() as peer:
        port = peer.address.rpartition(":")[2]
        remoting = Remoting(config(refused_address=refused))
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(ConnectError, match=r"127\.0\.0\.1 is not for us|refused"):
                await remoting.call(f"{host}:{port}", request(MAX, {"topic": "T"}))
        assert peer.channels == []
        assert "127.0.0.1" in judged, "it is what a name was resolved to that counts"
        await remoting.close()
        remoting = Remoting(config(refused_address=lambda _: None))
        assert (await remoting.call(f"localhost:{port}", request(MAX, {"topic": "T"}))).code == 0
        await remoting.close()


async def test_of_a_name_every_address_that_is_not_refused_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()

    async def resolved(host: str, port: int, **_: object) -> list[object]:
        assert host == "mq.example"
        addresses = ("127.0.0.9", "127.0.0.2", "127.0.0.1")  # refused; permitted, but nobody listens; permitted
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    async with Peer() as peer:
        port = int(peer.address.rpartition(":")[2])
        with socket.create_server(("127.0.0.9", port)) as forbidden:
            forbidden.setblocking(False)
            monkeypatch.setattr(loop, "getaddrinfo", resolved)
            remoting = Remoting(config(refused_address=lambda address: "no" if address == "127.0.0.9" else None))
            assert (await remoting.call(f"mq.example:{port}", request(MAX, {"topic": "T"}))).code == 0
            with pytest.raises(BlockingIOError):
                forbidden.accept()
        await remoting.close()
    remoting = Remoting(config(refused_address=lambda address: "no" if address == "127.0.0.9" else None))
    with pytest.raises(ConnectError, match="refused"):
        await remoting.call(f"mq.example:{port}", request(MAX, {"topic": "T"}))
    await remoting.close()


async def test_ten_thousand_calls_answered_out_of_order_share_one_connection() -> None:
    held: list[Command] = []
    shuffle = random.Random(7)

    def script(channel: Channel, command: Command) -> None:
        held.append(command)
        if len(held) == 1000:
            shuffle.shuffle(held)
            for one in held:
                channel.answer(one, fields={"n": one.fields["n"]})
            held.clear()

    async with Peer(script) as peer:
        remoting = Remoting(config(timeout=60))

        async def one(number: int) -> bool:
            answer = await remoting.call(peer.address, request(MAX, {"n": number}))
            return answer.fields["n"] == str(number)

        assert all(await asyncio.gather(*(one(n) for n in range(10_000))))
        assert len(peer.channels) == 1
        assert not remoting._connections[peer.address]._pending
        await remoting.close()


async def test_a_timeout_names_the_request_and_the_peer_and_a_late_answer_is_dropped() -> None:
    asked: list[tuple[Channel, Command]] = []
    async with Peer(lambda channel, command: asked.append((channel, command))) as peer:
        remoting = Remoting(config())
        await remoting.connect(peer.address)
        with pytest.raises(RequestTimeout) as caught:
            await remoting.call(peer.address, request(MAX), timeout=0.05)
        assert str(caught.value) == f"GET_MAX_OFFSET (30) to {peer.address}: no answer within 0.05 s"
        assert isinstance(caught.value, TimeoutError)
        channel, command = asked[0]
        channel.answer(command)  # too late
        peer.script = obedient
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        assert len(peer.channels) == 1
        await remoting.close()


async def test_each_call_has_its_own_deadline() -> None:
    async with Peer(silent) as peer:
        remoting = Remoting(config())
        order: list[float] = []

        async def one(timeout: float) -> None:
            with pytest.raises(RequestTimeout):
                await remoting.call(peer.address, request(MAX), timeout=timeout)
            order.append(timeout)

        await remoting.connect(peer.address)
        # The long one first, so that the timer must be brought forward, and then moved back.
        await asyncio.gather(one(0.4), one(0.05), one(0.2))
        assert order == [0.05, 0.2, 0.4]
        await remoting.close()


async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    asked: list[tuple[Channel, Command]] = []
    async with Peer(lambda channel, command: asked.append((channel, command))) as peer:
        remoting = Remoting(config())
        calls = [asyncio.create_task(remoting.call(peer.address, request(MAX), 60)) for _ in range(100)]
        await until(lambda: len(asked) == 100)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        connection = remoting._connections[peer.address]
        assert not connection._pending
        for channel, command in asked:
            channel.answer(command)
        peer.script = obedient
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        await remoting.close()


async def test_a_lost_connection_fails_its_calls_and_the_next_call_reconnects() -> None:
    async with Peer(silent) as peer, Peer() as other:
        remoting = Remoting(config())
        told: list[tuple[str, RocketMQError]] = []
        connects: list[str] = []
        remoting.on_disconnect(lambda address, error: told.append((address, error)))
        remoting.on_connect(connects.append)
        calls = [asyncio.create_task(remoting.call(peer.address, request(MAX))) for _ in range(3)]
        await until(lambda: len(peer.received) == 3)
        peer.channels[0].answer(peer.received[0])  # once answered, the peer is not suspected
        assert (await calls[0]).code == 0
        peer.channels[0].hang_up()
        for call in calls[1:]:
            with pytest.raises(ConnectionLost) as caught:
                await call
            assert str(caught.value) == (
                f"connection to {peer.address} lost: closed by the peer during GET_MAX_OFFSET (30); "
                "the peer may have acted on it"
            )
        assert [address for address, _ in told] == [peer.address]
        peer.script = obedient
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        assert (await remoting.call(other.address, request(MAX))).code == 0
        assert connects == [peer.address, peer.address, other.address]
        await remoting.close()
        assert len(told) == 1  # closing it ourselves is no news


async def test_a_peer_that_was_away_has_another_connection_number() -> None:
    async with Peer() as peer:
        remoting = Remoting(config())
        assert remoting.connection_number(peer.address) == 0
        await remoting.call(peer.address, request(MAX))
        first = remoting.connection_number(peer.address)
        await remoting.call(peer.address, request(MAX))
        assert remoting.connection_number(peer.address) == first > 0
        peer.channels[0].hang_up()
        await until(lambda: remoting.connection_number(peer.address) == 0)
        await remoting.call(peer.address, request(MAX))
        assert remoting.connection_number(peer.address) > first
        await remoting.close()


async def test_a_call_that_meets_a_closing_connection_gets_a_new_one() -> None:
    async with Peer() as peer:
        remoting = Remoting(config())
        news: list[str] = []
        remoting.on_connect(lambda _: news.append("up"))
        remoting.on_disconnect(lambda *_: news.append("down"))
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        # Its transport goes only at the next turn of the event loop; until then the connection is in the table.
        remoting._connections[peer.address].abort(ConnectionLost(peer.address, "for the test"))
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        assert news == ["up", "down", "up"]
        remoting._connections[peer.address].abort(ConnectionLost(peer.address, "for the test"))
        await remoting.oneway(peer.address, request(MAX))
        await until(lambda: len(peer.received) == 3)
        assert news == ["up", "down", "up", "down", "up"]
        await remoting.close()


async def test_callers_share_one_attempt_and_one_that_leaves_does_not_end_it() -> None:
    async with Peer() as peer:
        remoting = Remoting(config())
        first = asyncio.create_task(remoting.call(peer.address, request(MAX)))
        others = [asyncio.create_task(remoting.call(peer.address, request(MAX))) for _ in range(20)]
        await asyncio.sleep(0)
        first.cancel()
        assert [answer.code for answer in await asyncio.gather(*others)] == [0] * 20
        assert len(peer.channels) == 1
        await remoting.close()


def _unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_back_off_fails_fast_and_says_why_and_until_when() -> None:
    now = 1000.0
    peer = Peer()
    peer.port = _unused_port()
    settings = config(backoff=BackoffPolicy(first=2.0, limit=8.0))
    remoting = Remoting(settings, clock=lambda: now, random=lambda: 0.5)
    command = request(MAX)
    with pytest.raises(ConnectError, match=r"cannot connect to 127\.0\.0\.1:\d+: .*refused[^(]*$") as refused:
        await remoting.call(peer.address, command)
    assert refused.value.retry_in == 1.5
    await peer.listen()  # it is up again, but its time has not come
    now += 1.4
    with pytest.raises(BackingOff, match=r"failed once and is left alone.*refused") as caught:
        await remoting.call(peer.address, command)
    assert (caught.value.failures, round(caught.value.retry_in or 0, 3)) == (1, 0.1)
    assert peer.channels == []
    now += 0.2
    assert (await remoting.call(peer.address, command)).code == 0
    await remoting.close()
    await peer.stop()


async def test_a_peer_that_accepts_and_hangs_up_is_backed_off_too() -> None:
    now = 0.0
    async with Peer(on_open=lambda channel: channel.hang_up()) as peer:
        settings = config(backoff=BackoffPolicy(first=1.0, limit=8.0))
        remoting = Remoting(settings, clock=lambda: now, random=lambda: 0.0)
        for attempt in (1, 2, 3):
            with pytest.raises(RocketMQError):
                await remoting.call(peer.address, request(MAX))
            await until(lambda: not remoting._connections)
            with pytest.raises(BackingOff, match="without an answer") as caught:
                await remoting.call(peer.address, request(MAX))
            assert caught.value.failures == attempt
            now += 60
        assert len(peer.channels) == 3
        await remoting.close()


async def test_connecting_counts_against_the_deadline() -> None:
    # A listener whose backlog is full accepts nothing: the handshake of TLS or TCP never ends.
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        remoting = Remoting(config())
        with pytest.raises(ConnectError, match=r"no connection within 0\.1 s"):
            await remoting.call(address, request(MAX), timeout=0.1)
        await remoting.close()
        for filler in fillers:
            filler.close()


async def test_an_address_that_is_none_says_so() -> None:
    remoting = Remoting(config())
    with pytest.raises(ConnectError, match="is not an address"):
        await remoting.call("broker-a", request(MAX))
    with pytest.raises(ConnectError, match="its name cannot be resolved"):
        await remoting.call("no-such-host.invalid:10911", request(MAX))
    await remoting.close()


async def test_ipv6() -> None:
    async with Peer(host="::1") as peer:
        remoting = Remoting(config())
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        assert (await remoting.call(f"::1:{peer.port}", request(MAX))).code == 0  # as older brokers register
        await remoting.close()


async def test_a_peer_that_stays_silent_is_given_up() -> None:
    async with Peer() as peer:
        remoting = Remoting(config(dead_after=0.3))
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        peer.script = silent
        long_poll = asyncio.create_task(remoting.call(peer.address, request(RequestCode.PULL_MESSAGE), 60))
        for _ in range(100):
            if long_poll.done():
                break
            with pytest.raises((RequestTimeout, ConnectionLost, ConnectError)):
                await remoting.call(peer.address, request(MAX), timeout=0.05)
        with pytest.raises(ConnectionLost, match="taken for dead during PULL_MESSAGE"):
            await long_poll
        await remoting.close()


async def test_one_timeout_on_an_idle_connection_does_not_end_it() -> None:
    async with Peer() as peer:
        remoting = Remoting(config(dead_after=0.3))
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        connection = remoting._connections[peer.address]
        connection._waiting_since = float("inf")
        idle_until = asyncio.get_running_loop().time() + 0.35
        await until(lambda: asyncio.get_running_loop().time() > idle_until)
        peer.script = silent
        with pytest.raises(RequestTimeout):
            await remoting.call(peer.address, request(MAX), timeout=0.05)
        assert not connection.closing
        await remoting.close()


async def test_oneway_is_marked_and_not_awaited() -> None:
    async with Peer(silent) as peer:
        remoting = Remoting(config())
        await remoting.oneway(peer.address, request(RequestCode.UPDATE_CONSUMER_OFFSET, {"queueId": 1}))
        await until(lambda: peer.received)
        assert peer.received[0].is_oneway
        assert not remoting._connections[peer.address]._pending
        await remoting.close()


async def test_close_fails_what_is_under_way_and_whatever_comes_after() -> None:
    async with Peer(silent) as peer:
        remoting = Remoting(config())
        call = asyncio.create_task(remoting.call(peer.address, request(MAX)))
        await until(lambda: peer.received)
        await remoting.close()
        with pytest.raises(ConnectionLost, match="the client was closed"):
            await call
        with pytest.raises(ClientClosed):
            await remoting.call(peer.address, request(MAX))
        await remoting.close()


async def test_close_during_a_connection_attempt() -> None:
    async with Peer() as peer:
        remoting = Remoting(config())
        call = asyncio.create_task(remoting.call(peer.address, request(MAX)))
        await asyncio.sleep(0)
        await remoting.close()
        with pytest.raises(ClientClosed):
            await call


async def test_a_callback_that_fails_harms_nobody() -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    async with Peer() as peer:
        remoting = Remoting(config())
        remoting.on_connect(broken)
        remoting.on_disconnect(broken)
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        peer.channels[0].reset()
        await until(lambda: not remoting.connected)
        assert (await remoting.call(peer.address, request(MAX))).code == 0
        await remoting.close()


async def test_nothing_is_left_for_the_garbage_collector_to_complain_about() -> None:
    async with Peer(silent) as peer:
        remoting = Remoting(config())
        await remoting.connect(peer.address)  # not within the time of a request: the machine may be busy
        for _ in range(3):
            with pytest.raises(RequestTimeout):
                await remoting.call(peer.address, request(MAX), timeout=0.02)
        abandoned = asyncio.create_task(remoting.call("127.0.0.1:1", request(MAX)))
        await asyncio.sleep(0)
        abandoned.cancel()
        await asyncio.gather(abandoned, return_exceptions=True)
        await until(lambda: not remoting._attempts)
        await remoting.close()
    problems: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: problems.append(context))
    gc.collect()
    await asyncio.sleep(0)
    assert problems == []
