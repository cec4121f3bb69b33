"""Addresses, back-off and configuration: the small pure things that everything else is told by."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import UNTIMED

from rocketfleet.base.backoff import BackoffPolicy, Failures, after_failure, delay
from rocketfleet.client.config import ClientConfig, new_client_id
from rocketfleet.client.transport.address import Address, parse, parse_list
from rocketfleet.consumer.handover.roster import GRACE_SECONDS
from rocketfleet.wire.acl import Credentials


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9876", "127.0.0.1", 9876),
        (" broker-0.broker.default.svc:10911 ", "broker-0.broker.default.svc", 10911),
        ("[::1]:9876", "::1", 9876),
        ("fe80::1:10911", "fe80::1", 10911),
    ],
)
def test_addresses(text: str, host: str, port: int) -> None:
    assert parse(text) == Address(host, port)


@pytest.mark.parametrize("text", ["", ":", "host", "host:", ":9876", "host:0", "host:65536", "host:-1", "host:1x"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        parse(text)


@pytest.mark.parametrize("text", ["http://host:80", "[::1:80", "::1]:80", "host/path:80", "host:１"])
def test_what_only_looks_like_an_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        parse(text)


@UNTIMED
@given(st.ip_addresses() | st.just("name.server"), st.integers(1, 65535))
def test_an_address_written_is_read_back(host: object, port: int) -> None:
    address = Address(str(host), port)
    assert parse(str(address)) == address


def test_lists_of_addresses() -> None:
    assert parse_list("a:1;b:2, c:3\n d:4;;a:1") == ("a:1", "b:2", "c:3", "d:4")
    assert parse_list("[::1]:9876;::2:9876") == ("[::1]:9876", "[::2]:9876")
    with pytest.raises(ValueError, match="empty"):
        parse_list(" ; ")


@UNTIMED
@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True), st.floats(0.001, 10), st.floats(1, 100))
def test_a_delay_grows_within_its_bounds(failures: int, draw: float, first: float, factor: float) -> None:
    policy = BackoffPolicy(first, first * factor)
    wait = delay(policy, failures, lambda: draw)
    assert policy.first / 2 <= wait <= policy.limit
    assert delay(policy, failures + 1, lambda: draw) >= wait


def test_failures_in_a_row() -> None:
    policy = BackoffPolicy(first=1.0, limit=4.0)
    state: Failures | None = None
    untils = []
    for attempt in range(5):
        state = after_failure(policy, state, f"reason {attempt}", now=100.0, random=lambda: 1.0)
        untils.append(state.until)
    assert untils == [101.0, 102.0, 104.0, 104.0, 104.0]
    assert state == Failures(5, "reason 4", 104.0)
    with pytest.raises(ValueError, match="back-off"):
        BackoffPolicy(first=5, limit=1)
    with pytest.raises(ValueError, match="growth"):
        BackoffPolicy(growth=1.0)


@UNTIMED
@given(st.floats(0, 1.5), st.lists(st.floats(0, 1, exclude_max=True), min_size=40, max_size=40))
def test_whoever_was_away_for_less_than_the_others_wait_is_back_in_time(away: float, draws: list[float]) -> None:
    policy, left, now = ClientConfig("a:1").backoff, iter(draws), 0.0
    state: Failures | None = None
    while now < away:
        state = after_failure(policy, state, "Connection refused", now, random=lambda: next(left))
        now = state.until
    assert away <= now <= GRACE_SECONDS - 0.2, "and there is time for a heartbeat"


def test_configuration() -> None:
    config = ClientConfig("b:2;a:1")
    assert config.name_servers == ("b:2", "a:1")
    assert ClientConfig(("a:1", "b:2;c:3")).name_servers == ("a:1", "b:2", "c:3")
    assert ClientConfig("a:1", client_id="mine").client_id == "mine"
    made_up = replace(ClientConfig("a:1"), timeout=1.0)
    assert [one.client_id_made_up for one in (made_up, ClientConfig("a:1", instance_name="b"))] == [True, False]
    assert not ClientConfig("a:1", client_id="mine").client_id_made_up
    with pytest.raises(ValueError, match="timeout must be more than 0 seconds"):
        ClientConfig("a:1", timeout=0)
    with pytest.raises(ValueError, match="is not an address"):
        ClientConfig("a")


def test_client_ids_are_unique_and_in_javas_form() -> None:
    ids = {new_client_id() for _ in range(100)}
    assert len(ids) == 100
    host, instance = ids.pop().split("@")
    assert host
    assert "#" in instance
    assert new_client_id("worker-3", "unit").split("@")[1:] == ["worker-3", "unit"]


def test_no_secret_in_a_repr() -> None:
    config = ClientConfig("a:1", credentials=Credentials("the-access-key", "the-secret-key", "the-token"))
    assert "the-secret-key" not in repr(config)
    assert "the-token" not in repr(config)
