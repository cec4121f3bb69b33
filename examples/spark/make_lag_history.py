"""Makes a history of lag to try the report with: a week of six groups, in the form that the operator keeps it in.

python examples/spark/make_lag_history.py /tmp/lag
rocketfleet spark report --history /tmp/lag --out report.html

Each group has its own story: `orders` follows the day and keeps up, `payments` has a queue that stands still since the
last night, `clicks` gets more from day to day than its members do, `audit` has one queue with most of the keys,
`nightly` gets its work at two in the morning, `mailer` loses its members for an afternoon.

The form is that of docs/lag.md, under "History": Parquet files, a directory a day. It needs pyarrow.
"""

import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as arrow
from pyarrow import parquet

DAY = 86_400.0
EVERY = 60.0
LAST = datetime(2026, 6, 15, tzinfo=UTC).timestamp()  # a Monday
COLUMNS = arrow.schema(
    [
        arrow.field("time", arrow.timestamp("us", tz="UTC"), nullable=False),
        *(arrow.field(name, arrow.string(), nullable=False) for name in ("cluster", "group", "topic", "broker")),
        arrow.field("queue", arrow.int32(), nullable=False),
        arrow.field("min_offset", arrow.int64(), nullable=False),
        arrow.field("max_offset", arrow.int64(), nullable=False),
        arrow.field("consumer_offset", arrow.int64()),
        arrow.field("lag", arrow.int64()),
        arrow.field("seconds", arrow.float64()),
        arrow.field("owner", arrow.string()),
    ]
)


class Sample(NamedTuple):
    """A group in a queue at a moment: the columns, in their order."""

    time: datetime
    cluster: str
    group: str
    topic: str
    broker: str
    queue: int
    min_offset: int
    max_offset: int
    consumer_offset: int
    lag: int
    seconds: float
    owner: str | None


@dataclass
class Queue:
    number: int
    share: float  # of what comes into the topic
    end: float = 1_000_000.0
    done: float = 1_000_000.0
    stored: int = 1_000_000  # what the broker has been told; never goes back
    arrivals: list[tuple[float, float]] = field(default_factory=list)  # (time, end), to know how old the oldest is

    def age(self, now: float) -> float:
        while len(self.arrivals) > 1 and self.arrivals[1][1] <= self.done:
            self.arrivals.pop(0)
        return now - self.arrivals[0][0] if self.end - self.done >= 1 else 0.0


@dataclass
class Story:
    """A group: what comes in at a time, how many members it has then, and what one of them does in a second."""

    group: str
    topic: str
    queues: int
    incoming: Callable[[float], float]
    members: Callable[[float], int]
    rate: float
    shares: list[float] | None = None
    stands_still: Callable[[int, float], bool] = lambda _queue, _time: False


def by_day(time: float, low: float, high: float, peak: float = 14.0, weekend: float = 0.45) -> float:
    """A day's traffic with its most at one hour, less of it at the weekend."""
    moment = datetime.fromtimestamp(time, UTC)
    hour = moment.hour + moment.minute / 60
    wave = (1 + math.cos((hour - peak) / 24 * 2 * math.pi)) / 2
    return (low + (high - low) * math.pow(wave, 1.6)) * (weekend if moment.weekday() >= 5 else 1.0)


def hour(time: float) -> float:
    return time % DAY / 3600


def stories(start: float) -> list[Story]:
    return [
        Story("orders", "orders", 8, lambda t: by_day(t, 40, 900), lambda t: 6 if 7 <= hour(t) < 21 else 2, 190),
        Story(
            "payments", "payments", 8, lambda t: by_day(t, 30, 320, 13), lambda _: 4, 110,
            stands_still=lambda queue, t: queue == 5 and t >= LAST - 9.5 * 3600,
        ),
        Story("clicks", "clicks", 6, lambda t: by_day(t, 520, 1250, 19, 0.85) * (1 + 0.07 * (t - start) / DAY),
              lambda _: 6, 165),
        Story("audit", "audit", 8, lambda t: by_day(t, 60, 420, 11), lambda _: 4, 130,
              shares=[0.05, 0.06, 0.58, 0.07, 0.06, 0.07, 0.05, 0.06]),
        Story("nightly", "exports", 4, lambda t: 700.0 if 2 <= hour(t) < 3 else 3.0, lambda _: 2, 160),
        Story("mailer", "mails", 4, lambda t: by_day(t, 8, 120, 10),
              lambda t: 0 if start + 2.55 * DAY <= t < start + 2.78 * DAY else 2, 95),
    ]  # fmt: skip


def told(story: Story, times: list[float], cluster: str, chance: random.Random) -> Iterator[Sample]:
    """The samples of one group."""
    shares = story.shares or [1 / story.queues] * story.queues
    queues = [Queue(number, share) for number, share in enumerate(shares)]
    for time in times:
        incoming, members = max(0.0, story.incoming(time)), story.members(time)
        for queue in queues:
            queue.end += incoming * queue.share * EVERY * chance.uniform(0.85, 1.15)
            queue.arrivals.append((time, queue.end))
        for member in range(members):
            # A member takes from its queues what is there, the same from each, as long as it has time.
            mine = [one for one in queues[member::members] if not story.stands_still(one.number, time)]
            left = story.rate * EVERY * chance.uniform(0.93, 1.05)
            for place, queue in enumerate(sorted(mine, key=lambda one: one.end - one.done)):
                took = min(queue.end - queue.done, left / (len(mine) - place))
                queue.done += took
                left -= took
        for queue in queues:
            if not story.stands_still(queue.number, time):
                # What was consumed since the last commit still looks like lag.
                uncommitted = incoming * queue.share * chance.uniform(0, 3)
                queue.stored = max(queue.stored, int(queue.done - uncommitted))
            end, stored = int(queue.end), queue.stored
            owner = f"{story.group}-{queue.number % members}@10.1.0.{queue.number % members + 10}" if members else None
            yield Sample(
                datetime.fromtimestamp(time, UTC), cluster, story.group, story.topic,
                "broker-a" if queue.number % 2 == 0 else "broker-b", queue.number // 2,
                0, end, stored, end - stored, round(queue.age(time), 1), owner,
            )  # fmt: skip


def write(directory: Path, days: float = 7.0) -> int:
    start = LAST - days * DAY
    times = [start + EVERY * step for step in range(int(days * DAY / EVERY))]
    chance = random.Random(7)  # noqa: S311 - the same history each time
    written = 0
    for story in stories(start):
        by_day: dict[str, list[Sample]] = {}
        for sample in told(story, times, "10.0.0.1:9876", chance):
            by_day.setdefault(sample.time.strftime("%Y-%m-%d"), []).append(sample)
        for day, samples in by_day.items():
            file = directory / f"day={day}" / f"lag-{story.group}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            rows = [sample._asdict() for sample in samples]
            parquet.write_table(arrow.Table.from_pylist(rows, COLUMNS), file, compression="zstd")
            written += len(samples)
    return written


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    count = write(Path(sys.argv[1]))
    print(f"{count:,} samples in {sys.argv[1]}")
