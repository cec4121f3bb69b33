"""What the commands show, from what brokers say."""

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.cli import group_rows, topic_rows
from rocketfleet.cli.cluster import broker_rows
from rocketfleet.wire.bodies import (
    BrokerData,
    ClusterInfo,
    Connection,
    ConsumerConnection,
    OffsetWrapper,
    QueueData,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicOffset,
    TopicRouteData,
    TopicStatsTable,
)
from rocketfleet.wire.queue import MessageQueue

# -- topics


def test_a_topic_is_one_row_over_all_brokers() -> None:
    by_broker = {
        "broker-a": {"orders": TopicConfig("orders", 4, 4), "TBW102": TopicConfig("TBW102", 8, 8)},
        "broker-b": {"orders": TopicConfig("orders", 4, 2, perm=4, attributes={"message.type": "FIFO"})},
    }
    assert topic_rows.list_rows(by_broker, {"TBW102"}) == [
        {
            "topic": "TBW102",
            "kind": "system",
            "type": "NORMAL",
            "brokers": 1,
            "read_queues": 8,
            "write_queues": 8,
            "permission": "RW",
        },
        {
            "topic": "orders",
            "kind": "topic",
            "type": "NORMAL",
            "brokers": 2,
            "read_queues": 8,
            "write_queues": 6,
            "permission": "mixed",
        },
    ]


def test_whose_a_topic_is() -> None:
    reserved = {"DefaultCluster"}
    kinds = [
        topic_rows.kind_of(name, reserved)
        for name in ("orders", "%RETRY%g", "%DLQ%g", "DefaultCluster", "rmq_sys_REVIVE_LOG_x", "RMQ_SYS_TRACE_TOPIC")
    ]
    assert kinds == ["topic", "retry", "dead letter", "system", "system", "system"]


def test_permissions() -> None:
    assert [topic_rows.perm_text(perm) for perm in (6, 4, 2, 0, 7)] == ["RW", "R-", "-W", "--", "RW"]


def test_settings_are_the_same_if_what_was_asked_for_is() -> None:
    there = TopicConfig("t", 8, 8, attributes={"message.type": "FIFO", "other": "x"})
    assert topic_rows.same_settings(there, TopicConfig("t", 8, 8))
    assert topic_rows.same_settings(there, TopicConfig("t", 8, 8, attributes={"message.type": "FIFO"}))
    assert not topic_rows.same_settings(there, TopicConfig("t", 8, 8, attributes={"message.type": "DELAY"}))
    assert not topic_rows.same_settings(there, TopicConfig("t", 4, 8))
    assert not topic_rows.same_settings(there, TopicConfig("t", 8, 8, order=True))


def test_a_topic_in_words() -> None:
    assert topic_rows.describe(TopicConfig("t", 1, 1)) == "1 queue on each broker"
    full = TopicConfig("t", 4, 8, order=True, attributes={"message.type": "FIFO"})
    assert topic_rows.describe(full) == "8 queues on each broker to write and 4 to read, FIFO, ordered"


def test_queues_in_order_with_what_is_in_them() -> None:
    tables = {
        name: TopicStatsTable({MessageQueue("t", name, i): TopicOffset(2, 10 + i, 1234) for i in (1, 0)})
        for name in ("broker-b", "broker-a")
    }
    rows = topic_rows.queue_rows(tables)
    assert [(row["broker"], row["queue"], row["messages"]) for row in rows] == [
        ("broker-a", 0, 8),
        ("broker-a", 1, 9),
        ("broker-b", 0, 8),
        ("broker-b", 1, 9),
    ]


def test_a_route_names_the_replicas() -> None:
    route = TopicRouteData(
        (QueueData("broker-b", 4, 4, 6), QueueData("broker-a", 4, 2, 4)),
        (BrokerData("c", "broker-a", {1: "a:2", 0: "a:1"}),),
    )
    assert [(row["broker"], row["cluster"], row["addresses"]) for row in topic_rows.route_rows(route)] == [
        ("broker-a", "c", ["0=a:1", "1=a:2"]),
        ("broker-b", "", []),
    ]


# -- groups


