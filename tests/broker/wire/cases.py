"""Cases for the oracle: random, but the same in every run."""

import dataclasses
import random
import types
import typing
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from rocketfleet.wire.message import sysflag
from rocketfleet.wire.message.compression import Compression
from rocketfleet.wire.queue import MessageQueue

LETTERS = "abcXYZ019-_%~ /\"'\\{}:,\t\n<é中文ｚ😀𝄞\u2028"


def text(chance: random.Random, longest: int = 12, shortest: int = 0) -> str:
    return "".join(chance.choices(LETTERS, k=chance.randint(shortest, longest)))


def word(chance: random.Random, longest: int = 12) -> str:
    """Text that is not blank: Java drops or refuses what is."""
    return "x" + text(chance, longest - 1)


def integer(chance: random.Random, bits: int) -> int:
    """An integer of so many bits, often an extreme one."""
    top = 1 << (bits - 1)
    return chance.choice([0, 1, -1, top - 1, -top, chance.randrange(-top, top), chance.randrange(0, 1000)])


def properties(chance: random.Random) -> dict[str, str]:
    held = {word(chance): word(chance, 40) for _ in range(chance.randint(0, 6))}
    for name in ("TAGS", "KEYS", "UNIQ_KEY"):
        if chance.random() < 0.5:
            held[name] = word(chance)
    return held


def host(chance: random.Random, version: int) -> str:
    port = chance.randint(0, 65535)
    if version == 4:
        return f"{IPv4Address(chance.getrandbits(32))}:{port}"
    return f"[{IPv6Address(0x20010DB8 << 96 | chance.getrandbits(96))}]:{port}"


def body(chance: random.Random) -> bytes:
    size = chance.choice([0, 1, 10, 500, 5000, 200_000])
    return chance.choice([chance.randbytes(size), b"all work and no play " * (size // 20)])


def command(chance: random.Random, form: int) -> dict[str, Any]:
    bits = 16 if form else 32
    return {
        "code": integer(chance, bits),
        "fields": {word(chance): word(chance, 60) for _ in range(chance.randint(0, 8))},
        "body": chance.randbytes(chance.choice([0, 1, 100])),
        "opaque": integer(chance, 32),
        "flag": chance.randint(0, 3),
        "remark": chance.choice([None, word(chance, 60)]),
        "language": chance.randint(0, 13),
        "version": integer(chance, bits),
        "form": form,
    }


def stored(chance: random.Random, *, long_topics: bool) -> dict[str, Any]:
    born, store = chance.choice([4, 6]), chance.choice([4, 6])
    flag = chance.choice([0, 0, sysflag.COMPRESSED, *(kind.flag for kind in Compression)])
    flag |= chance.choice([0, sysflag.MULTI_TAGS]) | chance.choice([0, 4, 8, 12])
    flag |= (sysflag.BORN_HOST_V6 if born == 6 else 0) | (sysflag.STORE_HOST_V6 if store == 6 else 0)
    topic = word(chance, 20)
    if long_topics and chance.random() < 0.3:
        topic += "long-" * chance.randint(25, 60)
    return {
        "topic": topic,
        "body": body(chance),
        "properties": properties(chance),
        "queue_id": integer(chance, 32),
        "queue_offset": integer(chance, 64),
        "commit_log_offset": integer(chance, 64),
        "flag": integer(chance, 32),
        "sys_flag": flag,
        "born_timestamp": integer(chance, 64),
        "born_host": host(chance, born),
        "store_timestamp": integer(chance, 64),
        "store_host": host(chance, store),
        "reconsume_times": integer(chance, 32),
        "prepared_transaction_offset": integer(chance, 64),
    }


# -- bodies -----------------------------------------------------------------------------------------------------------

CHOICES = {  # fields whose type in Java is an enum, or that Java checks
    "language": ["JAVA", "PYTHON", "GO"],
    "consume_type": ["CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP"],
    "message_model": ["CLUSTERING", "BROADCASTING"],
    "consume_from_where": ["CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"],
    "mode": ["PULL", "POP"],
    "type": ["CUSTOMIZED", "EXPONENTIAL"],
    "consume_result": ["CR_SUCCESS", "CR_LATER", "CR_THROW_EXCEPTION"],
    "topic_filter_type": ["SINGLE_TAG", "MULTI_TAG"],
}


def instance(cls: Any, chance: random.Random) -> Any:
    """A body with something in every field."""
    hints = typing.get_type_hints(cls)
    values = {}
    for member in dataclasses.fields(cls):
        if member.name in CHOICES:
            values[member.name] = chance.choice(CHOICES[member.name])
        else:
            values[member.name] = value_of(hints[member.name], chance)
    return cls(**values)


def value_of(hint: Any, chance: random.Random) -> Any:
    simple: dict[Any, Any] = {
        str: lambda: word(chance),
        int: lambda: chance.randrange(0, 1 << 31),
        float: lambda: chance.randrange(0, 1000) / 8,
        bool: lambda: chance.random() < 0.5,
        bytes: lambda: chance.randbytes(3) + b"\x01",
        MessageQueue: lambda: MessageQueue(word(chance), word(chance), chance.randrange(0, 1 << 31)),
    }
    if hint in simple:
        return simple[hint]()
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return value_of(arguments[0], chance)
    count = chance.randint(1, 3)
    if origin in (tuple, frozenset):
        return origin(value_of(arguments[0], chance) for _ in range(count))
    if origin is dict:
        return {value_of(arguments[0], chance): value_of(arguments[1], chance) for _ in range(count)}
    return instance(hint, chance)


def normal(value: Any) -> Any:
    """The same for two bodies that differ only in the order of a list, which in Java is often a set."""
    if dataclasses.is_dataclass(value):
        return {member.name: normal(getattr(value, member.name)) for member in dataclasses.fields(value)}
    if isinstance(value, MessageQueue) or not isinstance(value, tuple | frozenset | dict):
        return value
    if isinstance(value, dict):
        return sorted(((key, normal(item)) for key, item in value.items()), key=repr)
    return sorted(map(normal, value), key=repr)
