"""What a report is made of, as plain data on the driver. None is "not known", never 0. Times are seconds since 1970."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from datetime import date

HOURS: Final = 24


class ClusterGroupKey(NamedTuple):
    """A group, and the name servers of its RocketMQ cluster."""

    cluster: str
    group: str


@dataclass(frozen=True, slots=True)
class Point:
    """A group over one step of a chart: the most that waited, and the mean of the rates."""

    at: float
    lag: float | None
    seconds: float | None
    produce_rate: float | None
    consume_rate: float | None
    members: int


@dataclass(frozen=True, slots=True)
class HourOfDay:
    """A group in one hour of the day, over all days."""

    produce_rate: float | None  # the usual one
    produce_peak: float | None
    lag: float | None
    members: int


@dataclass(frozen=True, slots=True)
class QueueTotal:
    """A queue over the period."""

    topic: str
    broker: str
    queue: int
    lag_mean: float | None
    lag_max: int | None
    lag_last: int | None
    produce_rate: float | None
    produce_most: float | None

    @property
    def name(self) -> str:
        return f"{self.topic}@{self.broker}/{self.queue}"


@dataclass(frozen=True, slots=True)
class StuckQueue:
    """A queue that stood still: messages waited in it and none was consumed."""

    key: ClusterGroupKey
    topic: str
    broker: str
    queue: int
    owner: str | None
    lag: int | None
    since: float  # of the last time it did; the end of the last window in which it moved
    until: float
    windows: int  # in all
    still: bool  # to the end of the period

    @property
    def name(self) -> str:
        return f"{self.topic}@{self.broker}/{self.queue}"


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """A group over the period. `lag`, `seconds`, rates and `drain_seconds` are those of its last hour."""

    key: ClusterGroupKey
    queues: int
    members: int
    last_seen: float
    lag: int | None
    seconds: float | None
    produce_rate: float | None
    consume_rate: float | None
    drain_seconds: float | None
    lag_p50: float | None
    lag_p95: float | None
    lag_p99: float | None
    lag_max: int | None
    seconds_p50: float | None
    seconds_p95: float | None
    seconds_p99: float | None
    lag_skew: float | None
    produce_skew: float | None
    shared: bool  # every member has every queue: it is broadcasting
    busy_rate: float | None = None  # messages per second of one member that had plenty to do
    busy_windows: int = 0
    shown_rate: float | None = None  # and of one, whatever it had to do
    hours: tuple[HourOfDay | None, ...] = (None,) * HOURS


@dataclass(frozen=True, slots=True)
class GroupDetail:
    """What the charts of one group show."""

    points: tuple[Point, ...] = ()
    hourly: dict[date, dict[int, float]] = field(default_factory=dict)  # day → hour → messages per second that came
    queues: tuple[QueueTotal, ...] = ()


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that a report says."""

    source: str
    since: float
    until: float
    samples: int
    window: int  # seconds
    step: int  # seconds between the points of a chart
    groups: tuple[GroupFigures, ...]
    details: dict[ClusterGroupKey, GroupDetail]
    stuck: tuple[StuckQueue, ...]
