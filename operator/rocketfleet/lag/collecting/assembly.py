"""A group's moment, put together from what its brokers said. Pure."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from rocketfleet.lag.collecting.reckoning import lag_of, summed, with_sums
from rocketfleet.lag.figures import GroupLag, QueueLag
from rocketfleet.wire.topics import RETRY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rocketfleet.lag.collecting.broker_reading import BrokerReading
    from rocketfleet.lag.collecting.layout import GroupLayout
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
    lags, retry_end, retry_done = _retries(target, layout.retries or (), readings)
    dlq, dlq_end = _dead_letters(layout.dead_letters or (), readings)
    told = layout.retries is not None, layout.dead_letters is not None
    return with_sums(
        GroupLag(
            group=target.group,
            observed_at=at,
            queues=tuple(_rows(target, layout.queues, readings, before, owners)),
            retry=summed(lags) if told[0] else None,
            retry_at_least=sum(lag or 0 for lag in lags),
            retry_end=retry_end if told[0] else None,
            retry_done=retry_done if told[0] else None,
            dlq=dlq if told[1] else None,
            dlq_end=dlq_end if told[1] else None,
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
    """One row per queue. Queues of one topic and broker follow each other, and are looked up together."""
    last: dict[MessageQueue, QueueLag] | None = None
    begun = _begun(target, readings, before)
    for (topic, broker), them in groupby(queues, key=lambda queue: queue[:2]):
        reading = readings.get(broker)
        started = 0.0 if reading is None else reading.started
        pair = topic, target.group
        offsets = _NONE if reading is None else reading.offsets.get(pair, _NONE)
        ends = _NONE if reading is None else reading.ends.get(topic, _NONE)
        ages = _NONE if reading is None else reading.ages.get(pair, _NONE)
        beginning = target.from_beginning(topic) or topic in begun
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


def retry_rows(
    target: Target, layout: GroupLayout, readings: Mapping[str, BrokerReading], owners: Mapping[MessageQueue, str]
) -> tuple[QueueLag, ...]:
    """The queues in which messages wait to be tried again, one by one; `GroupLag.retry` is their sum."""
    return tuple(
        row
        for row in _rows(target, layout.retries or (), readings, None, owners)
        if row.max_offset is None or _is_own_retry(target, row.queue, row.consumer_offset)
    )


def _is_own_retry(target: Target, queue: MessageQueue, offset: int | None) -> bool:
    """The retry topic of a popping group, `%RETRY%group_topic`, may as well be that of another group with such a name:
    it counts only if this group has been there.
    """
    return offset is not None or queue.topic == RETRY_PREFIX + target.group


def _begun(target: Target, readings: Mapping[str, BrokerReading], before: GroupLag | None) -> set[str]:
    """The topics that the group has begun with, and so will read new queues of from their beginning. What is known of
    a broker that does not answer now still counts.
    """
    topics = {topic for topic in target.topics if target.from_beginning_once_begun(topic)}
    found = {
        topic
        for topic in topics
        for reading in readings.values()
        if any(offset is not None for offset in reading.offsets.get((topic, target.group), _NONE).values())
    }
    if before is not None:
        found |= topics & {row.queue.topic for row in before.queues if row.consumer_offset is not None}
    return found


def _retries(
    target: Target, queues: tuple[MessageQueue, ...], readings: Mapping[str, BrokerReading]
) -> tuple[list[int | None], int | None, int | None]:
    """Messages due to be tried again, by queue; and how many ever came there and were consumed."""
    lags: list[int | None] = []
    came: list[int | None] = []
    consumed: list[int | None] = []
    for queue in queues:
        reading = readings.get(queue.broker)
        pair = queue.topic, target.group
        offsets = {} if reading is None else reading.offsets.get(pair, {})
        ends = None if reading is None else reading.ends.get(queue.topic, {}).get(queue.queue_id)
        if queue.queue_id not in offsets or ends is None:
            for figures in (lags, came, consumed):
                figures.append(None)
            continue
        offset = offsets[queue.queue_id]
        if _is_own_retry(target, queue, offset):
            lags.append(lag_of(offset, ends, from_beginning=True))
            came.append(ends[1])
            consumed.append(offset or 0)
    return lags, summed(came), summed(consumed)


def _dead_letters(
    holders: tuple[tuple[str, str], ...], readings: Mapping[str, BrokerReading]
) -> tuple[int | None, int | None]:
    """Everything that is in the topic, as nobody is expected to consume it; and all that ever came there."""
    there: list[int | None] = []
    came: list[int | None] = []
    for topic, broker in holders:
        ends = None if (reading := readings.get(broker)) is None else reading.ends.get(topic)
        there.append(None if ends is None else sum(most - least for least, most in ends.values()))
        came.append(None if ends is None else sum(most for _, most in ends.values()))
    return summed(there), summed(came)
