"""Every kind of send to a real broker, read back message by message."""

import asyncio
import itertools
import os
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.broker.cluster import Cluster
from tests.broker.producer.patience import PATIENT
from tests.broker.producer.reading import read_once_there

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig, TlsConfig
from rocketfleet.client.errors import NoRoute, ResponseError
from rocketfleet.client.requests import broker_members
from rocketfleet.devbroker.setup import certificates
from rocketfleet.producer import BatchLimits, Producer, ProducerOptions, SendFailed, SendStatus, SyncProducer
from rocketfleet.producer.queues.sharding import by_hash
from rocketfleet.wire.acl import Credentials
from rocketfleet.wire.command import HeaderForm
from rocketfleet.wire.message import Message
from rocketfleet.wire.message.compression import Compression, compression_of
from rocketfleet.wire.queue import MessageQueue


def config(broker: Cluster) -> ClientConfig:
    return ClientConfig(broker.name_server, timeout=30.0)


def options(**given: Any) -> ProducerOptions:
    """With a time-out for a machine that has other things to do."""
    return ProducerOptions(**{"send_timeout": 60.0, **given})


@pytest.mark.parametrize("form", list(HeaderForm))
async def test_a_message_arrives_as_it_was_sent(broker: Cluster, topic: str, form: HeaderForm) -> None:
    async with Producer(config(broker), "kinds", options(header_form=form)) as producer:
        message = Message(
            topic,
            "тело сообщения".encode(),
            tags="TagA",
            keys=["k1", "k2"],
            properties={"colour": "синий", "n": "1"},
            flag=7,
        )
        result = await producer.send(message)
    (stored,) = await read_once_there(broker.name_server, topic, 1)
    assert stored.body == message.body
    assert (stored.tags, stored.keys, stored.flag) == ("TagA", ("k1", "k2"), 7)
    assert stored.properties["colour"] == "синий"
    assert result.status is SendStatus.SEND_OK
    assert result.msg_id == stored.msg_id
    assert result.offset_msg_id == stored.offset_msg_id
    assert result.queue == MessageQueue(topic, stored.broker, stored.queue_id)
    assert result.queue_offset == stored.queue_offset
    assert result.region == "DefaultRegion"


async def test_a_batch_keeps_its_order_in_one_queue(broker: Cluster, topic: str) -> None:
    async with Producer(config(broker), "kinds", options()) as producer:
        messages = [Message(topic, b"%d" % i, tags=f"t{i % 3}", keys=f"k{i}") for i in range(100)]
        results = await producer.send_batch(messages)
        elsewhere = MessageQueue(topic, results.queue.broker, (results.queue.queue_id + 1) % 8)
        others = await producer.send_batch([Message(topic, b"x")] * 1, queue=elsewhere)
    assert others.queue == elsewhere
    stored = [m for m in await read_once_there(broker.name_server, topic, 101) if m.queue_id == results.queue.queue_id]
    assert [m.body for m in stored] == [m.body for m in messages]
    assert [m.tags for m in stored] == [m.tags for m in messages]
    assert [r.msg_id for r in results] == [m.msg_id for m in stored]
    assert [r.offset_msg_id for r in results] == [m.offset_msg_id for m in stored]
    assert [r.queue_offset for r in results] == [m.queue_offset for m in stored]


async def test_a_topic_of_batch_queues_takes_batches_too(broker: Cluster, make_topic: Callable[..., str]) -> None:
    topic = make_topic(queues=1, queue_type="BatchCQ")
    async with Producer(config(broker), "kinds", options()) as producer:
        messages = [Message(topic, b"%d" % i) for i in range(5)]
        results = await producer.send_batch(messages)
        single = await producer.send(Message(topic, b"single"))
    assert [r.msg_id for r in results] == [m.unique_id for m in messages]
    assert [r.queue_offset for r in results] == [0, 1, 2, 3, 4]
    assert len({r.offset_msg_id for r in results}) == 1, "the broker stored one message with five inside"
    assert single.queue_offset == 5
    stored = await read_once_there(broker.name_server, topic, 6)
    assert [m.body for m in stored] == [b"0", b"1", b"2", b"3", b"4", b"single"]


