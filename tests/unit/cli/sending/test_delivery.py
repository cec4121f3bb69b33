"""The delivery against a sender that can be slow, fail, and keep count of what is under way."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.waiting import until

from rocketfleet.cli.sending.delivery import Delivery, OutgoingBody, SendCounters, at_most, lines_of, repeated
from rocketfleet.cli.sending.pace import SendRate
from rocketfleet.client.errors import NoRoute


class Broker:
    """Takes bodies; fails those that begin with `bad`. `gate` holds everything back while it is closed."""

    def __init__(self) -> None:
        self.taken: list[list[bytes]] = []
        self.under_way = 0
        self.most_under_way = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, bodies: Sequence[bytes]) -> None:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(0)
            await self.gate.wait()
            if any(body.startswith(b"bad") for body in bodies):
                raise NoRoute("t", "it is gone")
            self.taken.append(list(bodies))
        finally:
            self.under_way -= 1


class Run:
    """A delivery with everything that a test wants to look at."""

    def __init__(self, **options: Any) -> None:
        self.broker = Broker()
        self.said: list[str] = []
        self.tally = SendCounters()
        self.stop = asyncio.Event()
        self.delivery = Delivery(
            self.broker.send,
            tally=self.tally,
            stop=self.stop,
            say=self.said.append,
            **{"most_bytes": 100, **options},
        )

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.tally.sent, self.tally.failed, self.tally.empty


async def given_bodies(bodies: Sequence[bytes | None]) -> AsyncIterator[OutgoingBody]:
    for number, data in enumerate(bodies, 1):
        yield OutgoingBody(number, data)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([b"", b"a", b"bad", b"x" * 60, b"x" * 200, None]), max_size=40),
    st.integers(1, 5),
    st.integers(1, 4),
)
async def test_every_body_is_sent_or_counted(bodies: list[bytes | None], batch: int, under_way: int) -> None:
    run = Run(batch=batch, under_way=under_way)
    await run.delivery.run(given_bodies(bodies))
    sent, failed, empty = run.counts
    assert sent + failed + empty == len(bodies)
    assert sent == sum(map(len, run.broker.taken))
    assert empty == bodies.count(b"")
    assert run.broker.most_under_way <= under_way
    for taken in run.broker.taken:
        assert len(taken) <= batch
        assert sum(map(len, taken)) <= 100


@settings(max_examples=30)
@given(st.lists(st.sampled_from([b"a", b"b" * 70, b"c"]), max_size=30), st.integers(1, 5))
async def test_one_under_way_keeps_the_order(bodies: list[bytes], batch: int) -> None:
    run = Run(batch=batch, under_way=1)
    await run.delivery.run(given_bodies(bodies))
    assert [body for taken in run.broker.taken for body in taken] == bodies


async def test_failures_name_their_lines_and_the_rest_goes_on() -> None:
    run = Run()
    await run.delivery.run(given_bodies([b"a", b"bad", None, b"b"]))
    assert run.counts == (2, 2, 0)
    # Line 3 is never sent, so what is wrong with it may be known first.
    assert sorted(run.said) == [
        "line 2: no route to topic t: it is gone",
        "line 3: longer than a message may be (100 bytes)",
    ]


async def test_a_failed_batch_names_all_its_lines() -> None:
    run = Run(batch=3, unit="message")
    await run.delivery.run(given_bodies([b"a", b"bad", b"b"]))
    assert run.counts == (0, 3, 0)
    assert run.said == ["messages 1 to 3: no route to topic t: it is gone"]


async def test_a_flood_of_failures_is_counted_and_not_shown() -> None:
    run = Run(under_way=4)
    await run.delivery.run(given_bodies([b"bad"] * 500))
    assert run.counts == (0, 500, 0)
    assert len(run.said) == 11
    assert run.said[-1] == "more failures are counted but not shown"


async def test_the_overhead_of_a_batch_counts() -> None:
    run = Run(batch=10, batch_overhead=20)
    await run.delivery.run(given_bodies([b"x" * 30] * 4 + [b"y" * 81]))
    assert [len(taken) for taken in run.broker.taken] == [2, 2]
    assert run.counts == (4, 1, 0)


async def test_a_stop_lets_what_is_under_way_come_to_its_end() -> None:
    run = Run(under_way=3)
    run.broker.gate.clear()
    running = asyncio.create_task(run.delivery.run(repeated(b"x", 100)))
    await until(lambda: run.broker.under_way == 3)
    run.stop.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not running.done()
    run.broker.gate.set()
    await running
    assert run.counts == (3, 0, 0)


async def test_a_stop_ends_the_wait_for_the_next_turn() -> None:
    run = Run(pace=SendRate(0.001, lambda: 0.0))  # the second turn comes after a quarter of an hour
    running = asyncio.create_task(run.delivery.run(repeated(b"x", 2)))
    await until(lambda: run.tally.sent == 1)
    run.stop.set()
    await asyncio.wait_for(running, 30)
    assert run.counts == (1, 0, 0)


async def test_lines_of_a_pipe_as_they_come() -> None:
    reading, writing = os.pipe()
    stop = asyncio.Event()
    try:
        lines = lines_of(reading, 10, stop)
        os.write(writing, b"one\ntwo\nthr")
        assert await anext(lines) == OutgoingBody(1, b"one")
        assert await anext(lines) == OutgoingBody(2, b"two")
        third = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0)
        assert not third.done()
        os.write(writing, b"ee")
        os.close(writing)
        assert await asyncio.wait_for(third, 30) == OutgoingBody(3, b"three")
        assert [line async for line in lines] == []
    finally:
        os.close(reading)


async def test_a_stop_ends_the_wait_for_a_line() -> None:
    reading, writing = os.pipe()
    stop = asyncio.Event()
    try:
        waiting = asyncio.ensure_future(anext(lines_of(reading, 10, stop), None))
        await asyncio.sleep(0)
        stop.set()
        assert await asyncio.wait_for(waiting, 30) is None
    finally:
        os.close(reading)
        os.close(writing)


async def test_lines_of_a_regular_file(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"".join(b"%d\n" % i for i in range(30_000)))
    descriptor = os.open(file, os.O_RDONLY)
    try:
        lines = [line async for line in lines_of(descriptor, 10, asyncio.Event())]
    finally:
        os.close(descriptor)
    assert lines == [OutgoingBody(i + 1, b"%d" % i) for i in range(30_000)]


async def test_the_first_so_many() -> None:
    assert [body.number async for body in at_most(repeated(b"x", 5), 3)] == [1, 2, 3]
    assert [body.number async for body in at_most(repeated(b"x", 2), 3)] == [1, 2]


def test_the_summary() -> None:
    tally = SendCounters()
    tally.sent = 1
    assert tally.summary("orders", 0.25) == "sent 1 message to orders in 0.25 s"
    tally.sent, tally.failed, tally.empty = 12000, 3, 1
    said = "sent 12,000 messages to orders in 2.00 s, 6,000 per second; 3 failed; 1 empty line left out"
    assert tally.summary("orders", 2.0) == said
