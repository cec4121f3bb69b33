"""The codec against Java's own classes: what each writes, the other reads, byte for byte and field by field."""

import base64
import random
import zlib
from ipaddress import ip_address
from typing import Any

import pytest
from tests.broker.wire import cases
from tests.broker.wire.oracle import Oracle

from rocketfleet.wire import acl, bodies, codes, command
from rocketfleet.wire.enums import ExpressionType
from rocketfleet.wire.frame import FrameDecoder
from rocketfleet.wire.message import Message, decode_batch, decode_messages, encode_batch, sysflag, tag_hash
from rocketfleet.wire.message.batch import write_batch
from rocketfleet.wire.message.compression import Compression, compress, decompress
from rocketfleet.wire.message.message_id import (
    UniqueIds,
    decode_offset_id,
    decode_unique_id,
    encode_offset_id,
    host_bytes,
    unique_id_time,
)
from rocketfleet.wire.message.properties import SYSTEM_PROPERTIES, decode_properties, encode_properties
from rocketfleet.wire.message.received import ReceivedMessage
from rocketfleet.wire.message.stored import encode_stored

SEED = 20261116


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(f"{SEED}/{request.node.name}")


# -- constants --------------------------------------------------------------------------------------------------------


def test_numbers_and_names_are_those_of_this_rocketmq(oracle: Oracle) -> None:
    java = oracle.ask("constants")
    assert {code.name: code.value for code in codes.RequestCode} == java["request"]
    assert {code.name: code.value for code in codes.ResponseCode} == java["response"]
    assert {language.name: language.value for language in codes.Language} == java["language"]
    assert java["version"] == command.VERSION
    assert sorted(SYSTEM_PROPERTIES) == java["system"]
    flags = java["sysFlag"]
    assert flags["COMPRESSED_FLAG"] == sysflag.COMPRESSED
    assert flags["MULTI_TAGS_FLAG"] == sysflag.MULTI_TAGS
    assert flags["TRANSACTION_PREPARED_TYPE"] == sysflag.TRANSACTION_PREPARED
    assert flags["TRANSACTION_COMMIT_TYPE"] == sysflag.TRANSACTION_COMMIT
    assert flags["TRANSACTION_ROLLBACK_TYPE"] == sysflag.TRANSACTION_ROLLBACK
    assert flags["BORNHOST_V6_FLAG"] == sysflag.BORN_HOST_V6
    assert flags["STOREHOSTADDRESS_V6_FLAG"] == sysflag.STORE_HOST_V6
    assert flags["NEED_UNWRAP_FLAG"] == sysflag.NEED_UNWRAP
    assert flags["INNER_BATCH_FLAG"] == sysflag.INNER_BATCH
    assert flags["COMPRESSION_TYPE_COMPARATOR"] == sysflag.COMPRESSION_MASK
    assert Compression.LZ4.flag == flags["COMPRESSED_FLAG"] | flags["COMPRESSION_LZ4_TYPE"]
    assert Compression.ZSTD.flag == flags["COMPRESSED_FLAG"] | flags["COMPRESSION_ZSTD_TYPE"]
    assert Compression.ZLIB.flag == flags["COMPRESSED_FLAG"] | flags["COMPRESSION_ZLIB_TYPE"]


# -- commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", command.HeaderForm)
def test_java_reads_our_commands(oracle: Oracle, chance: random.Random, form: command.HeaderForm) -> None:
    for _ in range(100):
        case = cases.command(chance, form)
        frame = command.encode(command.Command(**case | {"form": form}))
        read = oracle.ask("command-decode", payload=frame[4:])
        assert read == case | {"body": base64.b64encode(case["body"]).decode()}


@pytest.mark.parametrize("form", command.HeaderForm)
def test_we_read_javas_commands(oracle: Oracle, chance: random.Random, form: command.HeaderForm) -> None:
    for _ in range(100):
        case = cases.command(chance, form)
        for frame in oracle.ask("command-encode", **case):
            (payload,) = FrameDecoder().feed(base64.b64decode(frame))
            assert command.decode(payload) == command.Command(**case | {"form": form})


