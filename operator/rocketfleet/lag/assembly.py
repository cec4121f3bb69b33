"""A group's moment, put together from what its brokers said. Pure."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from rocketfleet.client.routes import RETRY_PREFIX
from rocketfleet.lag.figures import GroupLag, QueueLag
from rocketfleet.lag.reckoning import lag_of, summed, with_sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rocketfleet.lag.broker_reading import BrokerReading
    from rocketfleet.lag.layout import GroupLayout
    from rocketfleet.lag.target import Target
    from rocketfleet.wire.queue import MessageQueue

_NONE: Final[dict[Any, Any]] = {}


def assemble(
    target: Target,
    layout: GroupLayout,
    readings: Mapping[str, BrokerReading],
    before: GroupLag | None,
    owners: Mapping[MessageQueue, str],
    at: float,
    *,
    asked: bool = True,
) -> GroupLag:
    """The group as it is now. A queue that was not read keeps what was last seen of it, with its time; members that
    nobody was asked for stay as they were.
    """
    members = next(
        (reading.members[target.group] for reading in readings.values() if target.group in reading.members),
        before.member_ids if before is not None and not asked else None,
    )
    return with_sums(
        GroupLag(
            group=target.group,
            observed_at=at,
            queues=tuple(_rows(target, layout.queues, readings, before, owners)),
            retry=None if layout.retries is None else _retry(target, layout.retries, readings),
            dlq=None if layout.dead_letters is None else _dead_letters(layout.dead_letters, readings),
            unknown=layout.missing,
            members=None if members is None else len(members),
            member_ids=members,
        )
    )


def _rows(
    target: Target,
    queues: tuple[MessageQueue, ...],
    readings: Mapping[str, BrokerReading],
    before: GroupLag | None,
    owners: Mapping[MessageQueue, str],
) -> Iterator[QueueLag]:
    """One row a queue. Queues of one topic and broker follow each other, and are looked up together."""
    last: dict[MessageQueue, QueueLag] | None = None
    for (topic, broker), them in groupby(queues, key=lambda queue: queue[:2]):
        reading = readings.get(broker)
        started = 0.0 if reading is None else reading.started
        pair = topic, target.group
        offsets = _NONE if reading is None else reading.offsets.get(pair, _NONE)
        ends = _NONE if reading is None else reading.ends.get(topic, _NONE)
        ages = _NONE if reading is None else reading.ages.get(pair, _NONE)
        beginning = target.from_beginning(topic)
        for queue in them:
            number, owner = queue.queue_id, owners.get(queue)
            end = ends.get(number)
            if end is not None and number in offsets:
                offset = offsets[number]
                lag = lag_of(offset, end, from_beginning=beginning)
                seconds = ages.get(number) if lag else None if lag is None else 0.0
                yield QueueLag(queue, end[0], end[1], offset, lag, seconds, owner, started)
                continue
            if last is None:
                last = {} if before is None else {row.queue: row for row in before.queues}
            row = last.get(queue)
            if row is None:
                yield QueueLag(queue, None, None, None, None, None, owner, 0.0)
            else:
                yield row if row.owner == owner else replace(row, owner=owner)


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
