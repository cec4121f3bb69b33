"""What the commands show, from what brokers say."""

import pytest

from rocketfleet.cli.commands.cluster import broker_rows
from rocketfleet.cli.rows import group_rows, topic_rows
from rocketfleet.cli.rows.group_rows import version_name
from rocketfleet.cli.rows.lag_rows import LagRow
from rocketfleet.wire.bodies import (
    BrokerData,
    ClientConnection,
    ClusterInfo,
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

# -- topics -----------------------------------------------------------------------------------------------------------


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


# -- groups -----------------------------------------------------------------------------------------------------------


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
    member = ClientConnection("me@1", "10.0.0.1:5", "JAVA", 473)
    rows = group_rows.member_rows({name: ConsumerConnection((member,)) for name in ("broker-a", "broker-b")})
    assert rows == [{"client_id": "me@1", "address": "10.0.0.1:5", "language": "JAVA", "version": "V5_3_0"}]


QUEUE = MessageQueue("t", "broker-a", 0)


def test_the_lag_of_a_group_is_not_the_brokers_own() -> None:
    there = LagRow(
        topic="t", broker="broker-a", queue=0, owner=["me"], committed=4, max_offset=10, lag=3, age_seconds=1.0
    )
    (row,) = group_rows.queue_rows([there], {QUEUE: OffsetWrapper(9, 4, last_timestamp=5)})
    assert (row["broker_offset"], row["consumer_offset"], row["lag"]) == (10, 4, 3)
    assert (row["member"], row["consumed_up_to"]) == (["me"], 5)


def test_no_offset_is_not_an_offset_of_0() -> None:
    there = LagRow(
        topic="t", broker="broker-a", queue=0, owner=[], committed=None, max_offset=10, lag=None, age_seconds=None
    )
    (row,) = group_rows.queue_rows([there], {QUEUE: OffsetWrapper(10, 0)})
    assert (row["consumer_offset"], row["lag"], row["consumed_up_to"]) == (None, None, 0)
    (row,) = group_rows.queue_rows([there], {})
    assert row["consumed_up_to"] == 0


# -- brokers ----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("number", "name"), [(317, "V4_5_2"), (401, "V4_9_4"), (513, "V5_5_0"), (512, "V5_5_0_SNAPSHOT"), (7, "7")]
)
def test_a_clients_version_has_a_name(number: int, name: str) -> None:
    assert version_name(number) == name
