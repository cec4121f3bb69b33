"""Message ids have Java's layout, so Java can read ours and we can read Java's."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.wire.strategies import hosts, int64

from rocketfleet.wire.errors import MessageError
from rocketfleet.wire.message.message_id import (
    OffsetId,
    UniqueIds,
    decode_offset_id,
    decode_unique_id,
    encode_offset_id,
    host_bytes,
    host_text,
    unique_id_time,
)

LOCALHOST = bytes([127, 0, 0, 1])


def at(year: int, month: int, day: int, hour: int = 0) -> float:
    return time.mktime((year, month, day, hour, 0, 0, 0, 0, -1))


@given(st.ip_addresses(), st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.integers(1, 4_000_000_000))
def test_a_unique_id_says_what_went_in(address: object, process_id: int, salt: int, now: int) -> None:
    packed: bytes = address.packed  # type: ignore[attr-defined]  # Hypothesis types the strategy as either class
    unique_id = UniqueIds(packed, process_id, salt, clock=lambda: float(now)).next()
    read = decode_unique_id(unique_id)
    assert (read.address, read.process_id, read.salt) == (str(address), process_id & 0xFFFF, salt & 0xFFFFFFFF)
    assert read.counter == 0
    assert len(unique_id) == 2 * len(packed) + 24
    assert unique_id == unique_id.upper()
    assert unique_id_time(unique_id, now) == now


def test_ids_of_one_maker_differ() -> None:
    ids = UniqueIds(LOCALHOST, 1, 2, clock=lambda: 1_700_000_000.0)
    assert len({ids.next() for _ in range(0x10000)}) == 0x10000


def test_the_month_turns() -> None:
    now = [at(2024, 1, 31, 23)]
    ids = UniqueIds(LOCALHOST, 1, 2, clock=lambda: now[0])
    assert decode_unique_id(ids.next()).milliseconds == (30 * 24 + 23) * 3600_000  # more than an int32 holds
    now[0] = at(2024, 2, 1)
    assert decode_unique_id(ids.next()).milliseconds == 0
    now[0] = at(2024, 1, 31, 23)  # a clock that is set back
    assert decode_unique_id(ids.next()).milliseconds == (30 * 24 + 23) * 3600_000


def test_the_time_of_an_id_from_last_month() -> None:
    made = at(2023, 12, 31, 23)
    unique_id = UniqueIds(LOCALHOST, 1, 2, clock=lambda: made).next()
    assert unique_id_time(unique_id, at(2024, 1, 2)) == made


def test_an_address_has_four_or_sixteen_bytes() -> None:
    with pytest.raises(MessageError):
        UniqueIds(b"12345", 1, 2)


@given(st.ip_addresses().map(str), st.integers(0, 65535), int64)
def test_offset_ids_survive(address: str, port: int, offset: int) -> None:
    assert decode_offset_id(encode_offset_id(address, port, offset)) == OffsetId(address, port, offset)


def test_a_known_offset_id() -> None:
    assert encode_offset_id("127.0.0.1", 10911, 0x2357) == "7F00000100002A9F0000000000002357"


@pytest.mark.parametrize("bad", ["", "7F", "zz" * 16, "7F" * 15, "7F" * 17, "7F " * 16, "é" * 32])
def test_a_broken_id_is_a_message_error(bad: str) -> None:
    with pytest.raises(MessageError):
        decode_offset_id(bad)
    with pytest.raises(MessageError):
        decode_unique_id(bad)


def test_an_impossible_offset_id_is_a_message_error() -> None:
    for address, port, offset in (("localhost", 1, 1), ("1.2.3.4", 1 << 40, 1), ("1.2.3.4", 1, 1 << 70)):
        with pytest.raises(MessageError):
            encode_offset_id(address, port, offset)


@given(hosts)
def test_hosts_survive(host: str) -> None:
    assert host_text[host_bytes(host)] == host


@pytest.mark.parametrize("bad", ["", "1.2.3.4", "1.2.3.4:x", "host:1", "1.2.3.4:99999999999", "[::1]"])
def test_a_broken_host_is_a_message_error(bad: str) -> None:
    with pytest.raises(MessageError):
        host_bytes(bad)


def test_the_cache_of_hosts_is_bounded() -> None:
    for number in range(10_000):
        assert host_text[host_bytes(f"1.2.3.4:{number}")] == f"1.2.3.4:{number}"
    assert len(host_text) <= 4096