def test_signatures_are_javas(oracle: Oracle, chance: random.Random) -> None:
    for number in range(60):
        fields = {cases.word(chance): cases.text(chance, 30) for _ in range(chance.randint(0, 8))}
        body = chance.randbytes(chance.choice([0, 1, 1000]))
        token = cases.word(chance) if number % 2 else None
        credentials = acl.Credentials(cases.word(chance), cases.word(chance), token)
        java = oracle.ask(
            "sign",
            fields=fields,
            body=body,
            access=credentials.access_key,
            secret=credentials.secret_key,
            token=token,
        )
        assert acl.sign(credentials, fields, body)["Signature"] == java


# -- messages ---------------------------------------------------------------------------------------------------------


def check(message: ReceivedMessage, case: dict[str, Any]) -> None:
    for name, value in case.items():
        assert getattr(message, name) == value, name


@pytest.mark.parametrize("by_store", [False, True], ids=["MessageDecoder", "the store"])
def test_we_read_javas_messages(oracle: Oracle, chance: random.Random, by_store: bool) -> None:
    stream, written = [], []
    for _ in range(150):
        case = cases.stored(chance, long_topics=by_store)
        crc = zlib.crc32(case["body"]) & 0x7FFFFFFF
        data = oracle.ask_bytes("message-encode", **case, body_crc=crc, by_store=by_store)
        (message,) = decode_messages(data)
        check(message, case | {"body_crc": crc, "store_size": len(data)})
        stream.append(data)
        written.append(case)
    for message, case in zip(decode_messages(b"".join(stream)), written, strict=True):
        check(message, case)
    assert any(len(case["topic"].encode()) > 127 for case in written) == by_store


def test_java_reads_our_messages(oracle: Oracle, chance: random.Random) -> None:
    for _ in range(150):
        case = cases.stored(chance, long_topics=True)
        data = encode_stored(**case)
        (java,) = oracle.ask("message-decode", data=data)
        (ours,) = decode_messages(data)
        assert base64.b64decode(java["body"]) == case["body"] == ours.body
        compressed = sysflag.COMPRESSED if ours.body_length else 0  # Java takes the bit off when it decompresses
        assert java["sys_flag"] == case["sys_flag"] & ~compressed
        for name in ("born_host", "store_host"):
            address, _, port = java[name].rpartition(":")
            assert base64.b64decode(address) + int(port).to_bytes(4, "big") == host_bytes(case[name])
        assert java["msg_id"] == ours.msg_id
        assert java["tags"] == ours.tags
        assert tuple((java["keys"] or "").split()) == ours.keys
        assert java["store_size"] == len(data)
        assert java["body_crc"] == ours.body_crc
        for name in set(case) - {"body", "sys_flag", "born_host", "store_host"}:
            assert java[name] == case[name], name


@pytest.mark.parametrize("kind", [None, *Compression])
def test_inner_batches_are_unwrapped_alike(oracle: Oracle, chance: random.Random, kind: Compression | None) -> None:
    entries = [(number, cases.body(chance), cases.properties(chance)) for number in range(20)]
    flag = sysflag.INNER_BATCH | sysflag.NEED_UNWRAP | (kind.flag if kind else 0)
    data = encode_stored("t", write_batch(entries), sys_flag=flag, queue_offset=100, commit_log_offset=7)
    java = oracle.ask("message-decode", data=data)
    ours = decode_messages(data)
    assert len(java) == len(ours) == 20
    for one, other in zip(java, ours, strict=True):
        assert base64.b64decode(one["body"]) == other.body
        assert one["tags"] == other.tags
        # Java adds WAIT, which says how the sender waited, to each message.
        assert one["properties"] == other.properties | {"WAIT": "true"}
        for name in ("topic", "queue_offset", "queue_id", "flag", "commit_log_offset", "sys_flag"):
            assert one[name] == getattr(other, name), name
        assert one["properties"].get("UNIQ_KEY", other.offset_msg_id) == other.msg_id


