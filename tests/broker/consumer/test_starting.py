"""Starting: heartbeat before the first pull, the retry topic from the first moment, and mistakes that are refused."""

import asyncio
import logging
from collections.abc import Callable

import pytest
from tests.broker.consumer.scene import Got, Scene, of_topic, queues, until

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import ConnectError, ConsumerNotOnline, NoRoute
from rocketfleet.client.requests import broker_members
from rocketfleet.consumer.consumer import Consumer, ExpressionRefusedError, NoHeartbeatError
from rocketfleet.consumer.delivery.pull import PullTimings
from rocketfleet.consumer.settings import Handover
from rocketfleet.consumer.shutdown import StopPhase
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.consumer.timings import ConsumerTimings
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command
from rocketfleet.wire.enums import ExpressionType


async def test_heartbeat_comes_before_the_first_pull_and_no_subscription_is_stale(
    scene: Scene, topic: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "rocketfleet")
    got = Got()
    member = scene.made(group, topic, got)
    sent: list[int] = []
    call = member._client.remoting.call

    async def noted(address: str, command: Command, timeout: float | None = None) -> Command:
        sent.append(command.code)
        return await call(address, command, timeout)

    member._client.remoting.call = noted  # type: ignore[method-assign]  # listening in
    await scene.send(topic, *range(16))
    await member.start()
    await until(lambda: len(got) == 16)
    assert sent.index(RequestCode.HEART_BEAT) < sent.index(RequestCode.LOCK_BATCH_MQ)
    assert sent.index(RequestCode.LOCK_BATCH_MQ) < sent.index(RequestCode.PULL_MESSAGE)
    assert "SUBSCRIPTION" not in caplog.text
    assert "pulling" not in caplog.text, "no pull failed"


async def test_a_member_is_seen_as_it_says_it_is(scene: Scene, topic: str, group: str) -> None:
    member = await scene.member(group, (Subscription(topic, "a || b"),), Got())
    found = await broker_members.consumer_connections(scene.client.remoting, scene.address, group)
    [connection] = found.connection_set
    assert connection.client_id == member.client_id
    assert found.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    assert found.subscription_table[topic].tags_set == {"a", "b"}
    assert f"%RETRY%{group}" in found.subscription_table


@pytest.mark.parametrize("handover", list(Handover))
async def test_all_queues_and_the_retry_queue_are_owned_soon(
    scene: Scene, topic: str, group: str, handover: Handover
) -> None:
    """The broker creates the retry topic when the group joins: finding it must not wait for the next regular look."""
    member = await scene.member(
        group, topic, Got(), client={"route_refresh": 3600.0}, rebalance_interval=3600.0, handover=handover
    )
    expected = queues(topic, 8) | queues(f"%RETRY%{group}", 1)
    await until(lambda: member.owned == expected)
    assert member.rebalancer.settled


async def test_a_message_is_delivered_as_it_arrives(scene: Scene, topic: str, group: str) -> None:
    """By long polling, that is: with polls that would otherwise last an hour."""
    hours = ConsumerTimings(pull=PullTimings(suspend=3600.0, timeout=7200.0))
    got = Got()
    member = await scene.member(group, topic, got, consumer={"timings": hours})
    await until(lambda: of_topic(member, topic) == set(range(8)))
    await until(lambda: all(holding.puller and holding.puller.last_pull for holding in member.holdings))
    for number in range(8):
        await scene.send(topic, number, queue=number)
    await until(lambda: sorted(got.bodies) == list("01234567"))


