"""A term: what it shows of groups, and that it ends."""

import asyncio
from pathlib import Path
from typing import Any

from tests.unit.controller.stage import Stage, StageBackend, group_of

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.controller.operator.group_metrics import rendered
from rocketfleet.controller.operator.metrics import Metrics
from rocketfleet.controller.operator.term import LagOptions, Term
from rocketfleet.controller.reconciling.group_state import Counts
from rocketfleet.controller.resources.pod import Defaults
from rocketfleet.lag.samples.sinks import HistoryOptions


async def test_a_term_shows_its_groups_and_ends_with_everything_it_began(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    options = LagOptions(interval=0.1, history=HistoryOptions(directory=tmp_path))
    stage = Stage(group_of(2))
    backend: Any = StageBackend(stage)
    term = Term(backend, lambda key: None, Defaults("image"), options, Metrics())
    assert b"rocketfleet_lag_groups 0" in term.metrics()
    await term.reconcile(stage.group)
    text = term.metrics().decode()
    assert 'rocketfleet_group_desired_replicas{name="orders",namespace="default"}' in text
    assert "rocketfleet_lag_groups 1" in text
    await term.forget(stage.group.key)
    assert 'name="orders"' not in term.metrics().decode()
    await term.close()
    assert asyncio.all_tasks() == before


def test_counts_are_shown_for_each_group() -> None:
    text = rendered([(GroupKey("shop", "orders"), Counts(4, 3, 2, 5, 1))]).decode()
    labels = '{name="orders",namespace="shop"}'
    for name, value in {
        "desired_replicas": 4,
        "ready_replicas": 3,
        "rebalances_total": 2,
        "drains_total": 5,
        "drains_unverified_total": 1,
    }.items():
        assert f"rocketfleet_group_{name}{labels} {value}.0" in text, text
