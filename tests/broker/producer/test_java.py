"""Java reads what we send, and where Java's producer decides something, we decide the same."""

import asyncio
import hashlib
import os
from collections import defaultdict
from dataclasses import dataclass

import pytest
from tests.broker.cluster import Cluster
from tests.broker.java_main import JavaPrograms
from tests.broker.producer.reading import read_once_there
from tests.broker.producer.transactions import Outcomes

from rocketfleet.client.config import ClientConfig
from rocketfleet.producer import BatchLimits, Producer, ProducerOptions
from rocketfleet.wire.message import Message, decode_unique_id
from rocketfleet.wire.message.compression import Compression

PATIENT_OPTIONS = ProducerOptions(send_timeout=60)


@dataclass(frozen=True)
class Read:
    """A message as Java's consumer saw it."""

    msg_id: str
    queue_id: int
    tags: str
    keys: str
    transaction_id: str
    length: int
    digest: str
    properties: dict[str, str]


def java_reads(
    java: JavaPrograms, broker: Cluster, group: str, topic: str, count: int, expression: str = "*"
) -> list[Read]:
    output = java.run("ProducerReader.java", broker.name_server, group, topic, expression, str(count), timeout=120)
    found = []
    for line in output.splitlines():
        msg_id, queue_id, tags, keys, transaction_id, length, digest, properties = line.split("\t")
        pairs = dict(pair.split("=", 1) for pair in properties.split(";") if pair)
        found.append(Read(msg_id, int(queue_id), tags, keys, transaction_id, int(length), digest, pairs))
    return found


def digest_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


async def test_java_reads_every_kind(java: JavaPrograms, broker: Cluster, topic: str, group: str) -> None:
    sent: dict[str, bytes] = {}
    large = b"compressible " * 2000 + os.urandom(8)

    def new(body: bytes, **rest: object) -> Message:
        return Message(topic, body, tags="TagA", keys="k1", **rest)  # type: ignore[arg-type]  # delays by name

    async with Producer(ClientConfig(broker.name_server), "interop", PATIENT_OPTIONS) as producer:
        for compression in Compression:
            options = ProducerOptions(send_timeout=60, compression=compression)
            async with Producer(producer._parts.client, f"interop-{compression.name}", options) as other:
                message = new(large + compression.name.encode())
                sent[(await other.send(message)).msg_id] = message.body
        for message in (new(b"plain"), new(b"level", delay_level=1), new(b"timer", delay_seconds=1)):
            sent[(await producer.send(message)).msg_id] = message.body
        batch = [new(b"batch %d" % i) for i in range(10)]
        for message, result in zip(batch, await producer.send_batch(batch), strict=True):
            sent[result.msg_id] = message.body
    async with Producer(
        ClientConfig(broker.name_server),
        "interop",
        ProducerOptions(send_timeout=60, batching=BatchLimits(max_delay=0.01)),
    ) as producer:
        many = [new(b"accumulated %d" % i) for i in range(50)]
        for message, result in zip(many, await asyncio.gather(*map(producer.send, many)), strict=True):
            sent[result.msg_id] = message.body
    read = await asyncio.to_thread(java_reads, java, broker, group, topic, len(sent), "TagA")
    assert {one.msg_id: (one.length, one.digest) for one in read} == {
        msg_id: (len(body), digest_of(body)) for msg_id, body in sent.items()
    }
    assert {(one.tags, one.keys) for one in read} == {("TagA", "k1")}


async def test_java_reads_ordered_messages_in_order(
    java: JavaPrograms, broker: Cluster, topic: str, group: str
) -> None:
    async with Producer(ClientConfig(broker.name_server), "interop", PATIENT_OPTIONS) as producer:

        async def one_order(number: int) -> None:
            for step in range(10):
                await producer.send(
                    Message(
                        topic, b"x", keys=f"{number}", properties={"step": str(step)}, sharding_key=f"order {number}"
                    )
                )

        await asyncio.gather(*map(one_order, range(8)))
    steps = defaultdict(list)
    for one in await asyncio.to_thread(java_reads, java, broker, group, topic, 80):
        steps[one.keys].append(int(one.properties["step"]))
    assert steps == {f"{number}": list(range(10)) for number in range(8)}


