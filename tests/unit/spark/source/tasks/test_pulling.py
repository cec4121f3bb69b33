"""Pulling a range from a broker that gives what it likes: less than asked, nothing yet, something else, or an error."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.client.errors import ConnectionLost, NoPermission
from rocketfleet.client.routing.routes import FoundBroker
from rocketfleet.spark.source.errors import SourceError
from rocketfleet.spark.source.options import ReadOptions, read_options
from rocketfleet.spark.source.tasks.pulling import AHEAD, Chunk, RangePuller, RangeTimings
from rocketfleet.spark.source.tasks.ranges import QueueRange
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command
from rocketfleet.wire.message.received import decode_messages
from rocketfleet.wire.message.stored import encode_stored
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Iterator

QUEUE = MessageQueue("orders", "broker-a", 0)
QUICK = RangeTimings(patience=5.0, first_pause=0.0, longest_pause=0.0)
MASTER, SLAVE = "master:1", "slave:1"


class Broker:
    """One queue. `caps` is how many messages it gives at a time, in turn; every `matching`th passes the filter."""

    def __init__(self, begin: int, end: int, caps: list[int], matching: int = 1) -> None:
        self.begin, self.end, self.matching = begin, end, matching
        self._caps = caps
        self.pulls = 0
        self.failures: Iterator[Exception | Command] = iter(())
        self.slave_end: int | None = None
        self.config = SimpleNamespace(timeout=1.0)
        self.remoting = self
        self.routes = SimpleNamespace(refresh=self.route)

    async def route(self, topic: str) -> None:
        assert topic == QUEUE.topic

    def reader(self, broker: str, broker_id: int = 0) -> FoundBroker:
        assert broker == QUEUE.broker
        return FoundBroker(SLAVE, True) if broker_id == 1 and self.slave_end is not None else FoundBroker(MASTER, False)

    async def call(self, address: str, command: Command, timeout: float) -> Command:
        await asyncio.sleep(0)
        failure = next(self.failures, None)
        if isinstance(failure, Exception):
            raise failure
        if failure is not None:
            return failure
        offset, most = int(command.fields["queueOffset"]), int(command.fields["maxMsgNums"])
        end = self.slave_end if address == SLAVE and self.slave_end is not None else self.end
        if offset < self.begin:
            return self.answer(ResponseCode.PULL_OFFSET_MOVED, self.begin, end)
        if offset >= end:
            return self.answer(ResponseCode.PULL_NOT_FOUND, offset, end)
        most = min(most, self._caps[self.pulls % len(self._caps)])
        self.pulls += 1
        found = [n for n in range(offset, end) if n % self.matching == 0][:most]
        if not found:
            return self.answer(ResponseCode.PULL_RETRY_IMMEDIATELY, end, end)
        body = b"".join(encode_stored("orders", b"x", queue_offset=n) for n in found)
        return self.answer(ResponseCode.SUCCESS, found[-1] + 1, end, body)

    def answer(self, code: int, following: int, end: int, body: bytes = b"") -> Command:
        suggested = 0 if self.slave_end is None else 1
        numbers = (following, self.begin, end, suggested)
        names = ("nextBeginOffset", "minOffset", "maxOffset", "suggestWhichBrokerId")
        return Command(int(code), dict(zip(names, map(str, numbers), strict=True)), body)


def options(**more: str) -> ReadOptions:
    return read_options({"topic": "orders", "nameServers": "h:1", **more}, streaming=False)


def pull(broker: Broker, start: int, end: int, rows: int = 50, **more: Any) -> list[Chunk]:
    async def run() -> list[Chunk]:
        timings = replace(QUICK, patience=more.pop("patience", QUICK.patience))
        client: Any = broker
        puller = RangePuller(client, options(**more), QueueRange(QUEUE, start, end), timings=timings)
        found: list[Chunk] = []
        try:
            while chunks := await puller.take(rows, 1 << 20):
                found += chunks
        finally:
            await puller.close()
        return found

    return asyncio.run(run())


def offsets(chunks: list[Chunk]) -> list[int]:
    """The offsets that a reader would keep: those within their chunk."""
    return [
        message.queue_offset
        for chunk in chunks
        for body in chunk.bodies
        for message in decode_messages(body)
        if chunk.range.start <= message.queue_offset < chunk.range.end
    ]


ranges = st.tuples(st.integers(0, 300), st.integers(0, 300)).map(sorted)


@given(ranges, st.lists(st.integers(1, 40), min_size=1), st.integers(1, 64))
def test_whatever_a_broker_gives_at_a_time_each_offset_comes_once_and_in_order(
    edges: list[int], caps: list[int], batch: int
) -> None:
    chunks = pull(Broker(0, 400, caps), edges[0], edges[1], pullBatchSize=str(batch))
    assert offsets(chunks) == list(range(*edges))


@given(ranges, st.lists(st.integers(1, 40), min_size=1), st.integers(1, 8), st.integers(1, 90))
def test_with_a_filter_too(edges: list[int], caps: list[int], batch: int, matching: int) -> None:
    broker = Broker(0, 400, caps, matching)
    chunks = pull(broker, edges[0], edges[1], pullBatchSize=str(batch), subExpression="a")
    assert offsets(chunks) == [n for n in range(*edges) if n % matching == 0]


@given(ranges, st.integers(0, 350))
def test_what_is_gone_is_an_error_or_is_counted(edges: list[int], begin: int) -> None:
    start, end = edges
    lost = max(0, min(begin, end) - start)
    if lost:
        with pytest.raises(SourceError, match=rf"offsets {start} to .* of orders@broker-a/0 are gone"):
            pull(Broker(begin, 400, [32]), start, end)
    chunks = pull(Broker(begin, 400, [32]), start, end, failOnDataLoss="false")
    assert sum(gone.size for chunk in chunks for gone in chunk.lost) == lost
    assert offsets(chunks) == list(range(start + lost, end))


def test_a_queue_that_became_shorter_is_a_loss() -> None:
    with pytest.raises(SourceError, match=r"offsets 20 to 31 .* are gone"):
        pull(Broker(0, 20, [32]), 0, 50)


def test_a_reset_of_the_group_is_not_followed() -> None:
    broker = Broker(0, 100, [32])
    broker.failures = iter([broker.answer(ResponseCode.PULL_OFFSET_MOVED, 3, 100)])
    assert offsets(pull(broker, 40, 90)) == list(range(40, 90))


def test_a_slave_that_is_behind_is_left_for_the_master() -> None:
    broker = Broker(0, 100, [32])
    broker.slave_end = 50
    assert offsets(pull(broker, 0, 100)) == list(range(100))


def test_a_broker_that_is_away_for_a_moment_is_asked_again() -> None:
    broker = Broker(0, 100, [32])
    broker.failures = iter([ConnectionLost(MASTER, "it is so")] * 20)
    assert offsets(pull(broker, 0, 100)) == list(range(100))


def test_a_broker_that_stays_away_is_an_error() -> None:
    broker = Broker(0, 100, [32])
    broker.failures = iter(lambda: ConnectionLost(MASTER, "it is so"), None)
    with pytest.raises(ConnectionLost):
        pull(broker, 0, 100, patience=0.05)


def test_a_broker_that_has_messages_and_gives_none_is_an_error() -> None:
    broker = Broker(0, 100, [32])
    broker.failures = iter(lambda: broker.answer(ResponseCode.PULL_NOT_FOUND, 10, 100), None)
    with pytest.raises(SourceError, match="says that orders@broker-a/0 ends at offset 100 and yet has given nothing"):
        pull(broker, 10, 100, patience=0.05)


def test_no_permission_is_one_sentence() -> None:
    broker = Broker(0, 100, [32])
    refused = NoPermission(ResponseCode.NO_PERMISSION, "not you", MASTER, RequestCode.PULL_MESSAGE)
    broker.failures = iter([refused])
    with pytest.raises(SourceError, match="group rocketfleet-spark may not read topic orders at broker-a: not you"):
        pull(broker, 0, 100)


def test_no_more_is_asked_for_than_is_taken() -> None:
    async def run() -> int:
        broker: Any = Broker(0, 10_000, [32])
        puller = RangePuller(broker, options(), QueueRange(QUEUE, 0, 10_000), timings=QUICK)
        taken = await puller.take(64, 1 << 20)
        for _ in range(1000):
            await asyncio.sleep(0)
        await puller.close()
        assert sum(chunk.range.size for chunk in taken) == 64
        return int(broker.pulls)

    assert asyncio.run(run()) == 2 + AHEAD
