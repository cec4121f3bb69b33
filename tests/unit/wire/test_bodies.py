"""Every body is written and read back the same, read leniently where versions differ, and refused where it is wrong."""

import dataclasses
import json
import types
import typing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.wire.strategies import int64, queues, text

from rocketfleet.wire import bodies, fastjson
from rocketfleet.wire.bodies import Body, SubscriptionData
from rocketfleet.wire.enums import ExpressionType
from rocketfleet.wire.errors import BodyError
from rocketfleet.wire.queue import MessageQueue

BODIES: list[type[Body]] = sorted(
    (
        member
        for name in bodies.__all__
        if isinstance(member := getattr(bodies, name), type) and issubclass(member, Body) and member is not Body
    ),
    key=lambda body: body.__name__,
)


def strategy_for(hint: Any) -> st.SearchStrategy[Any]:
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: text,
        int: int64,
        float: st.floats(allow_nan=False),
        bool: st.booleans(),
        bytes: st.binary(max_size=20),
        MessageQueue: queues,
    }
    if hint in simple:
        return simple[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return st.none() | strategy_for(arguments[0])
    if origin is tuple:
        return st.lists(strategy_for(arguments[0]), max_size=3).map(tuple)
    if origin is frozenset:
        return st.frozensets(strategy_for(arguments[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(strategy_for(arguments[0]), strategy_for(arguments[1]), max_size=3)
    return instances(hint)


def instances(cls: Any) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(cls)
    return st.builds(cls, **{field.name: strategy_for(hints[field.name]) for field in dataclasses.fields(cls)})


every_body = pytest.mark.parametrize("cls", BODIES, ids=lambda cls: cls.__name__)


def test_there_are_bodies_to_test() -> None:
    assert len(BODIES) > 40


@every_body
@settings(max_examples=15)  # times some fifty bodies
@given(data=st.data())
def test_bodies_survive(cls: type[Body], data: st.DataObject) -> None:
    body = data.draw(instances(cls))
    written = body.encode()
    assert cls.decode(written) == body
    assert cls.decode(memoryview(written)) == body


@every_body
def test_nothing_but_defaults_and_unknown_fields(cls: type[Body]) -> None:
    assert cls.decode(b"{}") == cls()
    assert cls.decode(b'{"somethingNew":{"a":[1]},"more":null}') == cls()
    nulls = dict.fromkeys(json.loads(fastjson_names(cls)))
    assert cls.decode(json.dumps(nulls)) == cls()


def fastjson_names(cls: type[Body]) -> str:
    """The names on the wire of a body's fields that are not None by default, as a JSON array."""
    return json.dumps(list(fastjson.loads(cls().encode())))


@every_body
@pytest.mark.parametrize("wrong", ["[]", "5", '"text"', "true", "null", "{1:2}x", ""])
def test_something_else_than_an_object_is_a_body_error(cls: type[Body], wrong: str) -> None:
    with pytest.raises(BodyError):
        cls.decode(wrong)


@every_body
def test_a_field_of_the_wrong_shape_is_named(cls: type[Body]) -> None:
    for name in json.loads(fastjson_names(cls)):
        with pytest.raises(BodyError, match=f"{cls.__name__}, field {name}"):
            cls.decode(b'{"%s":[[[]]]}' % name.encode())


garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.data(), st.sampled_from(BODIES), garbage)
def test_garbage_in_a_field_is_a_body_error_or_nothing(data: st.DataObject, cls: type[Body], value: Any) -> None:
    names = [member.metadata.get("wire_name", _camel(member.name)) for member in dataclasses.fields(cls)]  # type: ignore[arg-type]  # every subclass is a dataclass
    try:
        cls.from_json({data.draw(st.sampled_from(names)): value})
    except BodyError:
        return


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def test_errors_say_where() -> None:
    stats = '{"offsetTable":{{"brokerName":"b","queueId":"x","topic":"T"}:{}}}'
    with pytest.raises(
        BodyError, match=r"ConsumeStats, field offsetTable\[.*\]\.queueId: expected an integer of 64 bits, found a str"
    ):
        bodies.ConsumeStats.decode(stats)
    route = '{"brokerDatas":[{"brokerAddrs":{"0":"a"}},{"brokerAddrs":{"0":5}}]}'
    with pytest.raises(
        BodyError, match=r"field brokerDatas\[1\]\.brokerAddrs\[0\]: expected a string, found an integer"
    ):
        bodies.TopicRouteData.decode(route)
    with pytest.raises(BodyError, match="field offsetTable: expected an object, found an array"):
        bodies.ConsumeStats.decode('{"offsetTable":[]}')


def test_an_error_about_a_huge_key_stays_small() -> None:
    body = '{"offsetTable":{{"topic":"' + "x" * 100_000 + '"}:5}}'
    with pytest.raises(BodyError) as caught:
        bodies.ConsumeStats.decode(body)
    assert len(str(caught.value)) < 400


def test_a_route_in_both_dialects() -> None:
    standard = (
        b'{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:10911"},"brokerName":"broker-a","cluster":"DefaultCluster",'
        b'"enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,'
        b'"readQueueNums":2,"topicSysFlag":0,"writeQueueNums":2}]}'
    )
    route = bodies.TopicRouteData.decode(standard)
    assert route == bodies.TopicRouteData.decode(standard.replace(b'"0":', b"0:"))
    assert route.broker_datas[0].master == "127.0.0.1:10911"
    assert route.queue_datas[0].readable
    assert route.queue_datas[0].writable


def test_what_a_broker_answers() -> None:
    cluster = bodies.ClusterInfo.decode(
        b'{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"127.0.0.1:10911"},"brokerName":"broker-a","cluster":"C",'
        b'"enableActingMaster":false}},"clusterAddrTable":{"C":["broker-a"]}}'
    )
    assert cluster.cluster_addr_table == {"C": ("broker-a",)}
    stats = bodies.TopicStatsTable.decode(
        b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"t"}:{"lastUpdateTimestamp":1794795652372,'
        b'"maxOffset":4,"minOffset":0}},"topicPutTps":0.0}'
    )
    assert stats.offset_table[MessageQueue("t", "broker-a", 0)].max_offset == 4
    offsets = bodies.ConsumerOffsets.decode(
        b'{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":1794794553617},"groupTopicMap":{"g":["t"]},'
        b'"offsetTable":{"t@g":{0:0,1:5}},"pullOffsetTable":{"t@g":{0:4}}}'
    )
    assert offsets.offset_table == {"t@g": {0: 0, 1: 5}}
    assert offsets.pull_offset_table == {"t@g": {0: 4}}
    running = bodies.ConsumerRunningInfo.decode(
        b'{"mqPopTable":{},"mqTable":{{"brokerName":"b","queueId":1,"topic":"T"}:{"cachedMsgSizeInMiB":7,"droped":true,'
        b'"locked":true}},"properties":{"PROP_CONSUMEORDERLY":"true"},"statusTable":{"T":{"consumeOKTPS":1.5}},'
        b'"subscriptionSet":[],"userConsumerInfo":{}}'
    )
    queue = running.mq_table[MessageQueue("T", "b", 1)]
    assert (queue.cached_msg_size_in_mib, queue.dropped, queue.locked) == (7, True, True)
    assert running.status_table["T"].consume_ok_tps == 1.5
    groups = bodies.ConsumeStatsList.decode(
        b'{"brokerAddr":"127.0.0.1:10911","consumeStatsList":[{"empty":[]},{"g":[{"consumeTps":0.0,"offsetTable":'
        b'{{"brokerName":"b","queueId":0,"topic":"t"}:{"brokerOffset":4,"consumerOffset":0}}}]}],"totalDiff":4}'
    )
    assert groups.consume_stats_list[1]["g"][0].offset_table[MessageQueue("t", "b", 0)].broker_offset == 4
    assert groups.total_diff == 4


def test_names_that_are_not_plain_camel_case() -> None:
    assert b'"clientID":"me"' in bodies.HeartbeatData(client_id="me").encode()
    assert b'"lockOKMQSet":[]' in bodies.LockBatchResponse().encode()
    assert bodies.BatchAck(bit_set=b"\x05", start_offset=7).encode() == (
        b'{"c":"","t":"","r":"0","so":7,"q":0,"rq":0,"pt":0,"it":0,"b":"BQ=="}'
    )


def test_large_integers_in_quotes_are_read() -> None:
    data = b'{"minOffset":"9223372036854775807","maxOffset":"-5"}'
    assert bodies.TopicOffset.decode(data) == bodies.TopicOffset(min_offset=9223372036854775807, max_offset=-5)
    for wrong in (
        b'"1.5"',
        b'""',
        b'"-"',
        b'"0x5"',
        b'"123456789012345678901234567890"',
        b"9223372036854775808",
        b"true",
        b"1.0",
    ):
        with pytest.raises(BodyError):
            bodies.TopicOffset.decode(b'{"minOffset":%s}' % wrong)


def test_not_a_number_is_a_number() -> None:
    assert bodies.ConsumeStats.decode(b'{"consumeTps":"Infinity"}').consume_tps == float("inf")
    assert bodies.ConsumeStats.decode(b'{"consumeTps":7}').consume_tps == 7.0


@pytest.mark.parametrize("expression", ["*", ""])
def test_subscribing_to_everything(expression: str) -> None:
    assert SubscriptionData.of("t", expression, version=5) == SubscriptionData("t", "*", sub_version=5)


def test_subscribing_to_tags() -> None:
    subscription = SubscriptionData.of("t", " TagA || a||  ", version=5)
    assert subscription.tags_set == {"TagA", "a"}
    assert subscription.code_set == {2598919, 97}
    assert subscription.sub_string == " TagA || a||  "
    with pytest.raises(BodyError, match="no tag"):
        SubscriptionData.of("t", " || ", version=5)


def test_subscribing_by_sql() -> None:
    subscription = SubscriptionData.of("t", "a > 5", ExpressionType.SQL92, version=5)
    assert (subscription.expression_type, subscription.sub_string) == ("SQL92", "a > 5")
    assert subscription.tags_set == frozenset()
    with pytest.raises(BodyError, match="SQL92"):
        SubscriptionData.of("t", " ", ExpressionType.SQL92, version=5)


def test_sets_are_written_in_order() -> None:
    tags = frozenset(map(str, range(50)))
    first = SubscriptionData("t", tags_set=tags).encode()
    assert first == SubscriptionData("t", tags_set=frozenset(sorted(tags, reverse=True))).encode()


def test_a_field_of_a_type_that_no_body_has_is_a_mistake_of_ours() -> None:
    @dataclasses.dataclass(frozen=True)
    class Strange(Body):
        what: set[int] = dataclasses.field(default_factory=set)

    with pytest.raises(TypeError):
        Strange().encode()