async def test_keys_go_where_java_sends_them(java: JavaPrograms, broker: Cluster, topic: str) -> None:
    keys = ["", "a", "order-1", "polygenelubricants", "订单", "𝒳 surrogate", *(f"key {i}" for i in range(40))]
    async with Producer(ClientConfig(broker.name_server), "interop", PATIENT_OPTIONS) as producer:
        ours = [(await producer.send(Message(topic, b"x"), sharding_key=key)).queue for key in keys]
    lines = "".join(f"{key}\n" for key in keys if key)
    arguments = (broker.name_server, "interop-java", topic, "sharding")
    output = await asyncio.to_thread(java.run, "ProducerPeer.java", *arguments, stdin=lines, timeout=120)
    theirs = [line.split() for line in output.splitlines()]
    assert [[q.broker, str(q.queue_id)] for key, q in zip(keys, ours, strict=True) if key] == theirs


async def test_a_plain_message_is_stored_as_javas_is(java: JavaPrograms, broker: Cluster, topic: str) -> None:
    arguments = (broker.name_server, "interop-java", topic, "plain")
    await asyncio.to_thread(java.run, "ProducerPeer.java", *arguments, stdin="body\n", timeout=120)
    async with Producer(ClientConfig(broker.name_server), "interop", PATIENT_OPTIONS) as producer:
        await producer.send(Message(topic, b"body", tags="TagA", keys=["k1", "k2"], properties={"colour": "blue"}))
    theirs, ours = sorted(await read_once_there(broker.name_server, topic, 2), key=lambda m: m.store_timestamp)
    own = {"UNIQ_KEY"}
    assert {k: v for k, v in ours.properties.items() if k not in own} == {
        k: v for k, v in theirs.properties.items() if k not in own
    }
    # One layout: the time in both ids is the same moment, give or take what lies between the two sends.
    apart = decode_unique_id(ours.msg_id).milliseconds - decode_unique_id(theirs.msg_id).milliseconds
    assert apart == pytest.approx(ours.born_timestamp - theirs.born_timestamp, abs=1000)
    for field in ("body", "flag", "sys_flag", "body_crc", "reconsume_times", "prepared_transaction_offset"):
        assert getattr(ours, field) == getattr(theirs, field)


async def test_transactions_end_as_javas_do(java: JavaPrograms, asking: Cluster) -> None:
    scenario = [
        ("COMMIT", "ROLLBACK"),
        ("ROLLBACK", "COMMIT"),
        ("UNKNOWN", "COMMIT"),
        ("UNKNOWN", "ROLLBACK"),
    ]
    ours_topic, java_topic = asking.create_topic(), asking.create_topic()
    lines = "".join(f"{outcome} {checked}\n".replace("UNKNOWN", "UNKNOW") for outcome, checked in scenario)
    arguments = (asking.name_server, "tx-java", java_topic, "transactions")
    output = await asyncio.to_thread(java.run, "ProducerPeer.java", *arguments, stdin=lines, timeout=120)
    *_, asked = output.splitlines()
    assert asked == "asked 2"

    outcomes = Outcomes()
    large = b"a half message stays compressed while the broker asks about it " * 200
    async with Producer(
        ClientConfig(asking.name_server), "tx-ours", PATIENT_OPTIONS, transactions=outcomes
    ) as producer:
        for number, (outcome, checked) in enumerate(scenario):
            body = f"{outcome} {checked}".encode() + (large if number % 2 == 0 else b"")
            result = await producer.send_in_transaction(
                Message(ours_topic, body, tags="TagA", keys="k1"), (outcome, checked)
            )
            assert result.state.name == outcome
            assert result.settled is (outcome != "UNKNOWN")
        await outcomes.wait_until_asked(2)
        ours = await read_once_there(asking.name_server, ours_topic, 2)
        assert len({m.msg_id for m in outcomes.asked}) == 2
        assert {m.body.startswith(b"UNKNOWN") for m in outcomes.asked} == {True}
    theirs = await read_once_there(asking.name_server, java_topic, 2)
    assert sorted(m.body.decode().replace("UNKNOW ", "UNKNOWN ") for m in theirs) == sorted(
        m.body.removesuffix(large).decode() for m in ours
    )
    assert {m.tags for m in ours} == {"TagA"}
    assert {frozenset(m.properties) for m in ours} == {frozenset(m.properties) for m in theirs}
    for message in ours:
        assert message.sys_flag & 12 == 8, "committed"
