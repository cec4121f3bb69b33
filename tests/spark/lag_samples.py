"""Histories for tests: small, with everything in them that may go wrong, and windows worked out by hand in Python."""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rocketfleet.lag.samples.history import LagSample
from rocketfleet.lag.samples.parquet_sink import ParquetSink

START = datetime(2026, 3, 1, 22, 0, tzinfo=UTC).timestamp()  # so that midnight is among it
WIDTH = 300


def sample(at: float, queue: int = 0, **fields: Any) -> LagSample:
    """A sample `at` seconds after the start; lag is what lies between the offsets."""
    base: dict[str, Any] = {
        "cluster": "c", "group": "g", "topic": "t", "broker": "b", "min_offset": 0, "max_offset": 0,
        "consumer_offset": 0, "seconds": 0.0, "owner": "m-0",
    }  # fmt: skip
    made = {**base, **fields}
    if "lag" not in made:
        offset = made["consumer_offset"]
        made["lag"] = None if offset is None else made["max_offset"] - offset
    return LagSample(time=START + at, queue=queue, **made)


def adventures(seed: int, minutes: int = 60) -> list[LagSample]:
    """Groups that rebalance, are rewound, stand still, are not read for a while, and one that is broadcasting."""
    chance = random.Random(seed)
    found = []
    for group, broadcasting in (("orders", False), ("clicks", False), ("news", True)):
        for queue in range(5):
            end, stored, owner = chance.randrange(1000), {f"m-{n}": 0 for n in range(3)}, f"m-{chance.randrange(3)}"
            shared = 0
            for minute in range(minutes):
                end += chance.choice([0, 3, 50, 700])
                if chance.random() < 0.02:
                    end = chance.randrange(100)  # the topic was made anew
                if chance.random() < 0.1:
                    owner = f"m-{chance.randrange(3)}"
                if chance.random() < 0.03:
                    shared = chance.randrange(end + 1)  # offsets were reset
                still = queue == 2 and 15 <= minute < 40
                shared = shared if still else min(end, shared + chance.choice([0, 5, 60, 800]))
                unread = chance.random() < 0.06
                for name in sorted(stored) if broadcasting else [owner]:
                    stored[name] = min(end, stored[name] + chance.randrange(500))
                    at = stored[name] if broadcasting else shared
                    place = None if chance.random() < 0.05 else at
                    nobody = not broadcasting and chance.random() < 0.05
                    if unread:
                        continue
                    lag = None if place is None else max(0, end - place)
                    age = None if place is None else round(chance.random() * 90, 3)
                    whose = None if nobody else name
                    at_broker = {"group": group, "broker": f"b-{queue % 2}", "max_offset": end, "owner": whose}
                    when = 60.0 * minute + (queue % 2) * 0.4
                    found.append(sample(when, queue, consumer_offset=place, lag=lag, seconds=age, **at_broker))
    return found


def write_file(directory: Path, samples: Sequence[LagSample]) -> None:
    """As the operator writes them."""
    ParquetSink(directory)._write_files(samples)


class QueueWindow(NamedTuple):
    """What a queue window should say, by the plainest way to work it out."""

    samples: int
    produced: int | None
    consumed: int | None
    produce_rate: float | None
    consume_rate: float | None
    lag_first: int | None
    lag_last: int | None
    lag_min: int | None
    lag_max: int | None
    trend: float | None
    seconds_max: float | None
    stuck: bool
    rewound: bool


def expected(samples: Iterable[LagSample], width: int = WIDTH) -> dict[tuple[Any, ...], QueueWindow]:
    """Windows by (start, cluster, group, topic, broker, queue, owner)."""
    kept: dict[tuple[Any, ...], list[LagSample]] = defaultdict(list)
    for one in samples:
        start = one.time // width * width
        kept[start, one.cluster, one.group, one.topic, one.broker, one.queue, one.owner].append(one)
    return {key: _window(sorted(them, key=lambda one: one.time)) for key, them in kept.items()}


def _window(them: list[LagSample]) -> QueueWindow:
    ends = [(one.time, one.max_offset) for one in them]
    offsets = [(one.time, one.consumer_offset) for one in them if one.consumer_offset is not None]
    lags = [(one.time, one.lag) for one in them if one.lag is not None]
    produced, came = _forward(ends)
    consumed, went = _forward(offsets)
    lag_values = [lag for _, lag in lags]
    trend = None
    if len(lags) > 1:
        trend = (lags[-1][1] - lags[0][1]) / (lags[-1][0] - lags[0][0])
    ages = [one.seconds for one in them if one.seconds is not None]
    places = [place for _, place in offsets]
    return QueueWindow(
        samples=len(them),
        produced=produced,
        consumed=consumed,
        produce_rate=came,
        consume_rate=went,
        lag_first=lag_values[0] if lags else None,
        lag_last=lag_values[-1] if lags else None,
        lag_min=min(lag_values, default=None),
        lag_max=max(lag_values, default=None),
        trend=trend,
        seconds_max=max(ages, default=None),
        stuck=bool(lags) and min(lag_values) > 0 and consumed == 0,
        rewound=bool(places) and (min(places) != places[0] or max(places) != places[-1]),
    )


def _forward(places: list[tuple[float, int]]) -> tuple[int | None, float | None]:
    """How far something went, and how quickly; not known if it went back, or was seen only once."""
    values = [value for _, value in places]
    if len(values) < 2 or min(values) != values[0] or max(values) != values[-1]:
        return None, None
    gone = values[-1] - values[0]
    return gone, gone / (places[-1][0] - places[0][0])
