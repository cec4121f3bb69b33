"""The metrics of several processes as one text, each sample with a label `process`."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector


class _Merged(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families

    def describe(self) -> Iterable[Metric]:
        return ()


def merge(texts: Mapping[int, str], restarts: Mapping[int, int]) -> bytes:
    """The processes' own metrics, whether each answered, and how often each was restarted."""
    families: dict[str, Metric] = {}
    for process, text in sorted(texts.items()):
        for found in text_string_to_metric_families(text):
            family = families.setdefault(found.name, Metric(found.name, found.documentation, found.type))
            for sample in found.samples:
                family.samples.append(sample._replace(labels={**sample.labels, "process": str(process)}))
    up = GaugeMetricFamily("rocketfleet_worker_process_up", "1 if the process answered.", labels=["process"])
    again = CounterMetricFamily(
        "rocketfleet_worker_process_restarts", "How often the process was started again.", labels=["process"]
    )
    for process, count in sorted(restarts.items()):
        up.add_metric([str(process)], float(process in texts))
        again.add_metric([str(process)], float(count))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Merged([*families.values(), up, again]))
    return generate_latest(registry)
