"""What Prometheus sees of the operator."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.process_collector import ProcessCollector

from rocketfleet.api.status import LastDrain, LastRebalance
from rocketfleet.controller.planning.actions import Event, EventReason

CONTENT_TYPE = CONTENT_TYPE_LATEST
_PREFIX = "rocketfleet_operator_"
_BUCKET_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class Metrics:
    """Counters that the parts of the operator feed. They have no label per group: status and events tell of those."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry(auto_describe=False)
        self._passes = Counter(
            f"{_PREFIX}reconciles", "Reconciles of ConsumerGroups, by result.", ["result"], registry=registry
        )
        self._pass_seconds = Histogram(
            f"{_PREFIX}reconcile_seconds",
            "Duration of reconciles.",
            buckets=(0.01, *_BUCKET_SECONDS),
            registry=registry,
        )
        self._calls = Counter(
            f"{_PREFIX}api_requests", "Calls to the Kubernetes API, except watches.", ["method", "status"],
            registry=registry,
        )  # fmt: skip
        self._events = Counter(f"{_PREFIX}events", "Events emitted, by reason.", ["reason"], registry=registry)
        self._rebalance_seconds = Histogram(
            f"{_PREFIX}rebalance_seconds", "Seconds from a change of members until each queue had one owner.",
            buckets=_BUCKET_SECONDS, registry=registry,
        )  # fmt: skip
        self._moved = Counter(
            f"{_PREFIX}queues_moved", "Queues moved to another owner by rebalances.", registry=registry
        )
        self._drain_seconds = Histogram(
            f"{_PREFIX}drain_seconds", "From the mark of a pod to its deletion, by whether its offsets were verified.",
            ["verified"], buckets=_BUCKET_SECONDS, registry=registry,
        )  # fmt: skip
        ProcessCollector(registry=registry)
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """Give every series its first sample. One that begins with its first event at 1 has not increased, for
        Prometheus, and an alert on the increase would miss just the events that are rare.
        """
        for result in ("ok", "error"):
            self._passes.labels(result)
        for reason in EventReason:
            self._events.labels(reason.value)
        for verified in ("true", "false"):
            self._drain_seconds.labels(verified)

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """A value that is read when it is asked for."""
        Gauge(_PREFIX + name, meaning, registry=self._registry).set_function(read)

    def passed(self, seconds: float, well: bool) -> None:
        self._passes.labels("ok" if well else "error").inc()
        self._pass_seconds.observe(seconds)

    def called(self, method: str, status: int) -> None:
        self._calls.labels(method, str(status) if status else "none").inc()

    def told(self, event: Event) -> None:
        self._events.labels(event.reason.value).inc()

    def rebalanced(self, done: LastRebalance) -> None:
        self._rebalance_seconds.observe(done.seconds)
        self._moved.inc(done.moved or 0)

    def drained(self, done: LastDrain) -> None:
        self._drain_seconds.labels("true" if done.verified else "false").observe(done.seconds)

    def render(self) -> bytes:
        return generate_latest(self._registry)
