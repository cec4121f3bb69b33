"""What Prometheus sees of each group's replicas, conditions, rebalances and drains. Those of a group that is gone are
gone too.

A condition has a series for each status it may have, 1 for the one it has: alerts on what lasts go by these, and not by
counts of events, which are emitted once.
"""

from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.api.status import Condition, Truth
from rocketfleet.controller.reconciling.group_state import Counts

_PREFIX = "rocketfleet_group_"
_LABELS = ["namespace", "name"]
GAUGES: dict[str, tuple[str, Callable[[Counts], int]]] = {
    "desired_replicas": ("Desired number of pods.", lambda counts: counts.desired),
    "ready_replicas": ("Pods that are ready and stay.", lambda counts: counts.ready),
}
COUNTERS: dict[str, tuple[str, Callable[[Counts], int]]] = {
    "rebalances": ("Rebalances that this operator saw completed.", lambda counts: counts.rebalances),
    "drains": ("Members that this operator drained.", lambda counts: counts.drains),
    "drains_unverified": (
        "Members deleted before their offsets were safe at the broker.",
        lambda counts: counts.unverified,
    ),
}


class _GroupFamilies(Collector):
    def __init__(self, groups: list[tuple[GroupKey, Counts]]) -> None:
        self._groups = groups

    def collect(self) -> Iterable[Metric]:
        for name, (meaning, value) in GAUGES.items():
            gauge = GaugeMetricFamily(_PREFIX + name, meaning, labels=_LABELS)
            for key, counts in self._groups:
                gauge.add_metric(key, float(value(counts)))
            yield gauge
        for name, (meaning, value) in COUNTERS.items():
            counter = CounterMetricFamily(_PREFIX + name, meaning, labels=_LABELS)
            for key, counts in self._groups:
                counter.add_metric(key, float(value(counts)))
            yield counter


class _Conditions(Collector):
    def __init__(self, groups: list[tuple[GroupKey, Sequence[Condition]]]) -> None:
        self._groups = groups

    def collect(self) -> Iterable[Metric]:
        gauge = GaugeMetricFamily(
            f"{_PREFIX}condition", "1 for the status that a condition has.", labels=[*_LABELS, "type", "status"]
        )
        for key, conditions in self._groups:
            for condition in conditions:
                for truth in Truth:
                    labels = [*key, condition.type, truth.value]
                    gauge.add_metric(labels, float(condition.status is truth))
        yield gauge


def rendered(
    groups: Iterable[tuple[GroupKey, Counts]], conditions: Iterable[tuple[GroupKey, Sequence[Condition]]] = ()
) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_GroupFamilies(list(groups)))
    registry.register(_Conditions(list(conditions)))
    return generate_latest(registry)