def test_java_reads_our_batches(oracle: Oracle, chance: random.Random) -> None:
    messages = [
        Message("t", b"plain"),
        Message("t", b"", tags="tag", keys=["a", "b"], flag=-5, wait_store_ok=False),
        Message("t", b"x", delay_level=3),
        Message("t", b"x", delay_seconds=4),
        Message("t", b"x", delay_milliseconds=5),
        Message("t", b"x", deliver_at=1_800_000_000_000),
        Message("t", b"x", buyer_id="buyer", priority=7, sharding_key="shard"),
        *(Message("t", cases.body(chance), properties=own_properties(chance)) for _ in range(30)),
    ]
    java = oracle.ask("batch-decode", data=encode_batch(messages))
    assert len(java) == len(messages)
    for one, message in zip(java, messages, strict=True):
        assert base64.b64decode(one["body"]) == message.body
        assert one["properties"] == message.properties
        assert one["flag"] == message.flag
        assert one["tags"] == message.tags
        assert tuple((one["keys"] or "").split()) == message.keys
        assert one["wait"] == message.wait_store_ok
        assert one["delay_level"] == message.delay_level
        assert one["sharding_key"] == message.sharding_key
    assert java[3]["delay_seconds"] == 4
    assert java[4]["delay_milliseconds"] == 5
    assert java[5]["deliver_at"] == 1_800_000_000_000
    assert java[6]["buyer_id"] == "buyer"
    assert java[6]["priority"] == 7


def test_we_read_javas_batches(oracle: Oracle, chance: random.Random) -> None:
    batch: list[dict[str, Any]] = [
        {
            "topic": "t",
            "tags": chance.choice(["", cases.word(chance)]),
            "keys": chance.choice(["", "a b"]),
            "flag": cases.integer(chance, 32),
            "body": cases.body(chance),
            "wait": True,
            "properties": own_properties(chance),
        }
        for _ in range(40)
    ]
    data = oracle.ask_bytes("batch-encode", messages=batch)
    for message, case in zip(decode_batch(data, "t"), batch, strict=True):
        assert message.body == case["body"]
        assert message.flag == case["flag"]
        assert message.tags == (case["tags"] or None)
        assert " ".join(message.keys) == case["keys"]
        again = Message("t", case["body"], tags=case["tags"], keys=case["keys"], properties=case["properties"])
        assert message.properties == again.properties


def own_properties(chance: random.Random) -> dict[str, str]:
    return {name: value for name, value in cases.properties(chance).items() if name not in SYSTEM_PROPERTIES}


def test_properties(oracle: Oracle, chance: random.Random) -> None:
    for _ in range(50):
        held = cases.properties(chance)
        assert oracle.ask("properties-decode", text=encode_properties(held)) == held
        assert decode_properties(oracle.ask("properties-encode", properties=held)) == held


def test_malformed_properties_are_read_alike(oracle: Oracle, chance: random.Random) -> None:
    for _ in range(300):
        text = "".join(chance.choices("ab\x01\x02", weights=[3, 3, 2, 2], k=chance.randint(0, 25)))
        ours = decode_properties(text)
        # Java drops an empty value, and with it what the same name had before stays.
        java = oracle.ask("properties-decode", text=text)
        assert {name: value for name, value in ours.items() if value} == {
            name: value for name, value in java.items() if ours.get(name)
        }
        assert set(java) <= set(ours)


