"""What Prometheus sees of a member: its counters as they are, its queues as they stand when they are asked for.

Nothing is kept up to date between scrapes; a scrape takes a snapshot. What labels can hold is bounded: a value is cut
at `LONGEST_LABEL`, and of more than `MOST_QUEUES` queues the rest is only counted.

prometheus_client is imported here and nowhere else, and this module only when metrics are asked for the first time: it
brings an HTTP server and a WSGI application along, which a worker that nobody scrapes need not carry.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.control.messages import QueueReport, QueueState
from rocketfleet.worker.durations import Durations

LONGEST_LABEL = 128
MOST_QUEUES = 1000
_PREFIX = "rocketfleet_worker_"
CONTENT_TYPE = CONTENT_TYPE_LATEST

# Field of the tally → name and meaning. A field that is not here is exported under its own name.
_COUNTERS = {
    "pulled": ("messages_pulled", "Messages pulled from brokers."),
    "pulls": ("pulls", "Pulls that were answered."),
    "handled": ("messages_handled", "Messages that handlers have returned from, well or not."),
    "failed": ("messages_failed", "Messages whose handler raised or asked for a retry."),
    "expired": ("messages_expired", "Messages taken from a handler that did not return in time."),
    "sent_back": ("messages_sent_back", "Failed messages that the broker took back, to be tried again or given up."),
    "send_back_failed": ("send_back_failed", "Failed messages that the broker did not take back."),
    "commits": ("commits", "Offsets committed."),
    "rebalances": ("rebalances", "Rebalances of this member."),
    "gained": ("queues_gained", "Queues taken over."),
    "lost": ("queues_lost", "Queues given up in good order."),
    "lapsed": ("queues_lapsed", "Queues lost with work in flight: a lock taken away, a lease run out."),
}


@dataclass(frozen=True, slots=True)
class MemberReading:
    """All that is exported of one member."""

    group: str
    client_id: str
    ready: bool
    members: int
    loop_delay: float
    tally: ConsumerCounters
    durations: Durations
    queues: list[QueueReport]


def render(observed: MemberReading) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_MemberFamilies(families(observed)))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _MemberFamilies(Collector):
    def __init__(self, content: Iterable[Metric]) -> None:
        self._content = list(content)

    def collect(self) -> Iterable[Metric]:
        return self._content

    def describe(self) -> Iterable[Metric]:
        return ()


def families(observed: MemberReading) -> Iterator[Metric]:
    """Every metric of a member but those of its process."""
    group = label(observed.group)
    info = InfoMetricFamily(_PREFIX + "member", "Who this is.", labels=["group"])
    info.add_metric([group], {"client_id": label(observed.client_id)})
    yield info
    for name, help_text, value in (
        ("ready", "1 once the member has joined its group and owned its share.", float(observed.ready)),
        ("group_members", "Members of the group, as seen in the last round of rebalancing.", float(observed.members)),
        ("loop_delay_seconds", "Since the event loop last ran; more than a second means that it is stuck.",
         observed.loop_delay),
    ):  # fmt: skip
        gauge = GaugeMetricFamily(_PREFIX + name, help_text, labels=["group"])
        gauge.add_metric([group], value)
        yield gauge
    for field in fields(ConsumerCounters):
        name, help_text = _COUNTERS.get(field.name, (field.name, f"The consumer's count of {field.name}."))
        counter = CounterMetricFamily(_PREFIX + name, help_text, labels=["group"])
        counter.add_metric([group], float(getattr(observed.tally, field.name)))
        yield counter
    histogram = HistogramMetricFamily(_PREFIX + "handler_seconds", "How long handlers took, a call.", labels=["group"])
    histogram.add_metric([group], observed.durations.cumulative(), observed.durations.total)
    yield histogram
    yield from _queue_families(group, observed.queues)


def _queue_families(group: str, queues: list[QueueReport]) -> Iterator[Metric]:
    by_state = GaugeMetricFamily(_PREFIX + "queues", "Queues by state.", labels=["group", "state"])
    always: set[str] = {QueueState.OWNED, QueueState.STANDBY}  # also when there are none
    for state in sorted({view.state for view in queues} | always):
        by_state.add_metric([group, state], float(sum(view.state == state for view in queues)))
    yield by_state
    labels = ["group", "topic", "broker", "queue"]
    offset = GaugeMetricFamily(_PREFIX + "queue_offset", "The offset that may be committed.", labels=labels)
    messages = GaugeMetricFamily(_PREFIX + "queue_messages", "Messages in memory.", labels=labels)
    size = GaugeMetricFamily(_PREFIX + "queue_bytes", "Bytes of message bodies in memory.", labels=labels)
    lease = GaugeMetricFamily(
        _PREFIX + "queue_lease_seconds", "Until the lock is no longer believed in.", labels=labels
    )
    for view in queues[:MOST_QUEUES]:
        values = [group, label(view.queue.topic), label(view.queue.broker), str(view.queue.queue_id)]
        if view.offset is not None:
            offset.add_metric(values, float(view.offset))
        messages.add_metric(values, float(view.messages))
        size.add_metric(values, float(view.size))
        if view.lease_seconds is not None:
            lease.add_metric(values, view.lease_seconds)
    yield from (offset, messages, size, lease)
    hidden = GaugeMetricFamily(_PREFIX + "queues_not_shown", "Queues beyond those shown one by one.", labels=["group"])
    hidden.add_metric([group], float(max(0, len(queues) - MOST_QUEUES)))
    yield hidden


def label(value: str) -> str:
    """A label's value, no longer than it may be."""
    return value if len(value) <= LONGEST_LABEL else value[: LONGEST_LABEL - 1] + "…"