async def test_ordered_messages_of_a_key_stay_in_order(broker: Cluster, topic: str) -> None:
    keys = [f"order-{n}" for n in range(10)]
    async with Producer(config(broker), "kinds", options()) as producer:

        async def one_order(key: str) -> None:
            for step in range(20):
                await producer.send(Message(topic, b"%s %d" % (key.encode(), step)), sharding_key=key)

        await asyncio.gather(*map(one_order, keys))
        queues = await producer.queues(topic)
    seen: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for message in await read_once_there(broker.name_server, topic, 200):
        key, step = message.body.decode().split()
        seen[key].append((message.queue_id, int(step)))
    for key in keys:
        assert seen[key] == [(by_hash(queues, key).queue_id, step) for step in range(20)]


async def test_oneway_messages_arrive(broker: Cluster, topic: str) -> None:
    async with Producer(config(broker), "kinds", options()) as producer:
        ids = [await producer.send_oneway(Message(topic, b"%d" % i)) for i in range(20)]
        stored = await read_once_there(broker.name_server, topic, 20)
    assert sorted(m.msg_id for m in stored) == sorted(ids)


async def test_delayed_messages_come_when_they_should(broker: Cluster, topic: str) -> None:
    async with Producer(config(broker), "kinds", options()) as producer:
        results = {
            "level": await producer.send(Message(topic, b"level", delay_level=2)),  # 5 s
            "seconds": await producer.send(Message(topic, b"seconds", delay_seconds=3)),
            "milliseconds": await producer.send(Message(topic, b"milliseconds", delay_milliseconds=3000)),
            "at": await producer.send(Message(topic, b"at", deliver_at=int(time.time() * 1000) + 3000)),
        }
        await producer.send(Message(topic, b"now"))
    assert [m.body for m in await read_once_there(broker.name_server, topic, 1)] == [b"now"]
    delays = {"level": 5000, "seconds": 3000, "milliseconds": 3000, "at": 3000, "now": 0}
    for message in await read_once_there(broker.name_server, topic, 5):
        waited = message.store_timestamp - message.born_timestamp
        # the broker's timer counts in whole seconds and rounds down
        assert waited >= delays[message.body.decode()] - 1000, message.body
        if message.body != b"now":
            assert message.msg_id == results[message.body.decode()].msg_id
    assert results["seconds"].recall_handle, "a delayed message can be taken back by this"


@pytest.mark.parametrize("compression", list(Compression))
async def test_large_bodies_travel_compressed(broker: Cluster, topic: str, compression: Compression) -> None:
    body = b"many words, the same again and again; " * 30_000 + os.urandom(10)
    async with Producer(config(broker), "kinds", options(compression=compression)) as producer:
        await producer.send(Message(topic, body))
        await producer.send(Message(topic, b"small"))
    large, small = sorted(await read_once_there(broker.name_server, topic, 2), key=lambda m: m.sys_flag, reverse=True)
    assert large.body == body
    assert compression_of(large.sys_flag) is compression
    assert compression_of(small.sys_flag) is None


async def test_the_largest_body_fits(broker: Cluster, topic: str) -> None:
    body = os.urandom(4 * 1024 * 1024)
    async with Producer(config(broker), "kinds", options(compress_over=1 << 30)) as producer:
        assert (await producer.send(Message(topic, body))).status is SendStatus.SEND_OK
    (stored,) = await read_once_there(broker.name_server, topic, 1)
    assert stored.body == body


async def test_what_the_broker_refuses_is_told_in_its_words(broker: Cluster, topic: str) -> None:
    large = options(max_message_size=8 * 1024 * 1024, compress_over=1 << 30)
    async with Producer(config(broker), "kinds", large) as producer:
        with pytest.raises(ResponseError, match=r"MESSAGE_ILLEGAL.*4194304B"):
            await producer.send(Message(topic, os.urandom(4 * 1024 * 1024 + 1)))


async def test_small_sends_travel_in_batches(broker: Cluster, topic: str) -> None:
    async with Producer(config(broker), "kinds", options(batching=BatchLimits(max_delay=0.005))) as producer:
        messages = [Message(topic, b"%d" % i, tags="ab"[i % 2]) for i in range(500)]
        results = await asyncio.gather(*(producer.send(m) for m in messages))
    stored = {m.msg_id: m for m in await read_once_there(broker.name_server, topic, 500)}
    assert len(stored) == 500
    for message, result in zip(messages, results, strict=True):
        found = stored[result.msg_id]
        assert (found.body, found.tags) == (message.body, message.tags)
        assert (found.offset_msg_id, found.queue_offset) == (result.offset_msg_id, result.queue_offset)
    assert len({(m.store_timestamp, m.queue_id) for m in stored.values()}) < 250


