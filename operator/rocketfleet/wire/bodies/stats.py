"""Offsets and rates, as brokers report them. Maps are keyed by queue, which is not standard JSON."""

from dataclasses import dataclass, field

from rocketfleet.wire.bodies.codec import Body
from rocketfleet.wire.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class DataVersion(Body):
    """How new a broker's table is."""

    state_version: int = 0
    timestamp: int = 0
    counter: int = 0


@dataclass(frozen=True, slots=True)
class OffsetWrapper(Body):
    """A group's place in a queue. `last_timestamp` is when the last consumed message was stored, 0 if unknown."""

    broker_offset: int = 0
    consumer_offset: int = 0
    pull_offset: int = 0
    last_timestamp: int = 0


@dataclass(frozen=True, slots=True)
class ConsumeStats(Body):
    """The answer to GET_CONSUME_STATS. An unknown group gives an empty table, not an error."""

    offset_table: dict[MessageQueue, OffsetWrapper] = field(default_factory=dict)
    consume_tps: float = 0.0


@dataclass(frozen=True, slots=True)
class ConsumeStatsList(Body):
    """The answer to GET_BROKER_CONSUME_STATS: the groups of one broker, each with the stats of its topics."""

    consume_stats_list: tuple[dict[str, tuple[ConsumeStats, ...]], ...] = ()
    broker_addr: str | None = None
    total_diff: int = 0
    total_inflight_diff: int = 0


@dataclass(frozen=True, slots=True)
class TopicOffset(Body):
    """The ends of a queue."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


@dataclass(frozen=True, slots=True)
class TopicStatsTable(Body):
    """The answer to GET_TOPIC_STATS_INFO."""

    offset_table: dict[MessageQueue, TopicOffset] = field(default_factory=dict)
    topic_put_tps: float = 0.0


@dataclass(frozen=True, slots=True)
class QueueTimeSpan(Body):
    """When the oldest, the newest and the last consumed message of a queue were stored."""

    message_queue: MessageQueue | None = None
    min_time_stamp: int = 0
    max_time_stamp: int = 0
    consume_time_stamp: int = 0
    delay_time: int = 0


@dataclass(frozen=True, slots=True)
class ConsumeTimeSpans(Body):
    """The answer to QUERY_CONSUME_TIME_SPAN."""

    consume_time_span_set: tuple[QueueTimeSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerOffsets(Body):
    """The answer to GET_ALL_CONSUMER_OFFSET: `topic@group` → queue id → offset.

    `pull_offset_table` is what was pulled, which is at or ahead of what was consumed. Java calls all this
    ConsumerOffsetSerializeWrapper.
    """

    offset_table: dict[str, dict[int, int]] = field(default_factory=dict)
    pull_offset_table: dict[str, dict[int, int]] = field(default_factory=dict)
    group_topic_map: dict[str, tuple[str, ...]] = field(default_factory=dict)
    data_version: DataVersion | None = None


@dataclass(frozen=True, slots=True)
class CorrectionOffsets(Body):
    """The answer to QUERY_CORRECTION_OFFSET: queue id → offset."""

    correction_offsets: dict[int, int] = field(default_factory=dict)
