"""Messages that fail, concurrently consumed: through the retry topic, to the dead letters, and never in the way.

Delays are the broker's levels; its first is one second, so these tests choose that one where they may.
"""

import asyncio
import threading
from collections.abc import Callable

import pytest
from tests.broker.consumer.scene import Got, Scene, until

from rocketfleet.client.errors import ConnectionLost
from rocketfleet.client.requests import broker_messages
from rocketfleet.consumer.delivery.concurrent import ConcurrentTimings
from rocketfleet.consumer.results import RETRY, SUCCESS, Retry
from rocketfleet.consumer.timings import ConsumerTimings
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.message import ReceivedMessage

SECOND = Retry(level=1)
Topics = Callable[..., str]


async def passed(scene: Scene, group: str, topic: str, offset: int) -> None:
    async def committed() -> bool:
        return await scene.committed(group, topic) == offset

    await until(committed, f"offset {offset} is committed")


async def test_a_failed_message_comes_back_through_the_retry_topic(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=1)
    got = Got(lambda message: SECOND if message.body == b"1" and message.reconsume_times < 2 else SUCCESS)
    await scene.send(topic, 0, 1, 2, tags="a", keys="k", properties={"own": "property"})
    await scene.member(group, topic, got)
    await until(lambda: len(got) == 5)
    tries = [message for message in got.messages if message.body == b"1"]
    assert [message.reconsume_times for message in tries] == [0, 1, 2]
    assert {message.msg_id for message in tries} == {tries[0].msg_id}
    assert {message.topic for message in tries} == {topic}, "a handler knows it by the topic it came from"
    assert all((m.tags, m.keys, m.properties["own"]) == ("a", ("k",), "property") for m in tries)
    await passed(scene, group, topic, 3)
    await passed(scene, group, f"%RETRY%{group}", 2)
    assert len(await scene.found(f"%RETRY%{group}", 2)) == 2


