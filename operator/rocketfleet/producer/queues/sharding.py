"""Ordered sends: the same key always to the same queue, and to the same one a Java producer would choose.

Order in RocketMQ is order within a queue, so everything that must stay in order has to meet there. Java's
SelectMessageQueueByHash takes `hashCode() % queues` and drops the sign. Python's own `hash` of a string differs from
process to process, so Java's is computed here. Both sides must list the queues alike: by broker name, then queue id.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

ShardingKey = str | int
Selector = Callable[[Sequence[MessageQueue], Message, ShardingKey | None], MessageQueue]
"""An own choice of queue: (writable queues, message, sharding key) → one of the queues."""


@lru_cache(maxsize=4096)
def java_hash(key: ShardingKey) -> int:
    """`hashCode()` of a Java String, or of an Integer (a Long, if the number does not fit)."""
    if isinstance(key, str):
        value = 0
        units = key.encode("utf-16-be", "surrogatepass")  # Java hashes UTF-16 code units, not characters
        for high, low in zip(units[::2], units[1::2], strict=True):
            value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    elif -(1 << 31) <= key < 1 << 31:
        value = key & 0xFFFFFFFF
    else:
        bits = key & 0xFFFFFFFFFFFFFFFF
        value = (bits ^ bits >> 32) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def by_hash(queues: Sequence[MessageQueue], key: ShardingKey) -> MessageQueue:
    """The queue that SelectMessageQueueByHash picks: `abs` of a remainder is the remainder of `abs`."""
    return queues[abs(java_hash(key)) % len(queues)]
