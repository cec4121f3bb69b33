"""Offsets at one broker: what a group has consumed, where a queue begins and ends, and how to move a group.

What the broker does not guard, its callers must. An update is accepted backwards, beyond the end, and for queues that
do not exist. The maximum of a queue that does not exist is 0. And an update may be answered with success and still be
dropped, while a reset waits to be taken up by the consumer: `update_offset` tells.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal

from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.requests.calls import Caller, ask
from rocketfleet.wire.bodies import ResetOffset
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, request
from rocketfleet.wire.offset_tables import group_offsets

if TYPE_CHECKING:
    from collections.abc import Collection

    from rocketfleet.wire.queue import MessageQueue

_DROPPED: Final = "previously reset"  # what the broker remarks on a success that it does not mean
FIRST_TRIES: Final = 5
NOW: Final = -1
"""As a time to reset to: the end of each queue."""


async def query_offset(
    caller: Caller,
    address: str,
    group: str,
    queue: MessageQueue,
    *,
    zero_if_not_found: bool | None = None,
    timeout: float | None = None,
) -> int | None:
    """The group's offset in a queue, or None if it has none.

    Left to itself the broker answers 0 rather than "none" for a queue whose first message is still in memory;
    `zero_if_not_found=False` makes it tell the truth.
    """
    command = request(
        RequestCode.QUERY_CONSUMER_OFFSET,
        {
            "consumerGroup": group,
            "topic": queue.topic,
            "queueId": queue.queue_id,
            "setZeroIfNotFound": zero_if_not_found,
            "bname": queue.broker,
        },
    )
    answer = await ask(caller, address, command, timeout, accept=(ResponseCode.QUERY_NOT_FOUND,))
    return None if answer.code == ResponseCode.QUERY_NOT_FOUND else answer.number("offset")


async def update_offset(
    caller: Caller, address: str, group: str, queue: MessageQueue, offset: int, *, timeout: float | None = None
) -> bool:
    """Store the group's offset in a queue. False: the broker dropped it, because the group was reset meanwhile."""
    answer = await ask(caller, address, _update(group, queue, offset), timeout)
    return _DROPPED not in (answer.response.remark or "")


async def update_first_offset(
    caller: Caller, address: str, group: str, queue: MessageQueue, offset: int, *, timeout: float | None = None
) -> bool:
    """The same for a queue in which the group may have none yet: it is read back, and stored again if it is not there.

    A 5.5.0 broker makes the table of a group's offsets in a topic without a lock: of two first updates that come at the
    same time one may be lost, and both are answered with success.
    """
    for _ in range(FIRST_TRIES):
        if not await update_offset(caller, address, group, queue, offset, timeout=timeout):
            return False
        if await query_offset(caller, address, group, queue, zero_if_not_found=False, timeout=timeout) is not None:
            return True
    raise RocketMQError(f"{address} does not keep the offset of group {group} in {queue}, {FIRST_TRIES} times over")


def _update(group: str, queue: MessageQueue, offset: int) -> Command:
    return request(
        RequestCode.UPDATE_CONSUMER_OFFSET,
        {
            "consumerGroup": group,
            "topic": queue.topic,
            "queueId": queue.queue_id,
            "commitOffset": offset,
            "bname": queue.broker,
        },
    )


async def max_offset(
    caller: Caller, address: str, queue: MessageQueue, *, committed: bool = True, timeout: float | None = None
) -> int:
    """The offset that the queue's next message will have; with `committed=False`, those not yet readable count too."""
    return (
        await ask(
            caller,
            address,
            request(
                RequestCode.GET_MAX_OFFSET,
                {"topic": queue.topic, "queueId": queue.queue_id, "committed": committed, "bname": queue.broker},
            ),
            timeout,
        )
    ).number("offset")


async def min_offset(caller: Caller, address: str, queue: MessageQueue, *, timeout: float | None = None) -> int:
    """The offset of the queue's oldest message that is still there."""
    return (
        await ask(
            caller,
            address,
            request(
                RequestCode.GET_MIN_OFFSET, {"topic": queue.topic, "queueId": queue.queue_id, "bname": queue.broker}
            ),
            timeout,
        )
    ).number("offset")


async def search_offset(
    caller: Caller,
    address: str,
    queue: MessageQueue,
    timestamp: int,
    *,
    boundary: Literal["LOWER", "UPPER"] = "LOWER",
    timeout: float | None = None,
) -> int:
    """The offset of the first message stored at or after a time (milliseconds since the epoch).

    Of several stored in the same millisecond, LOWER means the first and UPPER the last.
    """
    command = request(
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        {
            "topic": queue.topic,
            "queueId": queue.queue_id,
            "timestamp": timestamp,
            "boundaryType": boundary,
            "bname": queue.broker,
        },
    )
    return (await ask(caller, address, command, timeout)).number("offset")


async def earliest_store_time(
    caller: Caller, address: str, queue: MessageQueue, *, timeout: float | None = None
) -> int | None:
    """When the queue's oldest message was stored, in milliseconds since the epoch; None if the queue is empty."""
    answer = await ask(
        caller,
        address,
        request(
            RequestCode.GET_EARLIEST_MSG_STORETIME,
            {"topic": queue.topic, "queueId": queue.queue_id, "bname": queue.broker},
        ),
        timeout,
    )
    stored = answer.number("timestamp")
    return stored if stored >= 0 else None


async def offsets_of_groups(
    caller: Caller, address: str, wanted: Collection[tuple[str, str]], *, timeout: float | None = None
) -> tuple[dict[tuple[str, str], dict[int, int]], int]:
    """Some groups' offsets out of the same table, by topic and group; and how many the broker has of such pairs.

    One call for all groups, and it costs the broker as much as its table is large, whatever is wanted of it.
    """
    answer = await ask(caller, address, request(RequestCode.GET_ALL_CONSUMER_OFFSET), timeout)
    keys = {f"{topic}@{group}": (topic, group) for topic, group in wanted}
    encoded = {key.encode() for key in keys}
    # In a thread: a large table must not hold up everything else.
    found, size = await asyncio.to_thread(answer.body, lambda body: group_offsets(body, encoded))
    return {keys[key]: offsets for key, offsets in found.items()}, size


async def reset_offsets(
    caller: Caller, address: str, group: str, topic: str, timestamp: int, *, timeout: float | None = None
) -> dict[MessageQueue, int]:
    """Move a group in all queues that a broker has of a topic to a time (NOW: to the end); returns where to.

    The offsets take effect at the group's next pull, in any client. Since 5.0 the broker does this by itself, whether
    or not the group has members; one configured not to (useServerSideResetOffset=false) tells the members, and
    answers ConsumerNotOnline if there are none.
    """
    answer = await ask(
        caller,
        address,
        request(
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
            {"topic": topic, "group": group, "timestamp": timestamp, "isForce": True, "queueId": -1, "offset": -1},
        ),
        timeout,
    )
    return answer.body(ResetOffset.decode).offset_table


async def reset_queue_offset(
    caller: Caller, address: str, group: str, queue: MessageQueue, offset: int, *, timeout: float | None = None
) -> dict[MessageQueue, int]:
    """Move a group in one queue to an offset, which must be within the queue."""
    answer = await ask(
        caller,
        address,
        request(
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
            {
                "topic": queue.topic,
                "group": group,
                "queueId": queue.queue_id,
                "offset": offset,
                "timestamp": 0,
                "isForce": True,
                "bname": queue.broker,
            },
        ),
        timeout,
    )
    return answer.body(ResetOffset.decode).offset_table
