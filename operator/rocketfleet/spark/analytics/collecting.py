"""From tables on the executors to a report's figures on the driver, of bounded size whatever the history's.

Of every group there is one row, and one for each hour of the day: thousands of groups are a few megabytes. Charts have
a bounded number of points, and only the groups that need looking at most have any.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from rocketfleet.spark.analytics.figures import (
    HOURS,
    Analysis,
    ClusterGroupKey,
    GroupDetail,
    GroupFigures,
    HourOfDay,
    Point,
    QueueTotal,
    StuckQueue,
)
from rocketfleet.spark.analytics.findings import most_worth_a_look
from rocketfleet.spark.analytics.windows.patterns import (
    OWNED,
    hours,
    hours_of_day,
    member_rates,
    queue_totals,
    stuck_owners,
)
from rocketfleet.spark.analytics.windows.queue_windows import QUEUE, drain_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

POINTS: Final = 240
LAST: Final = 3600
MOST_QUEUES: Final = 64
"""Queues of a group that are shown: those with the largest lag."""
MOST_STUCK: Final = 200


def collect(
    queues: DataFrame, members: DataFrame, groups: DataFrame, source: str, width: int, details: int
) -> Analysis:
    """All figures of a report."""
    from pyspark.sql import functions as f

    totals = queue_totals(queues).persist()
    try:
        stuck = _stuck(queues, totals, width)
        (period,) = groups.agg(
            f.unix_seconds(f.min("window_start")), f.unix_seconds(f.max("window_start")), f.sum("samples")
        ).collect()
        since, until, samples = float(period[0]), float(period[1]) + width, int(period[2])
        found = _groups(groups, members)
        chosen = most_worth_a_look(found, stuck, details)
        step = step_for(until - since, width)
        return Analysis(
            source=source,
            since=since,
            until=until,
            samples=samples,
            window=width,
            step=step,
            groups=tuple(found),
            details=_details(groups, totals, chosen, step),
            stuck=tuple(stuck),
        )
    finally:
        totals.unpersist()


def step_for(period: float, width: int, most: int = POINTS) -> int:
    """Seconds between two points: whole windows, so many that there are not too many points."""
    return width * max(1, math.ceil(period / width / most))


def _groups(groups: DataFrame, members: DataFrame) -> list[GroupFigures]:
    from pyspark.sql import functions as f

    recent = f.col("window_start") > f.col("_last") - f.expr(f"interval {LAST} seconds")
    last = groups.groupBy(*OWNED).agg(f.max("window_start").alias("_last"))
    tail = groups.join(last, list(OWNED)).where(recent).groupBy(*OWNED)
    now = tail.agg(
        f.max_by("lag", "window_start").alias("lag"),
        f.max_by("seconds_last", "window_start").alias("seconds"),
        f.max_by("members", "window_start").alias("members"),
        f.max_by("queues", "window_start").alias("queues"),
        f.unix_seconds(f.max("window_start")).alias("last_seen"),
        f.avg("produce_rate").alias("produce_rate"),
        f.avg("consume_rate").alias("consume_rate"),
    ).withColumn("drain_seconds", drain_seconds("lag"))
    period = groups.groupBy(*OWNED).agg(
        f.percentile("lag", f.array(f.lit(0.5), f.lit(0.95), f.lit(0.99))).alias("lags"),
        f.max("lag").alias("lag_max"),
        f.percentile("seconds_max", f.array(f.lit(0.5), f.lit(0.95), f.lit(0.99))).alias("ages"),
        # An even lag of a few messages is never even: only windows in which something really waited count.
        f.percentile(f.when(f.col("lag") > 10 * f.col("queues"), f.col("lag_skew")), f.lit(0.5)).alias("lag_skew"),
        f.percentile("produce_skew", f.lit(0.5)).alias("produce_skew"),
        f.avg((f.col("shared_queues") > 0).cast("int")).alias("shared"),
    )
    of_day: dict[ClusterGroupKey, dict[int, HourOfDay]] = {}
    for row in hours_of_day(groups).collect():
        of_day.setdefault(ClusterGroupKey(row.cluster, row.group), {})[row.hour] = HourOfDay(
            row.produce_rate_p50, row.produce_rate_peak, row.lag_p50, math.ceil(row.members or 0)
        )
    rates = {ClusterGroupKey(row.cluster, row.group): row for row in member_rates(members).collect()}
    found = []
    for row in now.join(period, list(OWNED)).collect():
        key = ClusterGroupKey(row.cluster, row.group)
        of_members = rates.get(key)
        lags, ages = row.lags or [None] * 3, row.ages or [None] * 3
        found.append(
            GroupFigures(
                key=key,
                queues=row.queues,
                members=row.members,
                last_seen=float(row.last_seen),
                lag=row.lag,
                seconds=row.seconds,
                produce_rate=row.produce_rate,
                consume_rate=row.consume_rate,
                drain_seconds=row.drain_seconds,
                lag_p50=lags[0],
                lag_p95=lags[1],
                lag_p99=lags[2],
                lag_max=row.lag_max,
                seconds_p50=ages[0],
                seconds_p95=ages[1],
                seconds_p99=ages[2],
                lag_skew=row.lag_skew,
                produce_skew=row.produce_skew,
                shared=(row.shared or 0) > 0.5,
                busy_rate=None if of_members is None else of_members.busy_rate,
                busy_windows=0 if of_members is None else of_members.busy_windows,
                shown_rate=None if of_members is None else of_members.shown_rate,
                hours=tuple(of_day.get(key, {}).get(hour) for hour in range(HOURS)),
            )
        )
    return sorted(found, key=lambda one: one.key)


def _stuck(queues: DataFrame, totals: DataFrame, width: int) -> list[StuckQueue]:
    """Those that stood still for more than one window, the longest first."""
    from pyspark.sql import functions as f

    moments = {name: f.unix_seconds(name) for name in ("first_window", "last_window", "stuck_last", "free_last")}
    stood = totals.where("stuck_windows > 1").withColumns(moments).join(stuck_owners(queues), list(QUEUE))
    rows = stood.orderBy(f.desc("stuck_windows"), *QUEUE).limit(MOST_STUCK).collect()
    found = []
    for row in rows:
        still = row.stuck_last == row.last_window
        # Before the last window in which it moved it may have stood still too; that is told by the count of windows.
        moved = row.free_last if row.free_last is not None and row.free_last < row.stuck_last else None
        since = row.first_window if moved is None else moved + width
        until = row.stuck_last + width
        if not still:
            since = until - width * row.stuck_windows
        found.append(
            StuckQueue(
                key=ClusterGroupKey(row.cluster, row.group),
                topic=row.topic,
                broker=row.broker,
                queue=row.queue,
                owner=row.owner,
                lag=row.stuck_lag,
                since=float(since),
                until=float(until),
                windows=row.stuck_windows,
                still=still,
            )
        )
    return sorted(found, key=lambda one: (not one.still, one.since - one.until, one.key, one.name))


def _details(
    groups: DataFrame, totals: DataFrame, chosen: Iterable[ClusterGroupKey], step: int
) -> dict[ClusterGroupKey, GroupDetail]:
    from pyspark.sql import functions as f

    keys = list(chosen)
    if not keys:
        return {}
    some = groups.where(_among(keys)).persist()
    try:
        at = (f.floor(f.unix_seconds("window_start") / step) * step).alias("at")
        stepped = some.groupBy(*OWNED, at).agg(
            f.max("lag").alias("lag"),
            f.max("seconds_max").alias("seconds"),
            f.avg("produce_rate").alias("produce_rate"),
            f.avg("consume_rate").alias("consume_rate"),
            f.max("members").alias("members"),
        )
        points: dict[ClusterGroupKey, list[Point]] = {key: [] for key in keys}
        for row in stepped.orderBy("at").collect():
            points[ClusterGroupKey(row.cluster, row.group)].append(
                Point(float(row["at"]), row.lag, row.seconds, row.produce_rate, row.consume_rate, row.members)
            )
        hourly: dict[ClusterGroupKey, dict[Any, dict[int, float]]] = {key: {} for key in keys}
        for row in hours(some).collect():
            if row.produce_rate_p50 is not None:
                hourly[ClusterGroupKey(row.cluster, row.group)].setdefault(row.day, {})[row.hour] = row.produce_rate_p50
    finally:
        some.unpersist()
    return {
        key: GroupDetail(tuple(points[key]), dict(sorted(hourly[key].items())), of_group)
        for key, of_group in _queues(totals, keys).items()
    }


def _queues(totals: DataFrame, keys: list[ClusterGroupKey]) -> dict[ClusterGroupKey, tuple[QueueTotal, ...]]:
    """The queues of each group with the largest lag, by name."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    place = f.row_number().over(Window.partitionBy(*OWNED).orderBy(f.desc("lag_mean"), *QUEUE))
    rows = totals.where(_among(keys)).withColumn("_place", place).where(f.col("_place") <= MOST_QUEUES).collect()
    found: dict[ClusterGroupKey, list[QueueTotal]] = {key: [] for key in keys}
    for row in rows:
        found[ClusterGroupKey(row.cluster, row.group)].append(
            QueueTotal(
                topic=row.topic,
                broker=row.broker,
                queue=row.queue,
                lag_mean=row.lag_mean,
                lag_max=row.lag_max,
                lag_last=row.lag_last,
                produce_rate=row.produce_rate,
                produce_most=row.produce_most,
            )
        )
    return {key: tuple(sorted(them, key=lambda one: (one.topic, one.broker, one.queue))) for key, them in found.items()}


def _among(keys: list[ClusterGroupKey]) -> Any:
    from pyspark.sql import functions as f

    return f.struct("cluster", "group").isin([f.struct(f.lit(one.cluster), f.lit(one.group)) for one in keys])
