"""A group's moment, put together from what its brokers said. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rocketfleet.client.routes import RETRY_PREFIX
from rocketfleet.lag.figures import GroupLag, QueueLag
from rocketfleet.lag.reckoning import lag_of, summed, with_sums

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocketfleet.lag.broker_reading import BrokerReading
    from rocketfleet.lag.layout import GroupLayout
    from rocketfleet.lag.target import Target
    from rocketfleet.wire.queue import MessageQueue


def assemble(
    target: Target,
    layout: GroupLayout,
    readings: Mapping[str, BrokerReading],
    before: Mapping[MessageQueue, QueueLag],
    owners: Mapping[MessageQueue, str],
    at: float,
) -> GroupLag:
    """The group as it is now. A queue that was not read keeps what was last seen of it, with its time."""
    rows = tuple(_row(target, queue, readings, before.get(queue), owners.get(queue)) for queue in layout.queues)
    members = next(
        (reading.members[target.group] for reading in readings.values() if target.group in reading.members), None
    )
    return with_sums(
        GroupLag(
            group=target.group,
            observed_at=at,
            queues=rows,
            retry=None if layout.retries is None else _retry(target, layout.retries, readings),
            dlq=None if layout.dead_letters is None else _dead_letters(layout.dead_letters, readings),
            unknown=layout.missing,
            members=None if members is None else len(members),
            member_ids=members,
        )
    )


def _row(
    target: Target,
    queue: MessageQueue,
    readings: Mapping[str, BrokerReading],
    before: QueueLag | None,
    owner: str | None,
) -> QueueLag:
    reading = readings.get(queue.broker)
    pair = queue.topic, target.group
    if reading is not None:
        offsets, ends = reading.offsets.get(pair, {}), reading.ends.get(queue.topic, {}).get(queue.queue_id)
        if queue.queue_id in offsets and ends is not None:
            offset = offsets[queue.queue_id]
            lag = lag_of(offset, ends, from_beginning=target.from_beginning(queue.topic))
            seconds = 0.0 if lag == 0 else reading.ages.get(pair, {}).get(queue.queue_id)
            return QueueLag(queue, *ends, offset, lag, None if lag is None else seconds, owner, reading.started)
    if before is not None:
        return before if before.owner == owner else replace(before, owner=owner)
    return QueueLag(queue, None, None, None, None, None, owner, 0.0)


def _retry(target: Target, queues: tuple[MessageQueue, ...], readings: Mapping[str, BrokerReading]) -> int | None:
    """Messages to be retried. The retry topic of a popping group, `%RETRY%group_topic`, may as well be that of another
    group with such a name: it counts only if this group has been there.
    """
    lags: list[int | None] = []
    for queue in queues:
        reading = readings.get(queue.broker)
        pair = queue.topic, target.group
        offsets = {} if reading is None else reading.offsets.get(pair, {})
        ends = None if reading is None else reading.ends.get(queue.topic, {}).get(queue.queue_id)
        if queue.queue_id not in offsets or ends is None:
            lags.append(None)
            continue
        offset = offsets[queue.queue_id]
        if offset is not None or queue.topic == RETRY_PREFIX + target.group:
            lags.append(lag_of(offset, ends, from_beginning=True))
    return summed(lags)


def _dead_letters(holders: tuple[tuple[str, str], ...], readings: Mapping[str, BrokerReading]) -> int | None:
    """Everything that is in the topic: nobody is expected to consume it."""
    counts: list[int | None] = []
    for topic, broker in holders:
        ends = None if (reading := readings.get(broker)) is None else reading.ends.get(topic)
        counts.append(None if ends is None else sum(most - least for least, most in ends.values()))
    return summed(counts)