async def test_a_new_topic_is_created_by_its_first_message(broker: Cluster) -> None:
    topic = f"created-{os.getpid()}-{time.monotonic_ns()}"
    async with Producer(config(broker), "kinds", options(default_queues=3)) as producer:
        result = await producer.send(Message(topic, b"first"))
        assert result.status is SendStatus.SEND_OK
        for _ in range(5):
            await producer.send(Message(topic, b"more"))
    stored = await read_once_there(broker.name_server, topic, 6)
    assert {m.queue_id for m in stored} <= {0, 1, 2}


async def test_without_automatic_creation_the_topic_is_missing(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(auto_create_topics=False, properties=PATIENT)
    async with Producer(config(cluster), "kinds", options()) as producer:
        with pytest.raises(NoRoute, match=f"no route to topic nowhere: .*{cluster.name_server}"):
            await producer.send(Message("nowhere", b"x"))
        made = cluster.create_topic()
        assert (await producer.send(Message(made, b"x"))).status is SendStatus.SEND_OK


async def test_the_broker_knows_the_producer_while_it_lives(broker: Cluster, topic: str) -> None:
    async with Client(config(broker)) as client:

        async def members() -> set[str]:
            try:
                found = await broker_members.producer_connections(client.remoting, broker.broker_address, "known")
            except ResponseError:
                return set()
            return {connection.client_id for connection in found.connection_set}

        async with Producer(config(broker), "known", options()) as producer:
            await producer.send(Message(topic, b"x"))
            mine = producer._parts.client.client_id
            for _ in range(500):
                if await members() == {mine}:
                    break
                await asyncio.sleep(0.01)
            assert await members() == {mine}
        assert await members() == set()


def test_the_blocking_producer_from_many_threads(broker: Cluster, topic: str) -> None:
    with SyncProducer(config(broker), "kinds", options()) as producer, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: producer.send(Message(topic, b"%d" % n)), range(200)))
        batch = producer.send_batch([Message(topic, b"batch") for _ in range(10)])
    assert len({result.msg_id for result in itertools.chain(results, batch)}) == 210
    stored = asyncio.run(read_once_there(broker.name_server, topic, 210))
    assert sorted(m.msg_id for m in stored) == sorted(r.msg_id for r in itertools.chain(results, batch))


async def test_a_message_that_reached_the_master_only_says_so(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(slave=True, properties=(*PATIENT, ("brokerRole", "SYNC_MASTER"), ("inSyncReplicas", "2")))
    topic = cluster.create_topic()
    async with Producer(config(cluster), "kinds", options()) as producer:

        async def status_becomes(wanted: SendStatus) -> None:
            deadline = asyncio.get_running_loop().time() + 60
            while True:
                try:
                    if (await producer.send(Message(topic, b"x"))).status is wanted:
                        return
                except SendFailed:
                    pass  # "in-sync replicas not enough": the slave has not joined yet
                assert asyncio.get_running_loop().time() < deadline, f"never {wanted}"

        await status_becomes(SendStatus.SEND_OK)
        cluster.pause("broker-a-slave")
        await status_becomes(SendStatus.FLUSH_SLAVE_TIMEOUT)
        cluster.resume("broker-a-slave")
        await status_becomes(SendStatus.SEND_OK)


async def test_credentials_and_encryption(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(acl=True, tls=True, properties=PATIENT)
    admin = cluster.admin_user
    assert admin is not None
    secured = ClientConfig(
        cluster.name_server,
        credentials=Credentials(admin.access_key, admin.secret_key),
        tls=TlsConfig(ca_file=str(cluster.layout.tls / certificates.CA)),
    )
    topic = cluster.create_topic()
    async with Producer(secured, "kinds", options()) as producer:
        await producer.send(Message(topic, b"one", keys="k"))
        await producer.send_batch([Message(topic, b"two"), Message(topic, b"three")])
        await producer.send_oneway(Message(topic, b"four"))
        await producer.send(Message(topic, b"five " * 2000))
    bodies = {m.body for m in await read_once_there(secured, topic, 5)}
    assert bodies == {b"one", b"two", b"three", b"four", b"five " * 2000}