async def test_the_handler_chooses_the_delay_and_without_a_choice_the_broker_does(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    """A delayed message waits in the queue of its level: read there, nobody has to wait for it."""
    topic = make_topic(queues=1)
    await scene.send(topic, "none", "four", "boolean", "raised")

    def answer(message: ReceivedMessage) -> object:
        if message.body == b"raised":
            raise ValueError("the handler's own error")
        return {b"none": RETRY, b"four": Retry(level=4), b"boolean": False}[message.body]

    await scene.member(group, topic, answer)
    await passed(scene, group, topic, 4)
    assert {message.body for message in await scene.delayed(group, 3, 3)} == {b"none", b"boolean", b"raised"}
    assert [message.body for message in await scene.delayed(group, 4, 1)] == [b"four"]


async def test_after_all_its_tries_a_message_is_a_dead_letter(
    scene: Scene, make_topic: Topics, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic(queues=1)
    got = Got(lambda message: SECOND if message.body == b"bad" else SUCCESS)
    await scene.send(topic, "good", "bad", "better")
    await scene.member(group, topic, got, max_reconsume_times=1)

    async def dead() -> bool:
        return (await scene.committed(group, f"%RETRY%{group}")) == 1

    await until(dead)
    [letter] = await scene.found(f"%DLQ%{group}", 1)
    assert letter.body == b"bad"
    assert letter.properties["RETRY_TOPIC"] == topic
    assert [tries for body, tries in zip(got.bodies, got.tries, strict=True) if body == "bad"] == [0, 1]
    said = f"is given up after attempt 2 of 2: it is in the dead letters %DLQ%{group} now"
    assert [said in record.getMessage() for record in caplog.records if "dead letter" in record.getMessage()] == [True]

    await passed(scene, group, topic, 3)


async def test_the_log_line_of_the_last_error_says_that_it_was_the_last(
    scene: Scene, make_topic: Topics, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic(queues=1)
    await scene.send(topic, "bad")

    def fail(message: ReceivedMessage) -> None:
        raise ValueError("the handler's own error")

    await scene.member(group, topic, fail, max_reconsume_times=0)
    await passed(scene, group, topic, 1)
    [raised] = [record for record in caplog.records if "raised on" in record.getMessage()]
    assert f"attempt 1 of 1): it goes to the dead letters %DLQ%{group}" in raised.getMessage()
    assert raised.exc_info is not None
    assert raised.exc_info[2].tb_frame.f_code is fail.__code__, "the traceback begins in the handler"  # type: ignore[union-attr]  # there is one
    assert len(await scene.found(f"%DLQ%{group}", 1)) == 1


async def test_a_message_may_be_sent_to_the_dead_letters_at_once(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    await scene.send(topic, "hopeless", "fine")
    got = Got(lambda message: Retry(level=-1) if message.body == b"hopeless" else SUCCESS)
    await scene.member(group, topic, got)
    await passed(scene, group, topic, 2)
    assert [letter.body for letter in await scene.found(f"%DLQ%{group}", 1)] == [b"hopeless"]
    assert len(got) == 2


async def test_in_a_batch_each_message_has_its_own_result(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    batches: list[list[bytes]] = []
    await scene.fill(topic, 0, 8)

    async def handler(messages: list[ReceivedMessage]) -> list[object]:
        batches.append([message.body for message in messages])
        odd = [int(message.body) % 2 == 1 and message.reconsume_times == 0 for message in messages]
        return [SECOND if again else None for again in odd]

    await scene.member(group, topic, handler, consume_message_batch_max_size=4)
    await passed(scene, group, f"%RETRY%{group}", 4)
    await passed(scene, group, topic, 8)
    handled = [body for batch in batches for body in batch]
    assert sorted(handled) == sorted([b"%d" % n for n in range(8)] + [b"1", b"3", b"5", b"7"])
    assert max(map(len, batches)) == 4


async def test_a_handler_that_hangs_loses_its_message_and_the_offset_goes_on(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=1)
    let_go = threading.Event()

    def handler(message: ReceivedMessage) -> None:
        if message.body == b"1":
            let_go.wait()

    await scene.send(topic, 0, 1, 2)
    member = await scene.member(group, topic, handler, consume_timeout=1.0)
    try:
        await passed(scene, group, topic, 3)
    finally:
        let_go.set()
    assert member.tally.expired == 1
    assert [message.body for message in await scene.delayed(group, 3, 1)] == [b"1"]


async def test_what_cannot_be_sent_back_is_tried_again_here_and_not_passed(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=1)
    quick = ConsumerTimings(concurrent=ConcurrentTimings(retry_locally_after=0.05))
    await scene.send(topic, 0, 1, 2)
    got = Got(lambda message: RETRY if message.body == b"1" and message.reconsume_times < 3 else SUCCESS)
    member = scene.made(group, topic, got, consumer={"timings": quick})

    async def refuse(_message: ReceivedMessage, _level: int) -> None:
        raise ConnectionLost("the broker", "the test says so")

    member._send_back = refuse  # type: ignore[method-assign, assignment]  # that is the point
    await member.start()
    await passed(scene, group, topic, 3)
    assert [tries for body, tries in zip(got.bodies, got.tries, strict=True) if body == "1"] == [0, 1, 2, 3]
    assert member.tally.send_back_failed == 3
    assert await scene.read(f"%RETRY%{group}") == []


async def test_a_failure_in_the_groups_first_moments_is_not_lost(scene: Scene, make_topic: Topics, group: str) -> None:
    """It may reach the retry queue before the member does; consumeFromWhere must not make it skip that."""
    topic = make_topic(queues=1)
    await scene.send(topic, "early")
    [message] = await scene.found(topic, 1)
    await broker_messages.send_back(scene.client.remoting, scene.address, group, message, delay_level=1)
    await scene.found(f"%RETRY%{group}", 1)  # it waits there, and nobody has been there yet
    assert await scene.committed(group, f"%RETRY%{group}") is None
    got = Got()
    await scene.member(
        group, topic, got, consume_from_where=ConsumeFromWhere.TIMESTAMP, consume_timestamp=4e9, drain_timeout=1.0
    )
    await until(lambda: len(got) == 1)
    assert got.messages[0].reconsume_times == 1


async def test_an_asynchronous_handler_that_is_cancelled_from_within_has_failed(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=1)
    tries: list[int] = []

    async def handler(message: ReceivedMessage) -> None:
        tries.append(message.reconsume_times)
        if message.reconsume_times == 0:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            future.cancel()
            await future

    await scene.send(topic, 0)
    await scene.member(group, topic, handler)
    await passed(scene, group, topic, 1)
    assert len(await scene.delayed(group, 3, 1)) == 1
    assert tries == [0]
