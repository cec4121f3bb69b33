"""The shell of the accumulator: everyone gets their own answer, or their own failure, and nobody waits forever."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.support.waiting import until

from rocketfleet.producer.batching.accumulating import Accumulating, BatchKey, Waiting
from rocketfleet.producer.batching.accumulator import BatchLimits
from rocketfleet.producer.errors import ProducerClosed, ProducerError, SendFailed, SendTimeout
from rocketfleet.producer.result import SendResult, SendStatus
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

KEY = BatchKey("t", None, True, None, 5.0)
QUEUE = MessageQueue("t", "a", 0)


class Sender:
    """Answers batches when the test says so."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.error: Exception | None = None

    async def __call__(self, key: BatchKey, waiting: Sequence[Waiting]) -> Sequence[SendResult]:
        self.batches.append([one.encoded for one in waiting])
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return [SendResult(SendStatus.SEND_OK, one.encoded.decode(), "", QUEUE, i) for i, one in enumerate(waiting)]


def start(accumulating: Accumulating, text: bytes, key: BatchKey = KEY) -> "asyncio.Task[SendResult]":
    return asyncio.ensure_future(accumulating.send(key, Message("t", text), text))


async def test_everyone_gets_their_own_result() -> None:
    sender = Sender()
    accumulating = Accumulating(BatchLimits(max_messages=3, max_delay=30), sender)
    results = await asyncio.gather(*(start(accumulating, f"m{i}".encode()) for i in range(6)))
    assert [result.msg_id for result in results] == [f"m{i}" for i in range(6)]
    assert sender.batches == [[b"m0", b"m1", b"m2"], [b"m3", b"m4", b"m5"]]
    assert accumulating.held == 0


async def test_time_closes_a_batch_that_does_not_fill() -> None:
    sender = Sender()
    accumulating = Accumulating(BatchLimits(max_delay=0.005), sender)
    results = await asyncio.gather(start(accumulating, b"one"), start(accumulating, b"two"))
    assert [result.msg_id for result in results] == ["one", "two"]
    assert (await start(accumulating, b"three")).msg_id == "three"


async def test_keys_are_kept_apart() -> None:
    sender = Sender()
    accumulating = Accumulating(BatchLimits(max_delay=0.005), sender)
    await asyncio.gather(start(accumulating, b"a1"), start(accumulating, b"b1", KEY._replace(topic="u")))
    assert sorted(sender.batches) == [[b"a1"], [b"b1"]]


async def test_a_failure_reaches_each_caller_as_an_error_of_its_own() -> None:
    sender = Sender()
    cause = OSError("wire cut")
    sender.error = SendFailed("t", ("a", "b"), 1.0, cause)
    sender.error.__cause__ = cause
    accumulating = Accumulating(BatchLimits(max_messages=2, max_delay=30), sender)
    one, two = await asyncio.gather(start(accumulating, b"one"), start(accumulating, b"two"), return_exceptions=True)
    assert isinstance(one, SendFailed)
    assert isinstance(two, SendFailed)
    assert one is not two
    assert str(one) == str(two) == str(sender.error)
    assert one.brokers == ("a", "b")
    assert one.__cause__ is cause
    assert accumulating.held == 0


async def test_back_pressure_lets_callers_in_by_turns() -> None:
    sender = Sender()
    sender.go.clear()
    accumulating = Accumulating(BatchLimits(max_bytes=10, max_delay=0.001, max_held=20), sender)
    tasks = [start(accumulating, f"message-{i}".encode()) for i in range(6)]
    await until(lambda: len(sender.batches) == 2)
    assert accumulating.held == 18, "two are under way, the others wait outside"
    sender.go.set()
    results = await asyncio.gather(*tasks)
    assert [result.msg_id for result in results] == [f"message-{i}" for i in range(6)]
    assert [batch[0] for batch in sender.batches] == [f"message-{i}".encode() for i in range(6)], (
        "first come, first served"
    )


async def test_waiting_for_room_is_bounded() -> None:
    sender = Sender()
    sender.go.clear()
    accumulating = Accumulating(BatchLimits(max_bytes=4, max_delay=0.001, max_held=4), sender)
    stuck = start(accumulating, b"1234")
    with pytest.raises(SendTimeout, match=r"no room for the message within 0\.02 s; 4 bytes wait"):
        await start(accumulating, b"5678", KEY._replace(timeout=0.02))
    behind = start(accumulating, b"9012")
    sender.go.set()
    assert (await stuck).msg_id == "1234"
    assert (await behind).msg_id == "9012", "the one that gave up blocks nobody"


async def test_a_cancelled_caller_takes_its_message_along() -> None:
    sender = Sender()
    accumulating = Accumulating(BatchLimits(max_delay=0.01), sender)
    leaving, staying = start(accumulating, b"leaving"), start(accumulating, b"staying")
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).msg_id == "staying"
    assert sender.batches == [[b"staying"]]
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert accumulating.held == 0


async def test_a_cancelled_caller_in_line_lets_the_next_one_in() -> None:
    sender = Sender()
    sender.go.clear()
    accumulating = Accumulating(BatchLimits(max_bytes=4, max_delay=0.001, max_held=4), sender)
    first, second, third = (start(accumulating, text) for text in (b"1111", b"2222", b"3333"))
    await until(lambda: len(sender.batches) == 1)
    second.cancel()
    sender.go.set()
    assert (await first).msg_id == "1111"
    assert (await third).msg_id == "3333"
    assert sender.batches == [[b"1111"], [b"3333"]]


async def test_closing_sends_everything_that_was_given() -> None:
    sender = Sender()
    accumulating = Accumulating(BatchLimits(max_bytes=8, max_delay=30, max_held=8), sender)
    tasks = [start(accumulating, f"m{i:03}".encode()) for i in range(7)]
    await asyncio.sleep(0)
    await accumulating.close()
    assert [task.result().msg_id for task in tasks] == [f"m{i:03}" for i in range(7)]
    with pytest.raises(ProducerClosed):
        await start(accumulating, b"late")


async def test_a_bug_below_leaves_nobody_waiting() -> None:
    class Broken:
        async def __call__(self, key: BatchKey, waiting: Sequence[Waiting]) -> Sequence[SendResult]:
            raise KeyError("a bug")

    accumulating = Accumulating(BatchLimits(max_delay=0.001), Broken())
    noted: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noted.append(context))
    with pytest.raises(ProducerError, match="a bug"):
        await start(accumulating, b"x")
    assert accumulating.held == 0
