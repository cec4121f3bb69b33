"""A term: the reconciler, the lag monitor and their connections to brokers, for as long as this operator leads.

They begin and end together. What the last term remembered may have been changed by whoever led in between, so nothing
is carried over but what stands in the cluster.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.controller.kube.backend import KubeBackend
from rocketfleet.controller.lag.lag_watch import LagWatch
from rocketfleet.controller.operator.group_metrics import rendered
from rocketfleet.controller.operator.metrics import Metrics
from rocketfleet.controller.reconciling.reconcile import Reconciler
from rocketfleet.controller.reconciling.work_queue import Requeue
from rocketfleet.controller.resources.pod import Defaults
from rocketfleet.controller.rocketmq.brokers import BrokerClients
from rocketfleet.controller.rocketmq.fence import fenced_client
from rocketfleet.lag.collecting.monitor import INTERVAL, LagMonitor
from rocketfleet.lag.metrics import LagMetrics
from rocketfleet.lag.samples.sinks import HistoryOptions, LagHistory


@dataclass(frozen=True, slots=True)
class LagOptions:
    """How the lag is read and shown."""

    interval: float = INTERVAL  # seconds between two sweeps
    per_queue: bool = True  # whether metrics show every queue
    history: HistoryOptions = field(default_factory=HistoryOptions)


class Term:
    """What does the work while we lead."""

    def __init__(
        self,
        backend: KubeBackend,
        wake: Callable[[GroupKey], None],
        defaults: Defaults,
        lag: LagOptions,
        metrics: Metrics,
    ) -> None:
        self._brokers = BrokerClients(lambda config: fenced_client(config, backend.guard))
        self._history = LagHistory(lag.history) if lag.history.wanted else None
        self._monitor = LagMonitor(interval=lag.interval, keeper=self._history)
        self._lag = LagWatch(self._monitor, lag.interval, wake, time.time)
        self._reconciler = Reconciler(
            backend,
            self._brokers,
            defaults=defaults,
            wake=wake,
            rebalanced=metrics.rebalanced,
            drained=metrics.drained,
            lag=self._lag,
        )
        self._lag_metrics = LagMetrics(self._monitor, per_queue=lag.per_queue)
        self._lag.start()

    async def reconcile(self, group: ConsumerGroup) -> Requeue:
        return await self._reconciler.reconcile(group)

    async def forget(self, key: GroupKey) -> None:
        await self._reconciler.forget(key)

    def troubled(self, key: GroupKey) -> bool:
        return self._reconciler.troubled(key)

    def metrics(self) -> bytes:
        """What Prometheus sees of the groups."""
        return rendered(self._reconciler.counts(), self._reconciler.conditions()) + self._lag_metrics.render()

    async def close(self) -> None:
        await self._lag.close()
        if self._history is not None:
            await self._history.close()
        await self._reconciler.close()
        await self._brokers.close()
