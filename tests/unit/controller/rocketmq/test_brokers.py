"""Clients are shared by all groups of a connection, and closed by the last that lets go; settings are merged."""

import dataclasses
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.controller.stage import group_of

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.controller.planning.preparation import preparation_of, wanted_settings
from rocketfleet.controller.rocketmq.brokers import BrokerClients, host_of
from rocketfleet.wire.acl import Credentials
from rocketfleet.wire.bodies import SubscriptionGroupConfig


class StageClient:
    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self.state = "made"

    def start(self) -> None:
        self.state = "started"

    async def close(self) -> None:
        self.state = "closed"


def pool() -> tuple[BrokerClients, list[StageClient]]:
    made: list[StageClient] = []

    def make(config: ClientConfig) -> Client:
        made.append(StageClient(config))
        return cast("Client", made[-1])

    return BrokerClients(make), made


def named(name: str) -> Any:
    group = group_of()
    return group.model_copy(update={"metadata": group.metadata.model_copy(update={"name": name})})


async def test_groups_share_a_client_until_the_last_lets_go() -> None:
    brokers, made = pool()
    for name in ("a", "b", "a"):
        await brokers.of(named(name), ClientConfig("127.0.0.1:9876"))
    assert [client.state for client in made] == ["started"]
    await brokers.forget(("default", "a"))
    assert made[0].state == "started"
    await brokers.forget(("default", "b"))
    assert made[0].state == "closed"
    await brokers.forget(("default", "b"))


async def test_a_rotated_secret_is_another_connection_and_the_old_one_is_closed() -> None:
    brokers, made = pool()
    for secret in ("one", "two"):
        await brokers.of(named("a"), ClientConfig("127.0.0.1:9876", credentials=Credentials("ak", secret)))
    assert [client.state for client in made] == ["closed", "started"]
    await brokers.close()
    assert [client.state for client in made] == ["closed", "closed"]


@pytest.mark.parametrize(
    ("address", "host"), [("10.0.0.7:43210", "10.0.0.7"), ("/10.0.0.7:1", "10.0.0.7"), ("[::1]:80", "::1")]
)
def test_an_address_has_a_host(address: str, host: str) -> None:
    assert host_of(address) == host


@given(
    st.integers(-1, 100),
    st.sampled_from(["Concurrent", "Orderly"]),
    st.sampled_from(["Clustering", "Broadcasting"]),
    st.builds(
        SubscriptionGroupConfig,
        group_name=st.just("orders"),
        consume_enable=st.booleans(),
        consume_broadcast_enable=st.booleans(),
        retry_queue_nums=st.integers(1, 8),
        retry_max_times=st.integers(0, 20),
        which_broker_when_consume_slowly=st.integers(0, 3),
    ),
)
def test_only_what_the_manifest_says_is_changed(
    retries: int, mode: str, model: str, there: SubscriptionGroupConfig
) -> None:
    group = group_of(consumeMode=mode, messageModel=model, consume={"maxReconsumeTimes": retries})
    wanted = wanted_settings(group, there)
    assert wanted.retry_max_times == (16 if retries < 0 else retries)
    assert wanted.consume_message_orderly is (mode == "Orderly")
    assert wanted.consume_broadcast_enable is (there.consume_broadcast_enable or model == "Broadcasting")
    ours = ("retry_max_times", "consume_message_orderly", "consume_broadcast_enable")
    kept = {name: getattr(there, name) for name in ours}
    assert dataclasses.replace(wanted, **kept) == there
    assert wanted_settings(group, wanted) == wanted


def test_what_is_prepared_goes_by_what_is_written_and_nothing_else() -> None:
    same = preparation_of(group_of(2))
    assert preparation_of(group_of(7, suspend=True, consume={"threads": 3})) == same
    others: list[dict[str, Any]] = [
        {"consumeFromWhere": "FirstOffset"},
        {"consumeMode": "Orderly"},
        {"initialOffset": "Native"},
        {"consume": {"maxReconsumeTimes": 3}},
        {"subscriptions": [{"topic": "orders"}, {"topic": "refunds"}]},
        {"cluster": {"nameServers": ["elsewhere:9876"]}},
    ]
    assert len({same, *(preparation_of(group_of(2, **other)) for other in others)}) == len(others) + 1