def test_groups_of_rocketmq_itself_are_known() -> None:
    assert [group_rows.is_system(name) for name in ("CID_RMQ_SYS_TRANS", "TOOLS_CONSUMER", "billing")] == [
        True,
        True,
        False,
    ]


def test_a_group_is_one_row_over_all_brokers() -> None:
    config = SubscriptionGroupConfig(group_name="billing", retry_max_times=3, consume_message_orderly=True)
    (row,) = group_rows.group_rows({"broker-a": {"billing": config}, "broker-b": {"billing": config}})
    assert (row["group"], row["brokers"], row["orderly"], row["max_retries"]) == ("billing", 2, True, 3)


def test_a_group_in_words() -> None:
    assert group_rows.describe(SubscriptionGroupConfig(group_name="g")) == "concurrent, 16 retries"
    other = SubscriptionGroupConfig(
        group_name="g", consume_message_orderly=True, consume_broadcast_enable=False, consume_enable=False
    )
    assert group_rows.describe(other) == "orderly, 16 retries, no broadcast, disabled"


def test_only_settings_that_were_named_are_compared() -> None:
    there = SubscriptionGroupConfig(group_name="g", retry_max_times=3)
    assert group_rows.same_settings(there, {})
    assert group_rows.same_settings(there, {"retry_max_times": 3})
    assert not group_rows.same_settings(there, {"retry_max_times": 4})


def test_a_member_of_two_brokers_is_one() -> None:
    member = Connection("me@1", "10.0.0.1:5", "JAVA", 473)
    rows = group_rows.member_rows({name: ConsumerConnection((member,)) for name in ("broker-a", "broker-b")})
    assert rows == [{"client_id": "me@1", "address": "10.0.0.1:5", "language": "JAVA", "version": 473}]


def test_two_owners_of_a_queue_are_both_shown() -> None:
    queue, other = MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-a", 1)
    owners = group_rows.owners_of({"b": [queue], "a": [queue, other], "cannot tell": None})
    assert owners == {queue: ["a", "b"], other: ["a"]}


QUEUE = MessageQueue("t", "broker-a", 0)


@given(*[st.integers(0, 50)] * 4)
def test_lag_is_what_is_there_and_not_consumed(told_end: int, consumed: int, oldest: int, newest: int) -> None:
    oldest = min(oldest, newest)
    ends = [TopicStatsTable({QUEUE: TopicOffset(oldest, newest)})]
    (row,) = group_rows.queue_rows({QUEUE: OffsetWrapper(told_end, consumed)}, ends, {})
    end = max(told_end, newest)
    assert row["lag"] == len([offset for offset in range(end) if offset >= consumed and offset >= oldest])
    assert row["broker_offset"] == end


def test_lag_without_the_topics_own_word() -> None:
    (row,) = group_rows.queue_rows({QUEUE: OffsetWrapper(10, 4, last_timestamp=5)}, [], {QUEUE: ["me"]})
    assert (row["lag"], row["member"], row["last_consumed"]) == (6, ["me"], 5)
    assert group_rows.lag_of([row, row]) == 12


# -- brokers


def test_brokers_by_name_and_id_and_unknown_where_one_is_silent() -> None:
    info = ClusterInfo(
        {
            "broker-b": BrokerData("c", "broker-b", {0: "b:1"}),
            "broker-a": BrokerData("c", "broker-a", {1: "a:2", 0: "a:1"}),
        },
        {"c": ("broker-a", "broker-b")},
    )
    facts = {
        "a:1": {
            "brokerVersionDesc": "V5_5_0",
            "putTps": "12.345 1.0 0.5",
            "getTransferredTps": "",
            "commitLogDiskRatio": "0.154",
        },
        "a:2": {"putTps": "nonsense", "commitLogDiskRatio": "-1"},
    }
    first, second, third = broker_rows(info, facts)
    assert first == {
        "cluster": "c",
        "broker": "broker-a",
        "id": 0,
        "role": "master",
        "address": "a:1",
        "version": "5.5.0",
        "in_per_second": 12.35,
        "out_per_second": None,
        "disk_used": "15%",
        "answers": True,
    }
    assert (second["role"], second["version"], second["in_per_second"], second["disk_used"]) == (
        "slave",
        None,
        None,
        None,
    )
    assert (third["broker"], third["answers"]) == ("broker-b", False)
