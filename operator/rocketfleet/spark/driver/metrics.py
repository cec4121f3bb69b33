"""What Prometheus sees of a driver. Spark's own metrics are Spark's to export; these are the group's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.process_collector import ProcessCollector

from rocketfleet.worker.metrics import MOST_QUEUES, label

if TYPE_CHECKING:
    from rocketfleet.spark.driver.driver import Driver

CONTENT_TYPE = CONTENT_TYPE_LATEST
_PREFIX = "rocketfleet_spark_"


def render(driver: Driver) -> bytes:
    """The text that Prometheus reads. A scrape takes a snapshot."""
    registry = CollectorRegistry(auto_describe=False)
    group, standing = label(driver.spec.settings.group), driver.standing
    figures: list[tuple[str, str, float | None]] = [
        ("ready", "1 once the query runs and the broker lists its member.", float(not driver.not_ready())),
        ("group_members", "Members of the group; more than 1 is a mistake.", float(len(driver.members))),
        ("executors", "Executors that the driver has.", standing.executors),
        ("lost_messages", "Messages that were gone before they could be read.", float(standing.lost)),
        ("loop_delay_seconds", "Since the query was last looked at.", driver.since_beat),
    ]
    batch = standing.batch
    if batch is not None:
        figures += [
            ("batch", "Number of the last batch that is done.", float(batch.batch)),
            ("batch_messages", "Messages in it.", float(batch.messages)),
            ("batch_seconds", "How long it took.", batch.seconds),
            ("messages_per_second", "Messages per second that it processed.", batch.per_second),
        ]
    for name, help_text, value in figures:
        if value is not None:
            Gauge(_PREFIX + name, help_text, ["group"], registry=registry).labels(group).set(value)
    labels = ["group", "topic", "broker", "queue"]
    offset = Gauge(_PREFIX + "queue_offset", "Everything before it is done.", labels, registry=registry)
    for queue in driver.owned[:MOST_QUEUES]:
        values = (group, label(queue.topic), label(queue.broker), str(queue.queue_id))
        offset.labels(*values).set(standing.done[queue])
    ProcessCollector(registry=registry)
    return generate_latest(registry)
