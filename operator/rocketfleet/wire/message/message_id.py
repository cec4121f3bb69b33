"""The two ids of a message.

The unique id is made by the producer before it sends, so it survives retries and identifies the message for its user:
the producer's address (4 or 16 bytes), process id (2), a number of its own (4), milliseconds since the beginning of the
month, local time (4), and a counter (2), in hexadecimal. Java reads the address and the time back out of it, so the
layout is kept; a month is more than 2^31 milliseconds, so the time is unsigned.

The offset id is made by the broker and says where the message lies: the broker's address (4 or 16 bytes), port (4) and
the commit log offset (8).
"""

import struct
import time
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import count, islice
from typing import Final, NamedTuple

from rocketfleet.wire.errors import MessageError

_OFFSET = struct.Struct(">q")
_PORT = struct.Struct(">i")
_UNIQUE_TAIL = struct.Struct(">HIIH")  # process id, salt, milliseconds in the month, counter


class UniqueId(NamedTuple):
    """What a unique id says."""

    address: str
    process_id: int
    salt: int
    milliseconds: int
    counter: int


class OffsetId(NamedTuple):
    """What an offset id says: where the message lies."""

    address: str
    port: int
    commit_log_offset: int


class UniqueIds:
    """Makes unique ids. One maker a process: the counter and the salt are what keeps two of its ids apart.

    `address` is the producer's IP address, packed (4 or 16 bytes); `clock` gives seconds since the epoch.
    """

    __slots__ = ("_clock", "_counter", "_month_end", "_month_start", "_prefix")

    def __init__(self, address: bytes, process_id: int, salt: int, clock: Callable[[], float] = time.time) -> None:
        if len(address) not in (4, 16):
            raise MessageError(f"an IP address has 4 or 16 bytes, not {len(address)}")
        tail = struct.pack(">HI", process_id & 0xFFFF, salt & 0xFFFFFFFF)
        self._prefix = (address + tail).hex().upper()
        self._clock = clock
        self._counter = count()
        self._month_start = self._month_end = 0

    def next(self) -> str:
        """A new id."""
        return f"{self._moment()}{next(self._counter) & 0xFFFF:04X}"

    def take(self, number: int) -> list[str]:
        """So many new ids at once, of one moment: what a batch needs."""
        moment = self._moment()
        return [f"{moment}{serial & 0xFFFF:04X}" for serial in islice(self._counter, number)]

    def _moment(self) -> str:
        """What the ids of this millisecond begin with."""
        now = int(self._clock() * 1000)
        if not self._month_start <= now < self._month_end:
            self._month_start, self._month_end = _month_of(now)
        return f"{self._prefix}{now - self._month_start & 0xFFFFFFFF:08X}"


def _month_of(milliseconds: int) -> tuple[int, int]:
    """The beginning and the end of the month, local time, in milliseconds."""
    year, month = time.localtime(milliseconds / 1000)[:2]
    starts = [time.mktime((year, number, 1, 0, 0, 0, 0, 0, -1)) for number in (month, month + 1)]
    return int(starts[0]) * 1000, int(starts[1]) * 1000


def decode_unique_id(unique_id: str) -> UniqueId:
    """Take a unique id apart."""
    raw = _unhex(unique_id, 16, 28)
    process_id, salt, milliseconds, counter = _UNIQUE_TAIL.unpack(raw[-12:])
    return UniqueId(str(ip_address(raw[:-12])), process_id, salt, milliseconds, counter)


def unique_id_time(unique_id: str, now: float) -> float:
    """When the id was made, in seconds since the epoch. The id knows the moment of its month, `now` which month."""
    milliseconds = decode_unique_id(unique_id).milliseconds
    now_milliseconds = int(now * 1000)
    start, _ = _month_of(now_milliseconds)
    if start + milliseconds > now_milliseconds:
        start, _ = _month_of(start - 1)
    return (start + milliseconds) / 1000


def encode_offset_id(address: str, port: int, commit_log_offset: int) -> str:
    """The id of the message at this offset of this broker's commit log."""
    try:
        raw = ip_address(address).packed + _PORT.pack(port) + _OFFSET.pack(commit_log_offset)
    except (ValueError, struct.error) as error:
        raise MessageError(f"no offset id for {address}:{port} and offset {commit_log_offset}: {error}") from error
    return raw.hex().upper()


def decode_offset_id(offset_id: str) -> OffsetId:
    """Take an offset id apart."""
    raw = _unhex(offset_id, 16, 28)
    (port,) = _PORT.unpack_from(raw, len(raw) - 12)
    (offset,) = _OFFSET.unpack_from(raw, len(raw) - 8)
    return OffsetId(str(ip_address(raw[:-12])), port, offset)


def _unhex(text: str, *lengths: int) -> bytes:
    try:
        raw = bytes.fromhex(text)
    except ValueError as error:
        raise MessageError(f"the message id {text!r} is not hexadecimal") from error
    if len(raw) not in lengths or len(text) != 2 * len(raw):
        raise MessageError(f"the message id {text!r} has {len(text)} digits; ids have 32 (IPv4) or 56 (IPv6)")
    return raw


class _HostTexts(dict[bytes, str]):
    """Packed address and port → `1.2.3.4:10911` or `[::1]:10911`.

    A consumer sees a handful of hosts millions of times, and looking one up in a dict is the cheapest call there is.
    The bound keeps a peer that invents hosts from filling the memory.
    """

    def __missing__(self, raw: bytes) -> str:
        if len(self) >= 4096:
            self.clear()
        (port,) = _PORT.unpack_from(raw, len(raw) - 4)
        address = str(IPv4Address(raw[:4])) if len(raw) == 8 else f"[{IPv6Address(raw[:16])}]"
        self[raw] = text = f"{address}:{port}"
        return text


host_text: Final = _HostTexts()


def host_bytes(host: str) -> bytes:
    """The packed form of `1.2.3.4:10911` or `[::1]:10911`."""
    address, _, port = host.rpartition(":")
    try:
        return ip_address(address.removeprefix("[").removesuffix("]")).packed + _PORT.pack(int(port))
    except (ValueError, struct.error) as error:
        raise MessageError(f"{host!r} is not an IP address and a port") from error
