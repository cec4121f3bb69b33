"""A manifest becomes a settings file that the worker itself accepts, whatever the manifest says."""

import math
from typing import Any

import pytest
from tests.unit.controller.model_parts import group_of

from rocketfleet.allocation.strategies import StrategyName
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.control.identity import choose_client_id
from rocketfleet.controller.resources.worker_settings import client_id_of, client_ids_of, settings_of
from rocketfleet.worker.configuration import settings
from rocketfleet.worker.configuration.setting_table import BY_KEY
from rocketfleet.worker.configuration.settings_file import flatten

SETTINGS_OF_A_WORKER = {key.partition(".")[0] for key in BY_KEY}
ALLOCATIONS: list[dict[str, Any]] = [
    {"strategy": "Averagely"},
    {"strategy": "AveragelyByCircle"},
    {"strategy": "ConsistentHash", "virtualNodes": 3},
    {"strategy": "MachineRoom", "rooms": ["a"]},
    {"strategy": "MachineRoomNearby", "memberRooms": ["a", "b"], "separator": "_", "inner": "Balanced"},
    {"strategy": "Balanced"},
    {
        "strategy": "Config",
        "assignments": [{"ordinal": 1, "queues": [{"topic": "orders", "broker": "broker-a", "queueId": 2}]}],
    },
]


def test_every_strategy_is_listed() -> None:
    assert {allocation["strategy"] for allocation in ALLOCATIONS} == {str(name) for name in StrategyName}


@pytest.mark.parametrize("allocation", ALLOCATIONS, ids=lambda allocation: str(allocation["strategy"]))
@pytest.mark.parametrize("ordinal", [0, 1])
def test_the_worker_accepts_the_settings_of_every_strategy(allocation: dict[str, Any], ordinal: int) -> None:
    values = flatten(settings_of(group_of(allocation=allocation), ordinal))
    assert settings.consumer_settings(values).group == "orders"
    settings.strategy(values)


def test_what_the_manifest_says_reaches_the_consumer() -> None:
    group = group_of(
        groupName="shop-orders",
        consumeMode="Orderly",
        consumeFromWhere="Timestamp",
        consumeTimestamp="2026-01-31T08:00:00Z",
        consume={"threads": 3, "queueThresholdMiB": 7, "suspendSeconds": 2.5},
        shutdown={"drainTimeoutSeconds": 12},
    )
    consumer = settings.consumer_settings(flatten(settings_of(group, 0)))
    assert consumer.group == "shop-orders"
    assert consumer.consume_mode is ConsumeMode.ORDERLY
    assert consumer.consume_timestamp == 1769846400.0
    assert consumer.consume_thread_min == consumer.consume_thread_max == 3
    assert consumer.limits.size_mib == 7
    assert consumer.suspend_current_queue_time == 2.5
    assert consumer.drain_timeout == 12


def test_a_worker_that_waits_is_told_so_and_one_that_does_not_gets_no_key_that_an_older_one_would_refuse() -> None:
    waiting = settings_of(group_of(shutdown={"drainTimeoutSeconds": 12, "onTimeout": "Wait"}), 0)
    assert settings.consumer_settings(flatten(waiting)).drain_timeout == math.inf
    proceeding = settings_of(group_of(shutdown={"drainTimeoutSeconds": 12, "onTimeout": "Proceed"}), 0)
    assert proceeding["shutdown"] == {"drainTimeoutSeconds": 12}


def test_only_what_differs_from_the_defaults_is_written_where_the_worker_has_the_same() -> None:
    assert settings_of(group_of(), 0) == {
        "groupName": "orders",
        "subscriptions": [{"topic": "orders"}],
        "allocation": {"strategy": "Balanced"},
        "consume": {"threads": 20},
    }


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"consumeMode": "Orderly", "consume": {"threads": 20, "maxThreads": 64, "batchSize": 2}},
        {"rebalance": {"handover": "Eager", "handoverTimeoutSeconds": 5}, "shutdown": {"onTimeout": "Wait"}},
        {"messageModel": "Broadcasting", "consumeFromWhere": "FirstOffset", "initialOffset": "Native"},
    ],
)
def test_what_is_left_out_is_the_worker_s_default_too(spec: dict[str, Any]) -> None:
    """A default that changes on one side alone would make members differ from their manifest."""
    group = group_of(**spec)
    everything = group.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    told = {key: value for key, value in everything.items() if key in SETTINGS_OF_A_WORKER}
    whole = settings.consumer_settings(flatten({"groupName": "orders", **told}))
    assert settings.consumer_settings(flatten(settings_of(group, 0))) == whole


def test_the_life_of_locks_reaches_the_consumer_and_the_brokers_own_is_left_out() -> None:
    short = settings.consumer_settings(flatten(settings_of(group_of(rebalance={"lockMaxLiveSeconds": 15}), 0)))
    assert (short.lock_lives, short.heartbeat_interval) == (15.0, 15.0)
    usual = settings_of(group_of(rebalance={"lockMaxLiveSeconds": 60}), 0)
    assert "rebalance" not in usual


def test_config_gives_each_ordinal_its_own_queues_and_others_none() -> None:
    group = group_of(allocation=ALLOCATIONS[-1])
    assert settings_of(group, 0)["allocation"] == {"strategy": "Config", "queues": []}
    assert settings_of(group, 1)["allocation"]["queues"] == [{"topic": "orders", "broker": "broker-a", "queueId": 2}]


def test_the_client_id_is_the_one_that_the_worker_chooses() -> None:
    environment = {"POD_NAME": "orders-0", "POD_UID": "6f1c"}
    assert client_id_of(group_of(), 0, "orders-0", "6f1c") == choose_client_id(None, environment)


def test_rooms_are_given_out_in_turn_and_begin_the_client_id() -> None:
    group = group_of(allocation={"strategy": "MachineRoomNearby", "memberRooms": ["a", "b"]})
    assert [client_id_of(group, ordinal, f"orders-{ordinal}", "u") for ordinal in range(3)] == [
        "a@orders-0@u",
        "b@orders-1@u",
        "a@orders-2@u",
    ]


def test_several_processes_are_several_members() -> None:
    group = group_of(worker={"handler": "app:handle", "processes": 2})
    assert client_ids_of(group, 0, "orders-0", "u") == ("orders-0@u#0", "orders-0@u#1")
    assert client_ids_of(group_of(), 0, "orders-0", "u") == ("orders-0@u",)
