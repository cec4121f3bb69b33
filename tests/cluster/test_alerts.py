"""The alerts without a cluster, as Prometheus judges them: each fires on the first occurrence, and while it lasts."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
ALERTS = HERE.parents[1] / "helm" / "rocketfleet" / "files" / "alerts.yaml"
TESTS = HERE / "alerts_test.yaml"


@pytest.mark.core
def test_every_alert_fires_when_it_should() -> None:
    answer = subprocess.run(
        [str(HERE / "promtool"), "test", "rules", str(TESTS)], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.core
def test_every_alert_is_tested() -> None:
    rules: list[dict[str, Any]] = [
        rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
    ]
    text = TESTS.read_text()
    assert [rule["alert"] for rule in rules if rule["alert"] not in text] == []
