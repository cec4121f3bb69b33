"""Figures for tests, of which each test says only what it is about."""

from dataclasses import replace
from typing import Any

from rocketfleet.spark.analytics.figures import (
    Analysis,
    ClusterGroupKey,
    GroupDetail,
    GroupFigures,
    HourOfDay,
    Point,
    StuckQueue,
)

KEY = ClusterGroupKey("10.0.0.1:9876", "orders")
WELL = GroupFigures(
    key=KEY,
    queues=8,
    members=2,
    last_seen=86_100.0,
    lag=10,
    seconds=0.0,
    produce_rate=100.0,
    consume_rate=100.0,
    drain_seconds=None,
    lag_p50=10.0,
    lag_p95=20.0,
    lag_p99=30.0,
    lag_max=40,
    seconds_p50=0.0,
    seconds_p95=1.0,
    seconds_p99=2.0,
    lag_skew=1.2,
    produce_skew=1.0,
    shared=False,
)
STUCK = StuckQueue(KEY, "orders", "broker-a", 3, "orders-1", 1200, 50_400.0, 86_400.0, 120, still=True)


def hour(peak: float | None, members: int = 2) -> HourOfDay:
    return HourOfDay(peak, peak, 0.0, members)


def group(**changes: Any) -> GroupFigures:
    return replace(WELL, **changes)


def points(*lags: float | None) -> tuple[Point, ...]:
    return tuple(Point(300.0 * step, lag, 1.0, 100.0, 90.0, 2) for step, lag in enumerate(lags))


def analysis(*groups: GroupFigures, **changes: Any) -> Analysis:
    """A day."""
    made = Analysis(
        source="/data/lag",
        since=0.0,
        until=86_400.0,
        samples=11_520,
        window=300,
        step=300,
        groups=groups or (WELL,),
        details={one.key: GroupDetail() for one in groups or (WELL,)},
        stuck=(),
    )
    return replace(made, **changes)