async def test_an_unknown_topic_is_refused_and_leaves_nothing_behind(
    scene: Scene, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    member = scene.made(group, "no-such-topic-at-all", Got())
    with pytest.raises(NoRoute, match="no-such-topic-at-all"):
        await member.start()
    assert member.phase is StopPhase.CLOSED
    assert await member.stop() == {}
    assert await scene.ids(group) == ()


async def test_without_a_cluster_there_is_an_error_and_not_a_wait(topic: str, group: str, scene: Scene) -> None:
    settings = scene.made(group, topic, Got()).settings
    member = Consumer(ClientConfig(("127.0.0.1:9",)), settings, Got())
    with pytest.raises(ConnectError):
        await member.start()
    # Routes known, but nobody takes the heartbeat.
    async with Client(scene.config()) as client:
        await client.route(topic)
        for addresses in client.brokers.table.values():
            addresses[0] = "127.0.0.1:9"
        member = Consumer(client, settings, Got())
        with pytest.raises(
            NoHeartbeatError, match=f"no broker took the heartbeat of group {group}: cannot connect to 127"
        ):
            await member.start()


async def test_a_consumer_that_was_never_started_has_nothing_to_stop(scene: Scene, topic: str, group: str) -> None:
    assert await scene.made(group, topic, Got()).stop() == {}


async def test_a_consumer_is_started_once(scene: Scene, topic: str, group: str) -> None:
    member = await scene.member(group, topic, Got())
    with pytest.raises(RuntimeError, match="started once"):
        await member.start()


async def test_stopping_while_starting_waits_for_the_start_and_then_leaves(
    scene: Scene, topic: str, group: str
) -> None:
    member = scene.made(group, topic, Got())
    start = asyncio.create_task(member.start())
    await asyncio.sleep(0)
    await member.stop()
    await start
    assert member.phase is StopPhase.CLOSED
    with pytest.raises(ConsumerNotOnline):
        await broker_members.consumer_connections(scene.client.remoting, scene.address, group)


async def test_a_start_that_is_cancelled_leaves_nothing_behind(scene: Scene, topic: str, group: str) -> None:
    member = scene.made(group, topic, Got())
    start = asyncio.create_task(member.start())
    await asyncio.sleep(0)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert member.phase is StopPhase.CLOSED
    assert await scene.ids(group) == ()


# -- subscriptions ----------------------------------------------------------------------------------------------------


async def test_tags_are_told_apart_even_if_their_hashes_are_not(
    scene: Scene, make_topic: Callable[..., str], group: str
) -> None:
    topic = make_topic(queues=1)
    for number, tag in enumerate(["AaAa", "BBBB", "other", "AaAa", "BBBB", "AaBB"]):
        await scene.send(topic, number, tags=tag)
    await scene.send(topic, 6)
    got = Got()
    await scene.member(group, (Subscription(topic, "AaAa || x"),), got)

    async def all_passed() -> bool:
        return await scene.committed(group, topic) == 7

    await until(all_passed, "what is not wanted is passed, and committed")
    assert sorted(got.bodies) == ["0", "3"]


async def test_sql_expressions_are_evaluated_by_the_broker(scene: Scene, topic: str, group: str) -> None:
    for number in range(10):
        await scene.send(topic, number, properties={"price": str(number), "kind": "book" if number % 2 else "pen"})
    got = Got()
    expression = Subscription(topic, "price BETWEEN 3 AND 8 AND kind = 'book'", ExpressionType.SQL92)
    await scene.member(group, (expression,), got)
    await until(lambda: sorted(got.bodies) == ["3", "5", "7"])
    await scene.send(topic, "last", properties={"price": "4", "kind": "book"})
    await until(lambda: got.bodies[-1] == "last")
    assert len(got) == 4


async def test_an_expression_that_is_wrong_is_refused_at_the_start(scene: Scene, topic: str, group: str) -> None:
    member = scene.made(group, (Subscription(topic, "price BETWEEN AND", ExpressionType.SQL92),), Got())
    with pytest.raises(ExpressionRefusedError) as raised:
        await member.start()
    assert str(raised.value).startswith(
        f"broker-a cannot evaluate the SQL92 expression 'price BETWEEN AND' of topic {topic}: correct it"
    )
    assert await scene.ids(group) == ()
