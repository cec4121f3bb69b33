"""Sends against scripted brokers: what is retried, where, for how long, and what the caller hears."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from tests.support.clock import Clock
from tests.support.waiting import until
from tests.unit.client.peer import Channel
from tests.unit.producer.cluster import Cluster, Script, cluster_of, hanging_up, refusing, silent

from rocketfleet.client.client import Client
from rocketfleet.client.errors import ConnectionLost, NoRoute, RequestTimeout, ResponseError, SystemBusy
from rocketfleet.producer import (
    BatchLimits,
    InvalidMessage,
    Producer,
    ProducerClosed,
    ProducerOptions,
    RetryPolicy,
    SendFailed,
    SendStatus,
)
from rocketfleet.producer.queues.sharding import by_hash
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, HeaderForm
from rocketfleet.wire.message import Message, decode_batch
from rocketfleet.wire.queue import MessageQueue


def producer_of(cluster: Cluster, **options: Any) -> Producer:
    return Producer(cluster.config(), "g", ProducerOptions(**{"send_timeout": 30, **options}))


async def test_a_message_is_stored_and_its_place_told() -> None:
    async with cluster_of("a") as cluster, producer_of(cluster) as producer:
        message = Message("t", b"body", tags="x")
        result = await producer.send(message)
        (stored,) = cluster["a"].stored
        assert stored.body == b"body"
        assert stored.form is HeaderForm.ROCKETMQ
        assert result.status is SendStatus.SEND_OK
        assert result.msg_id == message.unique_id == result.transaction_id
        assert result.queue == MessageQueue("t", "a", int(stored.fields["e"]))
        assert result.queue_offset == 0


async def test_queues_are_used_in_turn() -> None:
    async with cluster_of("a", "b") as cluster, producer_of(cluster) as producer:
        results = [await producer.send(Message("t", b"x")) for _ in range(24)]
        assert Counter(result.queue for result in results) == dict.fromkeys(await producer.queues("t"), 3)


@pytest.mark.parametrize(
    "status", [SendStatus.FLUSH_DISK_TIMEOUT, SendStatus.FLUSH_SLAVE_TIMEOUT, SendStatus.SLAVE_NOT_AVAILABLE]
)
async def test_every_status_is_told_and_tried_again_only_if_asked(status: SendStatus) -> None:
    async with cluster_of("a", "b") as cluster:
        cluster["a"].status = cluster["b"].status = ResponseCode[status.name]
        async with producer_of(cluster) as producer:
            assert (await producer.send(Message("t", b"x"))).status is status
            assert len(cluster["a"].stored + cluster["b"].stored) == 1
        async with producer_of(cluster, retry=RetryPolicy(retry_unless_stored_well=True)) as producer:
            assert (await producer.send(Message("t", b"x"))).status is status, "the best there was"
            assert len(cluster["a"].stored + cluster["b"].stored) == 1 + 3
            cluster["a"].status = ResponseCode.SUCCESS
            assert (await producer.send(Message("t", b"x"))).status is SendStatus.SEND_OK


async def test_after_a_bad_status_an_error_does_not_hide_that_the_message_is_stored() -> None:
    async with cluster_of("a", "b") as cluster:
        cluster["a"].status = ResponseCode.FLUSH_DISK_TIMEOUT
        cluster["b"].before = refusing(ResponseCode.MESSAGE_ILLEGAL)
        async with producer_of(cluster, retry=RetryPolicy(retry_unless_stored_well=True)) as producer:
            outcomes = [await _outcome(producer) for _ in range(8)]
            assert "FLUSH_DISK_TIMEOUT" in outcomes
            assert set(outcomes) <= {"FLUSH_DISK_TIMEOUT", "ResponseError"}


async def _outcome(producer: Producer) -> str:
    try:
        return (await producer.send(Message("t", b"x"))).status.name
    except ResponseError as error:
        return type(error).__name__


@pytest.mark.parametrize(
    "trouble", [refusing(ResponseCode.SYSTEM_BUSY), refusing(ResponseCode.TOPIC_NOT_EXIST), hanging_up]
)
async def test_trouble_at_one_broker_is_taken_to_another(trouble: Script) -> None:
    async with cluster_of("a", "b") as cluster:
        cluster["a"].before = trouble
        async with producer_of(cluster) as producer:
            results = [await producer.send(Message("t", b"x")) for _ in range(8)]
        assert {result.queue.broker for result in results} == {"b"}
        assert len({result.msg_id for result in results}) == 8
        assert cluster["a"].of(RequestCode.SEND_MESSAGE_V2), "it was tried there, too"


async def test_a_broker_that_is_silent_costs_one_attempt() -> None:
    async with cluster_of("a", "b") as cluster:
        cluster["a"].before = silent
        async with producer_of(cluster, retry=RetryPolicy(attempt_timeout=0.5)) as producer:
            results = [await producer.send(Message("t", b"x")) for _ in range(4)]
        assert {result.queue.broker for result in results} == {"b"}


async def test_a_retry_keeps_the_message_id() -> None:
    async with cluster_of("a") as cluster, producer_of(cluster) as producer:
        await producer.send(Message("t", b"first"))
        failures = iter([True, True, False])

        def twice(channel: Channel, command: Command) -> object:
            return refusing(ResponseCode.SYSTEM_BUSY)(channel, command) if next(failures) else None

        cluster["a"].before = twice
        cluster["a"].asked.clear()
        result = await producer.send(Message("t", b"x"))
        attempts = cluster["a"].of(RequestCode.SEND_MESSAGE_V2)
        assert len(attempts) == 3
        assert all(result.msg_id in attempt.fields["i"] for attempt in attempts)


async def test_when_all_attempts_fail_the_error_says_so() -> None:
    async with cluster_of("a", "b") as cluster:
        cluster["a"].before = cluster["b"].before = refusing(ResponseCode.SYSTEM_BUSY, "[PCBUSY] broker busy")
        async with producer_of(cluster) as producer:
            with pytest.raises(SendFailed, match=r"topic t was tried 3 times .*\[PCBUSY\] broker busy") as caught:
                await producer.send(Message("t", b"x"))
        assert caught.value.code == ResponseCode.SYSTEM_BUSY
        assert isinstance(caught.value.__cause__, SystemBusy)
        first, second, third = caught.value.brokers
        assert first == third != second, "never twice in a row at the same broker"


async def test_what_no_broker_would_take_is_not_tried_again() -> None:
    async with cluster_of("a", "b") as cluster:
        cluster["a"].before = cluster["b"].before = refusing(ResponseCode.MESSAGE_ILLEGAL)
        async with producer_of(cluster, latency_fault_tolerance=True) as producer:
            with pytest.raises(ResponseError, match="MESSAGE_ILLEGAL"):
                await producer.send(Message("t", b"x"))
            asked = cluster["a"].of(RequestCode.SEND_MESSAGE_V2) + cluster["b"].of(RequestCode.SEND_MESSAGE_V2)
            assert len(asked) == 1
            cluster["a"].before = cluster["b"].before = None
            results = [await producer.send(Message("t", b"x")) for _ in range(8)]
            assert {result.queue.broker for result in results} == {"a", "b"}, "no broker is blamed for a bad message"


async def test_the_time_for_a_send_is_bounded() -> None:
    async with cluster_of("a", "b") as cluster:
        cluster["a"].before = cluster["b"].before = silent
        async with producer_of(cluster) as producer:
            with pytest.raises(SendFailed) as caught:
                await producer.send(Message("t", b"x"), timeout=0.1)
        assert len(caught.value.brokers) == 1, "the first attempt used up all the time, as in Java"
        assert isinstance(caught.value.__cause__, RequestTimeout)


async def test_a_dead_broker_is_skipped_and_found_again() -> None:
    async with cluster_of("a", "b") as cluster, producer_of(cluster, probe_interval=0.05) as producer:
        await producer.send(Message("t", b"x"))
        await cluster["a"].peer.stop()
        cluster.registered.discard("a")
        results = [await producer.send(Message("t", b"x")) for _ in range(8)]
        assert {result.queue.broker for result in results} == {"b"}
        await until(lambda: {q.broker for q in producer._parts.rings["t"].queues} == {"b"})
        await cluster["a"].peer.listen()
        cluster.registered.add("a")
        await until(lambda: {q.broker for q in producer._parts.rings["t"].queues} == {"a", "b"})
        results = [await producer.send(Message("t", b"x")) for _ in range(8)]
        assert {result.queue.broker for result in results} == {"a", "b"}


async def test_a_broker_comes_back_to_all_topics_at_once() -> None:
    async with cluster_of("a", "b") as cluster, producer_of(cluster, probe_interval=0.05) as producer:
        for topic in ("t", "u"):
            await producer.send(Message(topic, b"x"))
        cluster.registered.discard("a")
        for topic in ("t", "u"):
            await producer._parts.client.routes.refresh(topic)
        cluster.asked_for.clear()
        await until(lambda: len(cluster.asked_for) >= 2)
        assert set(cluster.asked_for) == {"t"}, "one topic is asked for on behalf of both"
        cluster.registered.add("a")
        await until(lambda: all(len(producer._parts.rings[topic].queues) == 8 for topic in ("t", "u")))


async def test_a_slow_broker_is_left_alone_and_a_failing_one_until_it_answers() -> None:
    async with cluster_of("a", "b") as cluster:
        clock = Clock(100.0)

        def slow(_channel: Channel, command: Command) -> None:
            if command.code == RequestCode.SEND_MESSAGE_V2:
                clock.now += 0.6

        options = ProducerOptions(latency_fault_tolerance=True)
        async with Producer(cluster.config(), "g", options, clock=clock) as producer:
            cluster["a"].before = slow
            while not cluster["a"].stored:
                await producer.send(Message("t", b"x"))
            cluster["a"].before = None
            assert {(await producer.send(Message("t", b"x"))).queue.broker for _ in range(16)} == {"b"}
            clock.now += 31
            assert {(await producer.send(Message("t", b"x"))).queue.broker for _ in range(16)} == {"a", "b"}

            cluster["b"].before = refusing(ResponseCode.SYSTEM_BUSY)
            for _ in range(16):
                await producer.send(Message("t", b"x"))
            assert len([c for c in cluster["b"].asked if c not in cluster["b"].stored and c.code == 310]) == 1
            cluster["b"].before = None
            clock.now += 3  # the failure would last three minutes, but the next probe is due
            await until(lambda: cluster["b"].of(RequestCode.GET_MAX_OFFSET))
            await until(lambda: producer._faults is not None and producer._faults.is_available("b"))
            assert {(await producer.send(Message("t", b"x"))).queue.broker for _ in range(16)} == {"a", "b"}


async def test_a_chosen_queue_is_tried_once() -> None:
    async with cluster_of("a", "b") as cluster, producer_of(cluster) as producer:
        queue = MessageQueue("t", "b", 2)
        results = [await producer.send(Message("t", b"x"), queue=queue) for _ in range(3)]
        assert {result.queue for result in results} == {queue}
        cluster["b"].before = refusing(ResponseCode.SYSTEM_BUSY)
        with pytest.raises(SystemBusy):
            await producer.send(Message("t", b"x"), queue=queue)
        cluster["b"].before = hanging_up
        with pytest.raises(ConnectionLost):
            await producer.send(Message("t", b"x"), queue=queue)
        assert not cluster["a"].stored


async def test_ordered_sends_keep_to_the_queue_of_their_key() -> None:
    async with cluster_of("a", "b") as cluster, producer_of(cluster) as producer:
        queues = await producer.queues("t")
        for number in range(20):
            key = f"order-{number}"
            by_argument = await producer.send(Message("t", b"x"), sharding_key=key)
            by_message = await producer.send(Message("t", b"x", sharding_key=key))
            assert by_argument.queue == by_message.queue == by_hash(queues, key)
        mine = await producer.send(
            Message("t", b"x"), sharding_key=5, selector=lambda qs, _message, key: qs[int(key or 0)]
        )
        assert mine.queue == queues[5]


async def test_what_is_wrong_is_said_before_anything_is_sent() -> None:
    async with cluster_of("a") as cluster, producer_of(cluster) as producer:
        nowhere = MessageQueue("t", "nobody", 0)
        for send, words in (
            (producer.send(Message("bad topic", b"x")), "letters"),
            (producer.send(Message("t", b"")), "empty"),
            (producer.send(Message("t", "text")), "must be bytes, not str"),  # type: ignore[arg-type]  # the mistake itself
            (producer.send(Message("t", None)), "must be bytes"),  # type: ignore[arg-type]  # the mistake itself
            (producer.send(Message("t", b"x" * (4 * 1024 * 1024 + 1))), "4194305 bytes"),
            (producer.send(Message("t", b"x"), queue=MessageQueue("u", "a", 0)), "not of the message's topic"),
            (producer.send(Message("t", b"x"), selector=lambda *_: nowhere), "one of the topic's queues"),
            (producer.send(Message("t", b"x"), queue=nowhere, selector=lambda *_: nowhere), "not both"),
            (producer.send_batch([]), "empty"),
            (producer.send_batch([Message("t", b"x")], queue=MessageQueue("u", "a", 0)), "not of the message's topic"),
            (producer.send_oneway(Message("t", b"")), "empty"),
            (producer.send_in_transaction(Message("t", b"x")), "no transaction listener"),
        ):
            with pytest.raises(InvalidMessage, match=words):
                await send
        assert not cluster["a"].asked


async def test_a_topic_nobody_has_is_named_with_the_name_servers() -> None:
    async with cluster_of("a") as cluster, producer_of(cluster) as producer:
        with pytest.raises(NoRoute, match=f"topic missing.*{cluster.name_server.address}.*create the topic"):
            await producer.send(Message("missing", b"x"))


async def test_a_topic_that_brokers_create_is_modelled_on_another_until_it_exists() -> None:
    async with cluster_of("a") as cluster, producer_of(cluster, default_queues=3) as producer:
        cluster.topics["TBW102"] = 8
        result = await producer.send(Message("new", b"x"))
        assert result.queue.queue_id < 3
        assert cluster["a"].stored[0].fields["b"] == "new"
        assert cluster["a"].stored[0].fields["c"] == "TBW102"
        assert len(await producer.queues("new")) == 3
        cluster.topics["new"] = 5
        producer._parts.publishing._models.clear()  # a second passes
        assert len(await producer.queues("new")) == 5


async def test_a_topic_that_cannot_be_written_for_a_while_is_looked_after() -> None:
    async with cluster_of("a") as cluster, producer_of(cluster, probe_interval=0.05) as producer:
        await producer.send(Message("t", b"x"))
        cluster.topics["t"] = 0
        await producer._parts.client.routes.refresh("t")
        with pytest.raises(NoRoute, match="no queue for writing"):
            await producer.send(Message("t", b"x"))
        cluster.topics["t"] = 4
        await until(lambda: not len(producer._parts.publishing._absences))
        assert (await producer.send(Message("t", b"x"))).status is SendStatus.SEND_OK


async def test_a_read_only_topic_says_so() -> None:
    async with cluster_of("a") as cluster, producer_of(cluster) as producer:
        cluster.topics["t"] = 0
        with pytest.raises(NoRoute, match=r"brokers \(a\) offer no queue for writing"):
            await producer.send(Message("t", b"x"))


async def test_oneway_is_sent_and_not_answered() -> None:
    async with cluster_of("a") as cluster, producer_of(cluster) as producer:
        msg_id = await producer.send_oneway(Message("t", b"x"))
        await until(lambda: cluster["a"].stored)
        assert cluster["a"].stored[0].is_oneway
        assert msg_id in cluster["a"].stored[0].fields["i"]
        await producer.send_oneway(Message("t", b"x"), queue=MessageQueue("t", "a", 1))
        await until(lambda: len(cluster["a"].stored) == 2)
        assert cluster["a"].stored[1].fields["e"] == "1"


async def test_a_batch_is_one_request_and_many_results() -> None:
    async with cluster_of("a") as cluster, producer_of(cluster) as producer:
        messages = [Message("t", f"{i}".encode(), tags=f"tag{i % 2}") for i in range(5)]
        results = await producer.send_batch(messages)
        (request,) = cluster["a"].stored
        assert [m.body for m in decode_batch(request.body, "t")] == [b"0", b"1", b"2", b"3", b"4"]
        assert [r.msg_id for r in results] == [m.unique_id for m in messages]
        assert [r.queue_offset for r in results] == [0, 1, 2, 3, 4]


async def test_small_sends_travel_together_and_each_gets_its_own_result() -> None:
    async with cluster_of("a", "b") as cluster:
        async with producer_of(cluster, batching=BatchLimits(max_delay=0.02)) as producer:
            messages = [Message("t", f"{i}".encode(), tags="x") for i in range(50)]
            delayed = Message("t", b"delayed", delay_level=1)
            large = Message("t", b"L" * 50_000)
            results = await asyncio.gather(*(producer.send(m) for m in [*messages, delayed, large]))
            assert [r.msg_id for r in results] == [m.unique_id for m in [*messages, delayed, large]]
        stored = cluster["a"].stored + cluster["b"].stored
        batches = [c for c in stored if c.code == RequestCode.SEND_BATCH_MESSAGE]
        assert sum(len(decode_batch(c.body, "t")) for c in batches) == 50
        assert len(batches) < 50 / 4
        singles = [c for c in stored if c.code == RequestCode.SEND_MESSAGE_V2]
        assert len(singles) == 2, "delayed and compressed messages go singly"


async def test_closing_sends_what_waits_for_its_batch() -> None:
    async with cluster_of("a") as cluster:
        async with producer_of(cluster, batching=BatchLimits(max_delay=30)) as producer:
            waiting = [asyncio.ensure_future(producer.send(Message("t", b"x"))) for _ in range(3)]
            await asyncio.sleep(0)
        assert all(task.result().status is SendStatus.SEND_OK for task in waiting)


async def test_a_lone_message_in_a_batch_goes_singly() -> None:
    async with cluster_of("a") as cluster, producer_of(cluster, batching=BatchLimits(max_delay=0.001)) as producer:
        await producer.send(Message("t", b"x"))
        assert [c.code for c in cluster["a"].stored] == [RequestCode.SEND_MESSAGE_V2]


async def test_brokers_know_the_group_from_the_first_connection_to_the_end() -> None:
    async with cluster_of("a", "b") as cluster:
        async with producer_of(cluster) as producer:
            for queue in (MessageQueue("t", "a", 0), MessageQueue("t", "b", 0)):
                await producer.send(Message("t", b"x"), queue=queue)
            await until(lambda: all(cluster[name].of(RequestCode.HEART_BEAT) for name in "ab"))
            for name in "ab":
                (heartbeat,) = cluster[name].of(RequestCode.HEART_BEAT)
                assert b'"groupName":"g"' in bytes(heartbeat.body).replace(b" ", b"")
        for name in "ab":
            (bye,) = cluster[name].of(RequestCode.UNREGISTER_CLIENT)
            assert bye.fields["producerGroup"] == "g"


async def test_a_client_can_be_shared_and_outlives_the_producer() -> None:
    async with cluster_of("a") as cluster, Client(cluster.config()) as client:
        async with Producer(client, "g1") as one, Producer(client, "g2") as two:
            await one.send(Message("t", b"x"))
            await two.send(Message("t", b"x"))
        async with Producer(client, "g3") as three:
            await three.send(Message("t", b"x"))
        assert len(cluster["a"].peer.channels) == 1, "one connection for all"


async def test_a_producer_lives_once() -> None:
    async with cluster_of("a") as cluster:
        producer = producer_of(cluster)
        with pytest.raises(ProducerClosed, match="not started"):
            await producer.send(Message("t", b"x"))
        await producer.start()
        await producer.send(Message("t", b"x"))
        with pytest.raises(ProducerClosed, match="started once"):
            await producer.start()
        await producer.close()
        await producer.close()
        with pytest.raises(ProducerClosed, match="closed"):
            await producer.send(Message("t", b"x"))


async def test_a_cancelled_send_ends_and_disturbs_nobody() -> None:
    async with cluster_of("a") as cluster, producer_of(cluster) as producer:
        await producer.send(Message("t", b"x"))
        cluster["a"].before = silent
        stuck = asyncio.ensure_future(producer.send(Message("t", b"x")))
        await until(lambda: len(cluster["a"].of(RequestCode.SEND_MESSAGE_V2)) == 2)
        stuck.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stuck
        cluster["a"].before = None
        assert (await producer.send(Message("t", b"x"))).status is SendStatus.SEND_OK
