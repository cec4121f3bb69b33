"""Orderly consumption on a real broker: the order holds while members come and go, and failures wait in place."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable

from tests.broker.consumer.scene import Got, Scene, of_topic, until

from rocketfleet.consumer.results import COMMIT, RETRY, ROLLBACK, SUCCESS, SUSPEND, Retry
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.wire.message import ReceivedMessage

ORDERLY = ConsumeMode.ORDERLY
Topics = Callable[..., str]


async def test_the_order_of_each_queue_holds_while_members_join_and_leave(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=4)
    lock = threading.Lock()
    seen: dict[int, list[int]] = defaultdict(list)
    inside: set[int] = set()
    overlaps: list[int] = []

    async def handler(message: ReceivedMessage) -> None:
        queue = message.queue_id
        if queue in inside:
            overlaps.append(queue)
        inside.add(queue)
        await asyncio.sleep(0.004)  # slower than messages come, so that there are always some waiting
        with lock:
            seen[queue].append(message.queue_offset)
        inside.discard(queue)

    stop = asyncio.Event()
    sent = [0, 0, 0, 0]

    async def produce() -> None:
        while not stop.is_set():
            for queue in range(4):
                await scene.fill(topic, queue, 10, first=sent[queue])
                sent[queue] += 10
            await asyncio.sleep(0.03)

    producing = asyncio.create_task(produce())
    first = await scene.member(group, topic, handler, consume_mode=ORDERLY)
    await until(lambda: of_topic(first, topic) == {0, 1, 2, 3})
    second = await scene.member(group, topic, handler, consume_mode=ORDERLY)
    await until(lambda: len(of_topic(first, topic)) == len(of_topic(second, topic)) == 2)
    third = await scene.member(group, topic, handler, consume_mode=ORDERLY)
    await until(lambda: sorted(len(of_topic(m, topic)) for m in (first, second, third)) == [1, 1, 2])
    await first.stop()
    await until(lambda: len(of_topic(second, topic)) == len(of_topic(third, topic)) == 2)
    stop.set()
    await producing
    await until(lambda: [len(set(seen[queue])) for queue in range(4)] == sent)
    assert overlaps == [], "two handlers at once on one queue"
    assert all(seen[queue] == list(range(sent[queue])) for queue in range(4)), "in order, none twice, none missing"


async def test_a_failure_suspends_its_queue_and_is_tried_again_in_place(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=2)
    got = Got()
    answers = {b"1": [SUSPEND, RETRY, ValueError("no"), Retry(seconds=0.01), SUCCESS]}

    def answer(message: ReceivedMessage) -> object:
        following = answers[message.body].pop(0) if message.body in answers else SUCCESS
        if isinstance(following, Exception):
            raise following
        return following

    got.answer = answer
    await scene.send(topic, 0, 1, 2, 3, queue=0)
    await scene.send(topic, "a", "b", "c", queue=1)
    member = await scene.member(group, topic, got, consume_mode=ORDERLY, suspend_current_queue_time=0.05)
    await until(lambda: len(got) == 4 + 4 + 3)
    assert [body for body in got.bodies if body.isdigit()] == ["0", "1", "1", "1", "1", "1", "2", "3"]
    assert [tries for body, tries in zip(got.bodies, got.tries, strict=True) if body == "1"] == [0, 1, 2, 3, 4]
    assert [body for body in got.bodies if not body.isdigit()] == ["a", "b", "c"]
    await member.stop()
    assert await scene.committed(group, topic, 0) == 4
    assert await scene.read(f"%RETRY%{group}") == [], "nothing is sent back"


async def test_after_all_its_tries_a_message_is_a_dead_letter_and_the_queue_goes_on(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=1)
    got = Got(lambda message: RETRY if message.body == b"bad" else SUCCESS)
    await scene.send(topic, "first", "bad", "last")
    member = await scene.member(
        group, topic, got, consume_mode=ORDERLY, suspend_current_queue_time=0.02, max_reconsume_times=2
    )
    await until(lambda: got.bodies[-1:] == ["last"])
    assert got.bodies == ["first", "bad", "bad", "bad", "last"]
    [letter] = await scene.found(f"%DLQ%{group}", 1)
    assert letter.body == b"bad"
    await member.stop()
    assert await scene.committed(group, topic) == 3


async def test_without_auto_commit_the_handler_commits_and_rolls_back(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=1)
    rolled_back = False

    def answer(message: ReceivedMessage) -> object:
        nonlocal rolled_back
        if message.body == b"2":
            return COMMIT
        if message.body == b"5" and not rolled_back:
            rolled_back = True
            return ROLLBACK
        return SUCCESS

    got = Got(answer)
    await scene.send(topic, *range(7))
    member = await scene.member(
        group, topic, got, consume_mode=ORDERLY, auto_commit=False, suspend_current_queue_time=0.02
    )
    await until(lambda: got.bodies[-1:] == ["6"])
    assert got.bodies == ["0", "1", "2", "3", "4", "5", "3", "4", "5", "6"]

    async def committed() -> bool:
        return await scene.committed(group, topic) == 3

    await until(committed)
    final = await member.stop()
    [offset] = [offset for queue, offset in final.items() if queue.topic == topic]
    assert (offset.offset, offset.confirmed) == (3, True)
    again = Got(lambda _message: COMMIT)
    await scene.member(group, topic, again, consume_mode=ORDERLY, auto_commit=False)
    await until(lambda: again.bodies == ["3", "4", "5", "6"])


async def test_a_batch_is_handled_in_order_too(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    batches: list[list[int]] = []

    def handler(messages: list[ReceivedMessage]) -> object:
        batches.append([int(message.body) for message in messages])
        return RETRY if len(batches) == 2 else SUCCESS

    await scene.fill(topic, 0, 10)
    await scene.member(
        group,
        topic,
        handler,
        consume_mode=ORDERLY,
        consume_message_batch_max_size=4,
        suspend_current_queue_time=0.02,
    )
    await until(lambda: batches[-1:] and batches[-1][-1] == 9)
    assert batches[1] == batches[2]
    del batches[1]
    assert [number for batch in batches for number in batch] == list(range(10))
