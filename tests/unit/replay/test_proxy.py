"""The proxy between a member and a broker, with a peer that echoes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.broker.replay.proxy import Do, Of, Passage, Proxy, Rule
from tests.support.waiting import until

from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConnectError, ConnectionLost, RequestTimeout, RocketMQError
from rocketfleet.client.transport.remoting import Remoting
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command, decode, encode, reply_to, request
from rocketfleet.wire.frame import FrameDecoder

LOCK, COMMIT = RequestCode.LOCK_BATCH_MQ, RequestCode.UPDATE_CONSUMER_OFFSET


class Peer:
    """It answers every request with the number of those that came before, and remembers their marks."""

    def __init__(self) -> None:
        self.marks: list[str] = []
        self.writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        decoder = FrameDecoder()
        try:
            while chunk := await reader.read(1000):
                for payload in decoder.feed(chunk):
                    asked = decode(payload)
                    self.marks.append(asked.fields["mark"])
                    writer.write(encode(reply_to(asked, fields={"before": len(self.marks) - 1})))
        except ConnectionError:
            pass
        self.writers.discard(writer)
        writer.close()

    async def stop(self) -> None:
        self._server.close()
        for writer in self.writers:
            writer.close()


class Between:
    def __init__(self, peer: Peer, proxy: Proxy, client: Remoting, seen: list[Passage]) -> None:
        self.peer, self.proxy, self.client, self.seen = peer, proxy, client, seen

    async def ask(self, mark: str, code: int = LOCK, timeout: float = 5.0) -> Command:
        return await self.client.call(self.proxy.address, request(code, {"mark": mark}), timeout)

    def asking(self, mark: str, code: int = LOCK, timeout: float = 5.0) -> "asyncio.Task[Command]":
        return asyncio.create_task(self.ask(mark, code, timeout))


@pytest.fixture
async def between() -> AsyncIterator[Between]:
    peer, seen = Peer(), list[Passage]()
    proxy = Proxy(await peer.start(), observe=seen.append)
    await proxy.open()
    client = Remoting(ClientConfig("127.0.0.1:1"))
    yield Between(peer, proxy, client, seen)
    await client.close()
    await proxy.close()
    await peer.stop()


def of(code: int) -> Callable[[Passage], bool]:
    return lambda passage: passage.command.code == code


async def fails_with(error: type[RocketMQError], call: Awaitable[object]) -> None:
    with pytest.raises(error):
        await call


async def test_what_no_rule_means_passes(between: Between) -> None:
    between.proxy.add(Rule(of(COMMIT), Do.DROP))
    assert (await between.ask("a")).fields["before"] == "0"
    assert between.peer.marks == ["a"]
    last = between.seen[-1]
    assert last.forwarded is not None
    assert last.answered is not None
    assert last.arrived <= last.forwarded <= last.answered
    assert last.heard


async def test_what_is_held_is_overtaken_and_goes_on_when_it_is_released(between: Between) -> None:
    rule = between.proxy.add(Rule(of(LOCK), Do.HOLD))
    held = between.asking("held")
    await until(lambda: rule.held)
    await between.ask("later", COMMIT)
    assert between.peer.marks == ["later"]
    between.proxy.release(rule)
    assert (await held).fields["before"] == "1"
    await between.ask("after")
    assert between.peer.marks == ["later", "held", "after"]


async def test_of_what_is_held_the_newest_is_kept(between: Between) -> None:
    rule = between.proxy.add(Rule(of(LOCK), Do.HOLD))
    first, second = between.asking("first", timeout=0.3), between.asking("second")
    await until(lambda: len(rule.met) == 2)
    between.proxy.let(rule)
    await second
    await fails_with(RequestTimeout, first)
    third = between.asking("third")
    await until(lambda: len(rule.met) == 3)
    between.proxy.release(rule)
    await third
    assert between.peer.marks == ["second", "third"]


async def test_a_request_may_be_late(between: Between) -> None:
    between.proxy.add(Rule(of(LOCK), Do.DELAY, seconds=0.1, count=1))
    late = between.asking("late")
    await until(lambda: between.seen)
    await between.ask("on time")
    await late
    assert between.peer.marks == ["on time", "late"]


async def test_an_answer_that_is_dropped_is_not_heard_though_the_request_was_handled(between: Between) -> None:
    between.proxy.add(Rule(of(LOCK), Do.DROP, Of.ANSWER, count=1))
    await fails_with(RequestTimeout, between.ask("once", timeout=0.2))
    assert between.peer.marks == ["once"]
    assert not between.seen[-1].heard
    await between.ask("twice")


async def test_an_answer_may_be_held(between: Between) -> None:
    rule = between.proxy.add(Rule(of(LOCK), Do.HOLD, Of.ANSWER))
    held = between.asking("held")
    await until(lambda: rule.held)
    assert between.peer.marks == ["held"]
    between.proxy.release(rule)
    await held


async def test_a_request_may_reset_its_connection(between: Between) -> None:
    between.proxy.add(Rule(of(COMMIT), Do.RESET, count=1))
    await between.ask("a")
    await fails_with(ConnectionLost, between.ask("b", COMMIT))
    await between.ask("c", COMMIT)
    assert between.peer.marks == ["a", "c"]


async def test_what_is_held_is_lost_with_its_connection(between: Between) -> None:
    await between.ask("a")
    rule = between.proxy.add(Rule(of(LOCK), Do.HOLD))
    held = between.asking("held")
    await until(lambda: rule.held)
    await between.proxy.reset()
    await fails_with(ConnectionLost, held)
    between.proxy.release(rule)
    await between.ask("b")
    assert between.peer.marks == ["a", "b"]


async def test_one_that_is_shut_refuses_until_it_is_opened_again(between: Between) -> None:
    await between.ask("a")
    await between.proxy.shut()
    assert between.proxy.connected == 0
    await fails_with(ConnectError, between.ask("b"))
    await between.proxy.open()

    async def through() -> bool:
        return (await between.ask("c")).code == 0

    await until(through, ignoring=(ConnectError,))
    assert between.peer.marks == ["a", "c"]


async def test_a_peer_that_is_gone_is_gone_for_the_member_too(between: Between) -> None:
    await between.ask("a")
    await between.peer.stop()
    await until(lambda: between.proxy.connected == 0)
    await fails_with(RocketMQError, between.ask("b"))
