"""Alerts and dashboard against what is really exported: every metric and label exists, every alert has its runbook."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.aio.client import Configuration
from prometheus_client.parser import text_string_to_metric_families

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.api.status import Condition, ConditionType, LastDrain, LastRebalance, Truth
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.controller.operator.group_metrics import rendered
from rocketfleet.controller.operator.metrics import Metrics
from rocketfleet.controller.operator.operator import Operator, Options
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.controller.reconciling.group_state import Counts
from rocketfleet.controller.resources.pod import Defaults
from rocketfleet.lag.collecting.monitor import LagMonitor, Target
from rocketfleet.lag.figures import GroupLag, QueueLag
from rocketfleet.lag.judging.rules import LagFinding
from rocketfleet.lag.metrics import LagMetrics
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker import metrics as worker_metrics
from rocketfleet.worker.durations import Durations

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "rocketfleet" / "files"
ALERTS = yaml.safe_load((CHART / "alerts.yaml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((CHART / "dashboards" / "rocketfleet.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
SCRAPED = {"namespace", "pod", "job", "instance", "container", "service", "endpoint"}  # by Prometheus itself
METRIC = re.compile(r"\b(rocketfleet_[a-z0-9_]+)(?:\{([^}]*)\})?")


CONDITIONS = [
    Condition(
        type=kind, status=Truth.TRUE, reason="AsItShouldBe", message="", last_transition_time="2026-01-31T08:00:00Z"
    )
    for kind in ConditionType
]


class _Seen(LagMonitor):
    """A monitor that has seen one group, of which everything is known."""

    def groups(self) -> Any:
        target = Target(
            Client(ClientConfig("127.0.0.1:1")), "orders", ("orders",), ConsumeFromWhere.LAST_OFFSET,
            namespace="shop", name="orders",
        )  # fmt: skip
        row = QueueLag(MessageQueue("orders", "a", 0), 0, 9, 3, 6, 1.0, "orders-0", 1.0)
        lag = GroupLag("orders", 1.0, (row,), 6, 1.0, row.queue, 1, 1, 2.0, 2.0, 3.0, 0, 1, dlq_end=1, delayed=1)
        yield "key", target, lag, self.verdict("key")


def exported() -> dict[str, set[str]]:
    """Every sample that is exported anywhere, and its labels."""

    async def of_operator() -> bytes:
        operator = Operator(Options(Defaults("image")), Configuration(), lambda *_: None)  # type: ignore[arg-type]
        operator.metrics.passed(0.1, True)
        operator.metrics.called("GET", 200)
        operator.metrics.told(Event(EventReason.UNREACHABLE, "x"))
        operator.metrics.rebalanced(LastRebalance(reason="x", seconds=1.0, completed_at="2026-01-31T08:00:00Z"))
        drain = LastDrain(pod="p", verified=True, seconds=1.0, queues=1, completed_at="2026-01-31T08:00:00Z")
        operator.metrics.drained(drain)
        text = operator.metrics.render()
        await operator._api.close()
        return text

    monitor = _Seen()
    monitor.sweep_seconds, monitor.swept_at = 1.0, 1.0
    member = worker_metrics.MemberReading("orders", "orders-0", True, 1, 0.0, ConsumerCounters(), Durations(), [])
    texts = (
        asyncio.run(of_operator()),
        rendered([(GroupKey("shop", "orders"), Counts())], [(GroupKey("shop", "orders"), CONDITIONS)]),
        LagMetrics(monitor).render(),
        worker_metrics.render(member),
    )
    found: dict[str, set[str]] = {}
    for text in texts:
        for family in text_string_to_metric_families(text.decode()):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.fixture(scope="module")
def metrics() -> dict[str, set[str]]:
    return exported()


def expressions() -> list[tuple[str, str]]:
    """Every query of the alerts and of the dashboard, with the name of what it belongs to."""
    found = [(rule["alert"], rule["expr"]) for rule in RULES]
    found += [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
    found += [(one["name"], one["definition"]) for one in DASHBOARD["templating"]["list"] if "definition" in one]
    return found


def test_the_alerts_and_the_dashboard_are_there() -> None:
    assert len(RULES) >= 15
    assert len(PANELS) >= 20


@pytest.mark.parametrize(("owner", "query"), expressions())
def test_every_query_is_about_what_is_exported(owner: str, query: str, metrics: dict[str, set[str]]) -> None:
    used = METRIC.findall(query)
    assert used, f"{owner} asks for nothing of ours"
    allowed: set[str] = set()
    for name, selector in used:
        assert name in metrics, f"{owner}: {name} is not exported"
        labels = metrics[name] | SCRAPED
        allowed |= labels
        chosen = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector))
        assert chosen <= labels, f"{owner}: {name} has no {chosen - labels}"
    for grouped in re.findall(r"\bby \(([^)]*)\)", query):
        asked = {label.strip() for label in grouped.split(",")}
        assert asked <= allowed, f"{owner}: nothing has {asked - allowed}"
    for state in re.findall(r'state=~?"([^"]+)"', query):
        assert set(state.split("|")) <= set(LagFinding.__members__), f"{owner}: no such state"
    for kind, truth in re.findall(r'type="([^"]+)",status="([^"]+)"', query):
        assert ConditionType(kind)
        assert Truth(truth)
    for reasons in re.findall(r'reason=~?"([^"]+)"', query):
        assert set(reasons.split("|")) <= {reason.value for reason in EventReason}, f"{owner}: no such reason"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_every_alert_has_a_runbook_that_speaks_of_it(rule: dict[str, Any]) -> None:
    annotations = rule["annotations"]
    assert {"summary", "description", "runbook"} <= annotations.keys()
    assert "runbook_url" not in annotations, "a relative one leads nowhere: the chart adds it where pages are served"
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    page = ROOT / annotations["runbook"]
    assert page.is_file(), f"{annotations['runbook']} does not exist"
    text = page.read_text()
    assert rule["alert"] in text
    for part in ("## What it means", "## What to do"):
        assert part in text, f"{page.name} lacks {part}"
    labels = set(re.findall(r"\$labels\.(\w+)", json.dumps(annotations)))
    grouped = {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", rule["expr"]) for label in group.split(",")}
    assert labels <= grouped, f"{rule['alert']} speaks of labels that its query does not keep"


def test_every_state_of_the_lag_rules_has_an_alert() -> None:
    named = {state for _, query in expressions()[: len(RULES)] for state in re.findall(r'state="([^"]+)"', query)}
    assert named == {state.value for state in LagFinding} - {"OK", "UNKNOWN"}


def test_every_runbook_is_of_an_alert() -> None:
    pages = {f"docs/runbooks/{path.name}" for path in (ROOT / "docs" / "runbooks").glob("*.md")}
    assert pages - {"docs/runbooks/README.md"} == {rule["annotations"]["runbook"] for rule in RULES}


def test_panels_have_a_unit_a_datasource_and_a_place_of_their_own() -> None:
    places: set[tuple[int, int]] = set()
    for panel in PANELS:
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & places, f"{panel['title']} lies over another"
        assert place["x"] + place["w"] <= 24
        places |= cells
    identities = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(identities)) == len(identities)


def test_a_groups_namespace_is_not_replaced_by_the_operators() -> None:
    # Without it Prometheus would call ours exported_namespace, and every query here would find nothing.
    template = (CHART.parent / "templates" / "service-monitor.yaml").read_text()
    assert re.search(r"^\s+honorLabels: true$", template, re.MULTILINE)


def test_every_reason_and_result_is_counted_from_zero_on() -> None:
    """A series that begins at 1 has not increased: an alert on it would miss the first event, often the only one."""
    text = Metrics().render().decode()
    counts = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    for reason in EventReason:
        assert counts["rocketfleet_operator_events_total", reason.value] == 0
    for result in ("ok", "error"):
        assert counts["rocketfleet_operator_reconciles_total", result] == 0


def test_a_condition_has_a_series_for_each_status_it_may_have() -> None:
    away = Condition(
        type=ConditionType.BROKER_REACHABLE,
        status=Truth.FALSE,
        reason="BrokerUnreachable",
        message="",
        last_transition_time="x",
    )
    text = rendered([], [(GroupKey("shop", "orders"), [away])]).decode()
    (family,) = [one for one in text_string_to_metric_families(text) if one.name == "rocketfleet_group_condition"]
    assert {(one.labels["type"], one.labels["status"]): one.value for one in family.samples} == {
        ("BrokerReachable", "True"): 0, ("BrokerReachable", "False"): 1, ("BrokerReachable", "Unknown"): 0
    }  # fmt: skip


def test_no_alert_on_what_lasts_counts_events() -> None:
    for rule in RULES:
        reasons = set(re.findall(r'reason=~?"([^"]+)"', rule["expr"]))
        assert "BrokerUnreachable" not in "|".join(reasons), rule["alert"]
        assert not (reasons and "for" in rule), f"{rule['alert']} waits for events to go on"


class _Refused:
    """A term whose last pass was refused something."""

    def troubled(self, key: GroupKey) -> bool:
        return True


def test_a_pass_that_was_refused_something_counts_as_failed() -> None:
    async def counted() -> str:
        operator = Operator(Options(Defaults("image")), Configuration(), lambda *_: None)  # type: ignore[arg-type]
        operator._passed(GroupKey("shop", "orders"), 0.1, True)
        operator._pass.begin_term(_Refused())  # type: ignore[arg-type]
        operator._passed(GroupKey("shop", "orders"), 0.1, True)
        text = operator.metrics.render().decode()
        await operator._api.close()
        return text

    lines = asyncio.run(counted()).splitlines()
    assert 'rocketfleet_operator_reconciles_total{result="ok"} 1.0' in lines
    assert 'rocketfleet_operator_reconciles_total{result="error"} 1.0' in lines
