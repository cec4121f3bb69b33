"""From a settings file to what the consumer takes."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from rocketfleet.allocation.request import AllocationRequest
from rocketfleet.base.settings_error import SettingsError
from rocketfleet.consumer.delivery.flow import QueueLimits, TopicLimits
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings, Handover, InitialOffset
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import ConsumeFromWhere, MessageModel
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker.configuration import settings, settings_file
from rocketfleet.worker.configuration.setting_table import BY_KEY

LEAST: dict[str, Any] = {"groupName": "orders", "subscriptions": [{"topic": "t"}]}

FULL: dict[str, Any] = {
    "groupName": "orders",
    "subscriptions": [{"topic": "a"}, {"topic": "b", "expression": "x||y"}],
    "messageModel": "Clustering",
    "consumeMode": "Orderly",
    "consumeFromWhere": "Timestamp",
    "consumeTimestamp": "1970-01-01T00:01:00Z",
    "initialOffset": "Native",
    "allocation": {
        "strategy": "ConsistentHash",
        "virtualNodes": 3,
        "rooms": ["r"],
        "separator": "-",
        "inner": "Balanced",
        "queues": [{"topic": "a", "broker": "b", "queueId": 1}],
    },
    "consume": {
        "threads": 4,
        "maxThreads": 8,
        "batchSize": 16,
        "pullBatchSize": 64,
        "pullIntervalSeconds": 0.5,
        "queueThreshold": 10,
        "queueThresholdMiB": 11,
        "topicThreshold": 12,
        "topicThresholdMiB": 13,
        "maxSpan": 14,
        "maxReconsumeTimes": 5,
        "consumeTimeoutSeconds": 60,
        "suspendSeconds": 2,
        "autoCommit": False,
        "persistIntervalSeconds": 1.5,
    },
    "rebalance": {
        "handover": "Eager",
        "handoverTimeoutSeconds": 21,
        "intervalSeconds": 22,
        "lockIntervalSeconds": 23,
        "lockMaxLiveSeconds": 26,
        "heartbeatSeconds": 24,
    },
    "shutdown": {"drainTimeoutSeconds": 25, "onTimeout": "Proceed"},
}


def assembled(content: dict[str, Any]) -> ConsumerSettings:
    return settings.consumer_settings(settings_file.flatten(content))


def test_what_is_not_given_has_the_consumers_defaults() -> None:
    assert assembled(LEAST) == ConsumerSettings("orders", (Subscription("t"),))


def test_every_setting_arrives() -> None:
    values = settings_file.flatten(FULL)
    assert values.keys() == BY_KEY.keys(), "FULL must name every setting"
    assert settings.consumer_settings(values) == ConsumerSettings(
        group="orders",
        subscriptions=(Subscription("a"), Subscription("b", "x||y")),
        message_model=MessageModel.CLUSTERING,
        consume_mode=ConsumeMode.ORDERLY,
        consume_from_where=ConsumeFromWhere.TIMESTAMP,
        consume_timestamp=60.0,
        initial_offset=InitialOffset.NATIVE,
        handover=Handover.EAGER,
        handover_timeout=21.0,
        drain_timeout=25.0,
        consume_thread_min=4,
        consume_thread_max=8,
        consume_message_batch_max_size=16,
        consume_timeout=60.0,
        max_reconsume_times=5,
        suspend_current_queue_time=2.0,
        auto_commit=False,
        pull_batch_size=64,
        pull_interval=0.5,
        limits=QueueLimits(10, 11, 14),
        topic_limits=TopicLimits(12, 13),
        heartbeat_interval=24.0,
        persist_interval=1.5,
        rebalance_interval=22.0,
        lock_interval=23.0,
        lock_lives=26.0,
    )
    assert settings.strategy(values).name == "CONSISTENT_HASH"


def test_heartbeats_are_as_frequent_as_locks_are_short_unless_told_otherwise() -> None:
    short = assembled({**LEAST, "rebalance": {"lockMaxLiveSeconds": 12}})
    assert (short.lock_lives, short.heartbeat_interval) == (12.0, 12.0)
    assert assembled({**LEAST, "rebalance": {"lockMaxLiveSeconds": 90}}).heartbeat_interval == 30.0
    with pytest.raises(SettingsError, match="heartbeat_interval is 24 s: it must be at most 12 s"):
        assembled({**LEAST, "rebalance": {"lockMaxLiveSeconds": 12, "heartbeatSeconds": 24}})


def test_waiting_has_no_limit_whatever_the_drain_timeout_is() -> None:
    waiting = assembled({**LEAST, "shutdown": {"drainTimeoutSeconds": 25, "onTimeout": "Wait"}})
    assert waiting.drain_timeout == math.inf


def test_shown_settings_are_a_settings_file() -> None:
    shown = json.loads(json.dumps(settings.as_json(settings_file.flatten(FULL))))
    assert settings_file.flatten(shown) == settings_file.flatten(FULL)


def test_threads_alone_are_as_many_as_there_are() -> None:
    few = assembled({**LEAST, "consume": {"threads": 3}})
    assert (few.consume_thread_min, few.consume_thread_max) == (3, 3)
    more = assembled({**LEAST, "consume": {"maxThreads": 30}})
    assert (more.consume_thread_min, more.consume_thread_max) == (assembled(LEAST).consume_thread_min, 30)


def test_null_is_not_given() -> None:
    assert settings_file.flatten({**LEAST, "consume": None, "rebalance": {"handover": None}}) == settings_file.flatten(
        LEAST
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"subscriptions": [{"topic": "t"}]}, "--group"),
        ({"groupName": "g"}, "--topic"),
        ({"groupName": "g", "subscriptions": []}, "--topic"),
        ({**LEAST, "replicas": 3}, "no setting 'replicas'"),
        ({**LEAST, "consume": {"thread": 3}}, "no setting 'consume.thread'"),
        ({**LEAST, "consume": 5}, "consume must be an object"),
        ({**LEAST, "consumeFromWhere": "Timestamp"}, "consume_timestamp"),
        ({**LEAST, "groupName": "not allowed"}, "not allowed"),
        ({**LEAST, "consume": {"batchSize": 0}}, "consume_message_batch_max_size"),
    ],
)
def test_what_is_wrong_is_one_sentence(content: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        assembled(content)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("allocation", "said"),
    [
        ({"strategy": "Config"}, "--queue"),
        ({"strategy": "MachineRoom"}, "--room"),
        ({"strategy": "ConsistentHash", "virtualNodes": -1}, "virtualNodeCnt"),
        ({"strategy": "MachineRoomNearby", "inner": "MachineRoomNearby"}, "another strategy"),
        ({"strategy": "MachineRoomNearby", "inner": {"strategy": "Config"}}, "--queue"),
        ({"strategy": "MachineRoomNearby", "inner": {"nodes": 5}}, "no setting 'allocation.nodes'"),
    ],
)
def test_a_strategy_without_what_it_needs(allocation: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        settings.strategy(settings_file.flatten({"allocation": allocation}))


def share(
    allocation: dict[str, Any], member: str, members: list[str], queues: list[MessageQueue]
) -> list[MessageQueue]:
    strategy = settings.strategy(settings_file.flatten({"allocation": allocation}))
    return strategy.allocate(AllocationRequest(group="g", member=member, members=members, queues=queues))


def test_config_gives_the_queues_listed() -> None:
    queue = MessageQueue("t", "b", 1)
    listed = {"strategy": "Config", "queues": [{"topic": "t", "broker": "b", "queueId": 1}]}
    assert share(listed, "m", ["m"], [queue, MessageQueue("t", "b", 2)]) == [queue]


def test_rooms_are_read_from_names() -> None:
    queues = [MessageQueue("t", "east@b", 0), MessageQueue("t", "west@b", 0)]
    assert share({"strategy": "MachineRoom", "rooms": ["west"]}, "m", ["m"], queues) == [queues[1]]
    near: dict[str, Any] = {"strategy": "MachineRoomNearby"}
    assert share(near, "east@1", ["east@1", "west@1"], queues) == [queues[0]]
    dashes = [MessageQueue("t", "east-b", 0), MessageQueue("t", "west-b", 0)]
    near = {
        "strategy": "MachineRoomNearby",
        "separator": "-",
        "inner": {"strategy": "ConsistentHash", "virtualNodes": 2},
    }
    assert share(near, "west-1", ["east-1", "west-1"], dashes) == [dashes[1]]


NEWER = {
    **LEAST,
    "subscriptions": [{"topic": "orders", "newFilter": "x"}],
    "consume": {"batchSize": 4, "newLimit": 7},
    "newSection": {"a": 1},
}


@pytest.mark.parametrize("version_in_file", [True, False])
def test_what_a_newer_operator_adds_is_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, version_in_file: bool
) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({**NEWER, **({"version": 2} if version_in_file else {})}))
    values = settings_file.read(path, by_operator=not version_in_file)
    assert settings.consumer_settings(values).consume_message_batch_max_size == 4
    (record,) = caplog.records
    assert "consume.newLimit, newSection, subscriptions.newFilter" in record.getMessage()


def test_what_is_known_has_to_make_sense_whoever_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({**LEAST, "allocation": {"strategy": "OfTomorrow"}}))
    with pytest.raises(SettingsError, match="choose one of"):
        settings_file.read(path, by_operator=True)


def test_a_slip_of_the_pen_in_a_file_of_one_s_own_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    slips: list[dict[str, object]] = [
        {"newSection": {}},
        {"consume": {"bachSize": 4}},
        {"subscriptions": [{"topic": "t", "tags": "a"}]},
    ]
    for slip in slips:
        path.write_text(json.dumps({**LEAST, **slip}))
        with pytest.raises(SettingsError, match="there are"):
            settings_file.read(path)


def test_a_file_is_read_and_named_in_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(LEAST))
    assert settings_file.read(path)["groupName"] == "orders"
    for content in ("[]", "{", '{"x": 1}', "[" * 100_000):
        path.write_text(content)
        with pytest.raises(SettingsError, match=r"settings\.json"):
            settings_file.read(path)
    with pytest.raises(SettingsError, match="No such file"):
        settings_file.read(tmp_path / "absent.json")
    path.write_text('"' + "x" * (1 << 20) + '"')
    with pytest.raises(SettingsError, match="larger"):
        settings_file.read(path)
