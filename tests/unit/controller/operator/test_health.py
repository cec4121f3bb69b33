"""Health: a restart is asked for only where it helps."""

import urllib.error
import urllib.request

import pytest

from rocketfleet.api.status import LastDrain, LastRebalance
from rocketfleet.controller.operator.health import (
    LOOP_STUCK_SECONDS,
    WAITED_TOO_LONG,
    Health,
    OperatorVitals,
    not_ready,
    problems,
)
from rocketfleet.controller.operator.metrics import CONTENT_TYPE, Metrics

WELL = OperatorVitals(synced=True, watches=True)
LONG = WAITED_TOO_LONG + 1
COMPLETED = "2026-01-31T08:00:00Z"


@pytest.mark.parametrize(
    ("vitals", "since_beat", "word"),
    [
        (WELL, LOOP_STUCK_SECONDS + 1, "event loop"),
        (OperatorVitals(due=3, oldest_waits=LONG, since_pass=LONG), 0.0, "no progress"),
    ],
)
def test_what_a_restart_would_help(vitals: OperatorVitals, since_beat: float, word: str) -> None:
    assert any(word in sentence for sentence in problems(vitals, since_beat))


@pytest.mark.parametrize(
    "vitals",
    [
        WELL,
        OperatorVitals(),  # not synced: the API server may be away, and a restart would not bring it back
        OperatorVitals(due=500, oldest_waits=LONG, since_pass=1.0),  # a lot of work, and it gets done
        OperatorVitals(since_pass=LONG),  # nothing to do
        OperatorVitals(due=1, oldest_waits=LONG, since_pass=LONG, stopping=True),
    ],
)
def test_what_it_would_not(vitals: OperatorVitals) -> None:
    assert problems(vitals, 0.1) == []


def test_ready_is_who_knows_the_cluster_whether_it_leads_or_not() -> None:
    assert not_ready(WELL) is None
    assert not_ready(OperatorVitals()) is not None
    assert not_ready(OperatorVitals(synced=True)) is not None
    assert not_ready(OperatorVitals(synced=True, watches=True, stopping=True)) is not None


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_endpoints() -> None:
    metrics = Metrics()
    metrics.passed(0.2, well=True)
    metrics.passed(0.2, well=False)
    metrics.called("GET", 200)
    metrics.rebalanced(LastRebalance(reason="r", moved=4, seconds=1.5, completed_at=COMPLETED))
    metrics.rebalanced(LastRebalance(reason="nobody saw how it was before", seconds=1.5, completed_at=COMPLETED))
    metrics.drained(LastDrain(pod="p", verified=False, seconds=1.0, queues=1, completed_at=COMPLETED))
    metrics.gauge("leader", "l", lambda: 1.0)
    health = Health(metrics.render, CONTENT_TYPE)
    health.beat(WELL)
    host, port = health.start("127.0.0.1", 0)
    base = f"http://{host}:{port}"
    try:
        assert get(f"{base}/healthz") == (200, "ok\n")
        assert get(f"{base}/readyz") == (200, "stands by\n")
        health.beat(OperatorVitals(due=1, oldest_waits=LONG, since_pass=LONG))
        assert get(f"{base}/healthz")[0] == 503
        assert get(f"{base}/readyz")[0] == 503
        assert get(f"{base}/secrets")[0] == 404
        status, text = get(f"{base}/metrics")
    finally:
        health.close()
    assert status == 200
    for line in (
        'rocketfleet_operator_reconciles_total{result="ok"} 1.0',
        'rocketfleet_operator_reconciles_total{result="error"} 1.0',
        'rocketfleet_operator_api_requests_total{method="GET",status="200"} 1.0',
        "rocketfleet_operator_rebalance_seconds_count 2.0",
        "rocketfleet_operator_queues_moved_total 4.0",
        "rocketfleet_operator_leader 1.0",
    ):
        assert line in text.splitlines()
    for verified, count in {"true": 0, "false": 1}.items():
        assert f'rocketfleet_operator_drain_seconds_count{{verified="{verified}"}} {count}.0' in text.splitlines()
