"""Several members: shares, sticky and even ones, and what is asked of them from outside."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable

import pytest
from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import Got, Scene, of_topic, queues, until

from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.requests import broker_members, broker_offsets
from rocketfleet.client.requests.calls import ask
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.results import COMMIT, RETRY, ROLLBACK
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.wire.bodies import ConsumeMessageDirectlyResult, TopicConfig
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import request
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.wire.queue import MessageQueue

Topics = Callable[..., str]


async def test_balanced_is_even_over_all_topics_and_leaves_what_it_can_where_it_is(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topics = (make_topic(queues=3), make_topic(queues=4))
    every = queues(topics[0], 3) | queues(topics[1], 4) | queues(f"%RETRY%{group}", 1)
    got = Got()
    subscriptions = tuple(Subscription(topic) for topic in topics)

    async def join() -> Consumer:
        return await scene.member(group, subscriptions, got, consumer={"strategy": "Balanced"})

    members = [await join(), await join()]

    def settled() -> bool:
        owned = Counter(queue for member in members for queue in member.owned)
        return owned.keys() == every and set(owned.values()) == {1}

    def even() -> bool:
        # Retry queues are shared out apart, and stay where they are held.
        counts = [sum(queue.topic in topics for queue in member.owned) for member in members]
        return settled() and max(counts) - min(counts) <= 1

    await until(even)
    before = {queue: member for member in members for queue in member.owned}
    members.append(await join())
    await until(even)
    moved = [queue for member in members for queue in member.owned if before[queue] is not member]
    assert len(moved) == len(members[2].owned) == 7 // 3, "only the newcomer's share moves"
    await members[0].stop()
    gone = members.pop(0)
    await until(even)
    kept = [queue for member in members for queue in member.owned if queue in before and before[queue] is member]
    assert gone.owned == frozenset()
    assert len(kept) == sum(before[queue] in members for queue in before) - len(
        [queue for queue in moved if before[queue] in members]
    ), "who stays keeps what it has"


async def test_a_round_can_be_asked_for(scene: Scene, topic: str, group: str) -> None:
    first = await scene.member(group, topic, Got(), rebalance_interval=3600.0)
    await until(lambda: of_topic(first, topic) == set(range(8)))
    second = await scene.member(group, topic, Got(), rebalance_interval=3600.0)
    await second.rebalance()
    await first.rebalance()
    assert set(first.rebalancer.members) == {first.client_id, second.client_id}
    await until(lambda: len(of_topic(first, topic)) == len(of_topic(second, topic)) == 4)
    await first.stop()
    await first.rebalance()  # returns, though there will be no more rounds


async def test_queues_that_are_added_to_a_topic_are_consumed(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=2)
    got = Got()
    members = [
        await scene.member(group, topic, got, client={"route_refresh": 0.2}, rebalance_interval=3600.0)
        for _ in range(2)
    ]
    await until(lambda: [len(of_topic(member, topic)) for member in members] == [1, 1])
    grown = TopicConfig(topic_name=topic, read_queue_nums=6, write_queue_nums=6)
    (await admin.create_topic(scene.client, grown)).all_or_raise()
    await until(lambda: [len(of_topic(member, topic)) for member in members] == [3, 3])
    await scene.client.routes.refresh(topic)
    for queue in range(6):
        await scene.send(topic, queue, queue=queue)
    await until(lambda: sorted(got.bodies) == list("012345"))


async def test_members_of_several_groups_may_share_a_client(
    scene: Scene, topic: str, make_group: Callable[..., str]
) -> None:
    groups = (make_group(), make_group())
    handlers = {group: Got() for group in groups}
    async with Client(scene.config()) as client:
        members = {}
        for group in groups:
            settings = scene.made(group, topic, handlers[group]).settings
            members[group] = Consumer(client, settings, handlers[group])
            await members[group].start()
        await until(lambda: all(of_topic(member, topic) == set(range(8)) for member in members.values()))
        await scene.send(topic, *range(8))
        await until(lambda: all(len(handler) == 8 for handler in handlers.values()))
        for group in groups:
            info = await broker_members.running_info(
                scene.client.remoting, scene.address, group, client.client_id, timeout=10.0
            )
            assert {queue.topic for queue in info.mq_table} == {topic, f"%RETRY%{group}"}
        await members[groups[0]].stop()
        await scene.send(topic, *range(8, 16))
        await until(lambda: len(handlers[groups[1]]) == 16)
        assert len(handlers[groups[0]]) == 8
        assert await scene.ids(groups[0]) == ()
        await members[groups[1]].stop()


# -- what others ask of a member --------------------------------------------------------------------------------------


async def test_what_a_member_says_about_itself(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=2)
    release = asyncio.Event()
    entered = asyncio.Event()

    async def handler(_message: ReceivedMessage) -> None:
        entered.set()
        await release.wait()

    await scene.fill(topic, 0, 5)
    member = await scene.member(group, (Subscription(topic, "*"),), handler, consume_thread_min=1, consume_thread_max=1)
    await entered.wait()
    await until(lambda: len(member.owned) == 3)
    info = await broker_members.running_info(
        scene.client.remoting, scene.address, group, member.client_id, stacks=True, timeout=10.0
    )
    release.set()
    assert info.properties["PROP_CONSUMEORDERLY"] == "false"
    assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
    assert info.properties["PROP_NAMESERVER_ADDR"] == scene.cluster.name_server
    assert {subscription.topic for subscription in info.subscription_set} == {topic, f"%RETRY%{group}"}
    assert info.mq_table.keys() == member.owned
    busy = info.mq_table[MessageQueue(topic, "broker-a", 0)]
    assert (busy.commit_offset, busy.cached_msg_count) == (0, 5)
    assert (busy.cached_msg_min_offset, busy.cached_msg_max_offset) == (0, 4)
    assert busy.locked
    assert not busy.dropped
    assert busy.last_pull_timestamp >= busy.last_lock_timestamp - 1000 > 1_600_000_000_000
    assert info.jstack is not None
    assert "MainThread" in info.jstack


async def mqadmin(broker: Cluster, *arguments: str) -> str:
    """mqadmin gives its own calls three seconds, which a busy machine may not: then it is asked again."""
    output: list[str] = []

    async def answered() -> bool:
        try:
            output.append(await asyncio.to_thread(broker.admin, *arguments))
        except DevBrokerError as error:
            if "timeout" not in str(error).lower():
                raise
        return bool(output)

    await until(answered)
    return output[0]


async def test_mqadmin_works_on_our_members(scene: Scene, make_topic: Topics, group: str, broker: Cluster) -> None:
    topic = make_topic(queues=2)
    got = Got()
    member = await scene.member(group, topic, got)
    await scene.fill(topic, 0, 6)
    await scene.fill(topic, 1, 3, first=6)

    async def all_committed() -> bool:
        return [await scene.committed(group, topic, queue) for queue in (0, 1)] == [6, 3]

    await until(all_committed)
    status = await mqadmin(broker, "consumerStatus", "-g", group, "-i", member.client_id)
    progress = await mqadmin(broker, "consumerProgress", "-g", group)
    assert re.search(rf"{topic}\s+broker-a\s+0\s+6\s", status), status
    assert "WARN" not in status
    assert re.search(rf"{topic}\s+broker-a\s+0\s+6\s+6\s", progress), progress
    assert re.search(rf"{topic}\s+broker-a\s+1\s+3\s+3\s", progress), progress
    assert "Diff Total: 0" in progress
    await mqadmin(broker, "resetOffsetByTime", "-g", group, "-t", topic, "-s", "0")
    await scene.send(topic, 9, queue=0)  # the reset is told with the next answer to a pull, which this brings about
    await scene.send(topic, 10, queue=1)
    await until(lambda: len(got) >= 20, "everything comes again")
    assert sorted(map(int, got.bodies)) == sorted([*range(9), *range(11)])

    async def committed_again() -> bool:
        return [await scene.committed(group, topic, queue) for queue in (0, 1)] == [7, 4]

    await until(committed_again)


async def test_offsets_can_be_reset_while_consuming(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    got = Got()
    await scene.member(group, topic, got)
    await scene.fill(topic, 0, 10)
    await until(lambda: len(got) == 10)
    where = MessageQueue(topic, "broker-a", 0)
    await broker_offsets.reset_queue_offset(scene.client.remoting, scene.address, group, where, 4)
    await scene.send(topic, 10)  # the reset is told with the next answer to a pull, which this brings about
    await until(lambda: len(got) == 17)
    assert sorted(map(int, got.bodies[10:])) == list(range(4, 11))

    async def committed() -> bool:
        return await scene.committed(group, topic) == 11

    await until(committed)
    assert await broker_offsets.reset_offsets(scene.client.remoting, scene.address, group, topic, 0) == {where: 0}
    await scene.send(topic, 11)
    await until(lambda: len(got) == 29)
    assert sorted(map(int, got.bodies[17:])) == list(range(12))


async def test_the_members_own_offsets_can_be_asked_for(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    member = await scene.member(group, topic, got := Got())
    await scene.fill(topic, 0, 4)
    await until(lambda: len(got) == 4)

    async def told() -> bool:
        status = await broker_members.consumer_status(
            scene.client.remoting, scene.address, group, topic, client_id=member.client_id, timeout=10.0
        )
        return status == {member.client_id: {MessageQueue(topic, "broker-a", 0): 4}}

    await until(told)


@pytest.mark.parametrize(
    ("mode", "answer", "result"),
    [
        (ConsumeMode.CONCURRENT, None, "CR_SUCCESS"),
        (ConsumeMode.CONCURRENT, RETRY, "CR_LATER"),
        (ConsumeMode.CONCURRENT, ValueError("the handler's own words"), "CR_THROW_EXCEPTION"),
        (ConsumeMode.ORDERLY, COMMIT, "CR_COMMIT"),
        (ConsumeMode.ORDERLY, ROLLBACK, "CR_ROLLBACK"),
    ],
)
async def test_a_message_can_be_consumed_directly(
    scene: Scene, make_topic: Topics, group: str, mode: ConsumeMode, answer: object, result: str
) -> None:
    topic = make_topic(queues=1)
    direct: list[ReceivedMessage] = []

    def handler(message: ReceivedMessage) -> object:
        direct.append(message)
        if isinstance(answer, Exception):
            raise answer
        return answer

    await scene.send(topic, "look at me")
    [message] = await scene.found(topic, 1)
    await scene.commit(group, topic, 1)  # it is not delivered in the ordinary way
    member = await scene.member(group, topic, handler, consume_mode=mode)
    await until(lambda: of_topic(member, topic) == {0})
    fields = {
        "consumerGroup": group,
        "clientId": member.client_id,
        "msgId": message.offset_msg_id,
        "brokerName": "broker-a",
        "topic": topic,
    }
    reply = await ask(
        scene.client.remoting, scene.address, request(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields), timeout=10.0
    )
    told = reply.body(ConsumeMessageDirectlyResult.decode)
    assert told.consume_result == result
    assert told.order == (mode is ConsumeMode.ORDERLY)
    assert [m.body for m in direct] == [b"look at me"]
    if isinstance(answer, Exception):
        assert told.remark is not None
        assert "the handler's own words" in told.remark
    assert await scene.committed(group, topic) == 1


async def test_a_member_gets_what_it_subscribes_to_though_another_wants_something_else(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    """The broker keeps one subscription for a group, the newest. Each pull carries its own, so nothing is skipped."""
    topic = make_topic(queues=2)
    first = await scene.member(group, (Subscription(topic, "A"),), got := Got())
    await until(lambda: first.ready)
    second = await scene.member(group, (Subscription(topic, "B"),), Got())
    await until(lambda: first.ready and second.ready and len(of_topic(first, topic)) == 1)
    (queue,) = of_topic(first, topic)
    await scene.send(topic, *range(5), queue=queue, tags="A")
    await until(lambda: sorted(got.bodies) == [str(n) for n in range(5)], "it still gets its own tags")