@pytest.mark.parametrize("kind", Compression)
def test_compressed_bodies(oracle: Oracle, chance: random.Random, kind: Compression) -> None:
    for size in (0, 1, 100, 5_000, 70_000, 1_000_000):
        for body in (chance.randbytes(size), b"all work and no play " * (size // 20)):
            assert oracle.ask_bytes("decompress", kind=kind.name, data=compress(body, kind)) == body
            for level in (1, 5, 9):
                assert decompress(oracle.ask_bytes("compress", kind=kind.name, data=body, level=level), kind) == body


# -- ids and hashes ---------------------------------------------------------------------------------------------------


def test_java_reads_our_unique_ids(oracle: Oracle, chance: random.Random) -> None:
    probe = oracle.ask("unique-id-create")
    now = unique_id_time(probe, 4_000_000_000)  # some moment of this month, as far as the two clocks agree
    assert now > 0
    for version in (4, 6):
        for _ in range(10):
            raw = host_bytes(cases.host(chance, version))[:-4]
            process_id = chance.randrange(1 << 16)
            unique_id = UniqueIds(raw, process_id, chance.getrandbits(32)).next()
            read = oracle.ask("unique-id-decode", id=unique_id)
            assert ip_address(read["address"]).packed == raw
            assert read["process_id"] == process_id
            ours = decode_unique_id(unique_id)
            assert read["time"] == round(unique_id_time(unique_id, read["time"] / 1000 + 1) * 1000)
            assert ours.process_id == process_id


def test_we_read_javas_unique_ids(oracle: Oracle) -> None:
    for _ in range(10):
        unique_id = oracle.ask("unique-id-create")
        java = oracle.ask("unique-id-decode", id=unique_id)
        ours = decode_unique_id(unique_id)
        assert ip_address(ours.address) == ip_address(java["address"])
        assert ours.process_id == java["process_id"]
        assert round(unique_id_time(unique_id, java["time"] / 1000 + 1) * 1000) == java["time"]


def test_offset_ids(oracle: Oracle, chance: random.Random) -> None:
    for number in range(40):
        host = cases.host(chance, 4 if number % 2 else 6)
        offset = cases.integer(chance, 64)
        address, _, port = host.rpartition(":")
        ours = encode_offset_id(address.strip("[]"), int(port), offset)
        assert oracle.ask("offset-id-create", host=host, offset=offset) == ours
        java = oracle.ask("offset-id-decode", id=ours)
        assert java["offset"] == offset == decode_offset_id(ours).commit_log_offset
        packed, _, java_port = java["host"].rpartition(":")
        assert base64.b64decode(packed) == host_bytes(host)[:-4]
        assert java_port == port


def test_tag_hashes(oracle: Oracle, chance: random.Random) -> None:
    for _ in range(200):
        tag = cases.text(chance, 20)
        assert tag_hash(tag) == oracle.ask("hash", text=tag)


@pytest.mark.parametrize("expression", ["*", "", "a", "a||b", " TagA || 标签 ||😀", "a || || b", "||a"])
def test_subscriptions(oracle: Oracle, expression: str) -> None:
    java = bodies.SubscriptionData.decode(oracle.ask("subscription", topic="t", expression=expression, type=None))
    assert bodies.SubscriptionData.of("t", expression, version=java.sub_version) == java


def test_sql_subscriptions(oracle: Oracle) -> None:
    java = bodies.SubscriptionData.decode(oracle.ask("subscription", topic="t", expression="a > 5", type="SQL92"))
    assert bodies.SubscriptionData.of("t", "a > 5", ExpressionType.SQL92, version=java.sub_version) == java


# -- bodies -----------------------------------------------------------------------------------------------------------

REMOTING = "org.apache.rocketmq.remoting.protocol"
JAVA_CLASSES: dict[type[bodies.Body], str] = {
    bodies.BatchAck: f"{REMOTING}.body.BatchAck",
    bodies.BatchAckRequest: f"{REMOTING}.body.BatchAckMessageRequestBody",
    bodies.BrokerData: f"{REMOTING}.route.BrokerData",
    bodies.BrokerMemberGroup: f"{REMOTING}.body.BrokerMemberGroup",
    bodies.BrokerMemberGroupResponse: f"{REMOTING}.body.GetBrokerMemberGroupResponseBody",
    bodies.CheckClientRequest: f"{REMOTING}.body.CheckClientRequestBody",
    bodies.ClusterInfo: f"{REMOTING}.body.ClusterInfo",
    bodies.ClientConnection: f"{REMOTING}.body.Connection",
    bodies.ConsumeMessageDirectlyResult: f"{REMOTING}.body.ConsumeMessageDirectlyResult",
    bodies.ConsumeStats: f"{REMOTING}.admin.ConsumeStats",
    bodies.ConsumeStatsList: f"{REMOTING}.body.ConsumeStatsList",
    bodies.ConsumeStatus: f"{REMOTING}.body.ConsumeStatus",
    bodies.ConsumeTimeSpans: f"{REMOTING}.body.QueryConsumeTimeSpanBody",
    bodies.ConsumerConnection: f"{REMOTING}.body.ConsumerConnection",
    bodies.ConsumerData: f"{REMOTING}.heartbeat.ConsumerData",
    bodies.ConsumerList: f"{REMOTING}.header.GetConsumerListByGroupResponseBody",
    bodies.ConsumerOffsets: f"{REMOTING}.body.ConsumerOffsetSerializeWrapper",
    bodies.ConsumerRunningInfo: f"{REMOTING}.body.ConsumerRunningInfo",
    bodies.ConsumerStatus: f"{REMOTING}.body.GetConsumerStatusBody",
    bodies.CorrectionOffsets: f"{REMOTING}.body.QueryCorrectionOffsetBody",
    bodies.CustomizedRetryPolicy: f"{REMOTING}.subscription.CustomizedRetryPolicy",
    bodies.DataVersion: f"{REMOTING}.DataVersion",
    bodies.ExponentialRetryPolicy: f"{REMOTING}.subscription.ExponentialRetryPolicy",
    bodies.GroupList: f"{REMOTING}.body.GroupList",
    bodies.GroupRetryPolicy: f"{REMOTING}.subscription.GroupRetryPolicy",
    bodies.HeartbeatData: f"{REMOTING}.heartbeat.HeartbeatData",
    bodies.KVTable: f"{REMOTING}.body.KVTable",
    bodies.LockBatchRequest: f"{REMOTING}.body.LockBatchRequestBody",
    bodies.LockBatchResponse: f"{REMOTING}.body.LockBatchResponseBody",
    bodies.MessageQueueAssignment: "org.apache.rocketmq.common.message.MessageQueueAssignment",
    bodies.OffsetWrapper: f"{REMOTING}.admin.OffsetWrapper",
    bodies.PopProcessQueueInfo: f"{REMOTING}.body.PopProcessQueueInfo",
    bodies.ProcessQueueInfo: f"{REMOTING}.body.ProcessQueueInfo",
    bodies.ProducerConnection: f"{REMOTING}.body.ProducerConnection",
    bodies.ProducerData: f"{REMOTING}.heartbeat.ProducerData",
    bodies.QueryAssignmentRequest: f"{REMOTING}.body.QueryAssignmentRequestBody",
    bodies.QueryAssignmentResponse: f"{REMOTING}.body.QueryAssignmentResponseBody",
    bodies.QuerySubscriptionResponse: f"{REMOTING}.body.QuerySubscriptionResponseBody",
    bodies.QueueData: f"{REMOTING}.route.QueueData",
    bodies.QueueOffset: "org.apache.rocketmq.common.message.MessageQueueForC",
    bodies.QueueTimeSpan: f"{REMOTING}.body.QueueTimeSpan",
    bodies.ResetOffset: f"{REMOTING}.body.ResetOffsetBody",
    bodies.ResetOffsetForC: f"{REMOTING}.body.ResetOffsetBodyForC",
    bodies.SetMessageRequestMode: f"{REMOTING}.body.SetMessageRequestModeRequestBody",
    bodies.SimpleSubscription: f"{REMOTING}.subscription.SimpleSubscriptionData",
    bodies.SubscriptionData: f"{REMOTING}.heartbeat.SubscriptionData",
    bodies.SubscriptionGroupConfig: f"{REMOTING}.subscription.SubscriptionGroupConfig",
    bodies.SubscriptionGroupList: f"{REMOTING}.body.SubscriptionGroupList",
    bodies.SubscriptionGroups: f"{REMOTING}.body.SubscriptionGroupWrapper",
    bodies.TopicConfig: "org.apache.rocketmq.common.TopicConfig",
    bodies.TopicConfigList: f"{REMOTING}.body.CreateTopicListRequestBody",
    bodies.TopicConfigs: f"{REMOTING}.body.TopicConfigSerializeWrapper",
    bodies.TopicList: f"{REMOTING}.body.TopicList",
    bodies.TopicOffset: f"{REMOTING}.admin.TopicOffset",
    bodies.TopicRouteData: f"{REMOTING}.route.TopicRouteData",
    bodies.TopicStatsTable: f"{REMOTING}.admin.TopicStatsTable",
    bodies.UnlockBatchRequest: f"{REMOTING}.body.UnlockBatchRequestBody",
}


def test_every_body_has_its_java_class() -> None:
    ours = {
        member
        for name in bodies.__all__
        if isinstance(member := getattr(bodies, name), type) and issubclass(member, bodies.Body)
    }
    assert ours - {bodies.Body} == set(JAVA_CLASSES)


@pytest.mark.parametrize("cls", JAVA_CLASSES, ids=lambda cls: cls.__name__)
def test_java_takes_over_every_field_of_our_bodies(
    oracle: Oracle, chance: random.Random, cls: type[bodies.Body]
) -> None:
    for _ in range(10):
        body = cases.instance(cls, chance)
        if isinstance(body, bodies.ConsumerOffsets):  # the rest is the broker's own subclass of the class we can ask
            body = bodies.ConsumerOffsets(body.offset_table, data_version=body.data_version)
        written = oracle.ask("body", **{"class": JAVA_CLASSES[cls], "data": body.encode()})
        assert cases.normal(cls.decode(written)) == cases.normal(body)
