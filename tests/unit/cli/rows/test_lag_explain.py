"""`lag --explain`: from a status to what people read."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rocketfleet.cli.access.lag_reading import NOTHING
from rocketfleet.cli.commands.lag import show_lag
from rocketfleet.cli.main import main
from rocketfleet.cli.rows.lag_explain import explained, explanation

NOW = 1_769_846_400.0  # 2026-01-31T08:00:00Z
GROUP: dict[str, Any] = {
    "metadata": {"name": "orders", "annotations": {"rocketfleet.io/recommended-replicas": "3"}},
    "spec": {"autoscaling": {"minReplicas": 0, "maxReplicas": 8, "targetLag": 1000, "targetSeconds": 30}},
    "status": {
        "lag": {"messages": 12, "state": "STALLED"},
        "conditions": [
            {
                "type": "LagHealthy",
                "status": "False",
                "reason": "Stalled",
                "message": "A queue stands still",
                "lastTransitionTime": "2026-01-31T07:55:00Z",
            }
        ],
        "autoscaling": {
            "replicas": 4,
            "reason": "Steady",
            "message": "stays at 4: 12 messages wait",
            "replicaRate": 98.5,
            "ceiling": 4,
            "ceilingUntil": "2026-01-31T08:15:00Z",
            "decisions": [
                {
                    "at": "2026-01-31T07:59:00Z",
                    "before": 1,
                    "replicas": 4,
                    "reason": "ScaledOut",
                    "message": "1 → 4: 900 messages wait",
                }
            ],
        },
    },
}


def test_what_is_known_is_said() -> None:
    text = explained(explanation(GROUP, NOW))
    for words in (
        "STALLED", "False, for 5m: A queue stands still", "4, of 0 to 8", "1000 messages per member, 30 s",
        "stays at 4: 12 messages wait", "98.5 messages per second", "more than 4; not tried again before 2026-01-31",
        "recommended", "60s", "900 messages wait",
    ):  # fmt: skip
        assert words in text, text
    assert "1 → 4" not in text  # it has columns of its own


def test_a_group_without_autoscaling_or_status() -> None:
    text = explained(explanation({"metadata": {"name": "orders"}, "spec": {"replicas": 2}}, NOW))
    assert "spec.replicas says how many" in text
    assert "None" not in text


def test_programs_get_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    show_lag("json", "orders", NOTHING, explanation(GROUP, NOW))
    told = json.loads(capsys.readouterr().out)["explanation"]
    assert (told["state"], told["replicas"], told["changes"][0]["before"]) == ("STALLED", 4, 1)
    show_lag("json", "orders", NOTHING)
    assert "explanation" not in json.loads(capsys.readouterr().out)


def test_dead_letters_are_counted_where_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    for count, said in ((3, True), (0, False), (None, False)):
        show_lag("table", "orders", replace(NOTHING, dead_letters=count))
        assert ("dead letters  3\n" in capsys.readouterr().out) is said
        show_lag("json", "orders", replace(NOTHING, dead_letters=count))
        assert json.loads(capsys.readouterr().out)["dead_letters"] == count


def test_without_a_cluster_or_a_run_it_says_what_is_missing(tmp_path: Path) -> None:
    manifest = tmp_path / "orders.yaml"
    manifest.write_text(
        "apiVersion: rocketfleet.io/v1alpha1\nkind: ConsumerGroup\nmetadata: {name: orders}\n"
        "spec:\n  cluster: {nameServers: ['127.0.0.1:1']}\n  subscriptions: [{topic: orders}]\n"
        "  worker: {handler: 'a:b'}\n"
    )
    arguments = ["lag", "-f", str(manifest), "--explain", "--state-dir", str(tmp_path / "run")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert "needs a rocketfleet run" in result.output
