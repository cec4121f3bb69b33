"""Offsets of many queues, as text: `{"orders": {"broker-a": {"0": 12, "1": 7}}}`, topic → broker → queue → offset.

It is what `startingOffsets` and `endingOffsets` take and what a streaming query keeps in its checkpoint. Spark decides
by comparing this text whether there is anything new, so it is always written in the same order.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rocketfleet.spark.source.errors import SourceError
from rocketfleet.wire.queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Mapping

Offsets = dict[MessageQueue, int]

LATEST: Final = -1
EARLIEST: Final = -2
_EXAMPLE: Final = '{"orders": {"broker-a": {"0": 12, "1": 7}}}'


def nested(offsets: Mapping[MessageQueue, int]) -> dict[str, dict[str, dict[str, int]]]:
    """Topic → broker → queue → offset, in order."""
    table: dict[str, dict[str, dict[str, int]]] = {}
    for queue in sorted(offsets):
        table.setdefault(queue.topic, {}).setdefault(queue.broker, {})[str(queue.queue_id)] = offsets[queue]
    return table


def flat(table: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Offsets:
    """The way back, of what `nested` made."""
    return {
        MessageQueue(topic, broker, int(queue_id)): offset
        for topic, brokers in table.items()
        for broker, queues in brokers.items()
        for queue_id, offset in queues.items()
    }


def parse(text: str, option: str) -> Offsets:
    """What a user wrote. -1 stands for the end of a queue and -2 for its beginning."""
    try:
        table = json.loads(text)
    except ValueError as error:
        raise SourceError(
            f"{option} is neither a keyword nor JSON ({error}): write earliest, latest, or offsets as {_EXAMPLE}"
        ) from None
    offsets: Offsets = {}
    for topic, brokers in _entries(table, option, "the topics"):
        for broker, queues in _entries(brokers, option, f"the brokers of {topic}"):
            for queue_id, offset in _entries(queues, option, f"the queues of {topic}@{broker}"):
                if not (queue_id.isascii() and queue_id.isdigit()):
                    raise SourceError(f"{option} has a queue {queue_id!r} in {topic}@{broker}: queues are numbers")
                if not isinstance(offset, int) or isinstance(offset, bool) or offset < EARLIEST:
                    raise SourceError(
                        f"{option} has {json.dumps(offset)} for {topic}@{broker}/{queue_id}: give an offset, "
                        f"{LATEST} for the end or {EARLIEST} for the beginning"
                    )
                offsets[MessageQueue(topic, broker, int(queue_id))] = offset
    if not offsets:
        raise SourceError(f"{option} names no queue: write earliest, latest, or offsets as {_EXAMPLE}")
    return offsets


def _entries(value: Any, option: str, what: str) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise SourceError(f"{option} should have an object for {what}, as in {_EXAMPLE}")
    return list(value.items())
