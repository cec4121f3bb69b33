"""What a driver that is started by hand tells Spark of its executors' pods."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rocketfleet.cli.commands.spark import spark
from rocketfleet.spark.submitting.executor_pods import (
    SubmitterPlace,
    pod_settings,
    what_is_missing,
    whereabouts,
    write_template,
)

TEMPLATE = Path("/tmp/executor.json")


def test_in_a_pod_executors_come_to_the_driver_and_belong_to_it() -> None:
    settings = pod_settings({}, SubmitterPlace("10.0.0.7", "shop", "driver"), TEMPLATE)
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "10.0.0.7"
    assert settings["spark.kubernetes.namespace"] == "shop"
    assert settings["spark.kubernetes.driver.pod.name"] == "driver"
    assert settings["spark.kubernetes.executor.podTemplateFile"] == str(TEMPLATE)
    assert settings["spark.kubernetes.executor.disableConfigMap"] == "true"


def test_what_is_given_wins() -> None:
    given = {
        "spark.driver.host": "gate.example",
        "spark.driver.bindAddress": "0.0.0.0",
        "spark.kubernetes.namespace": "other",
        "spark.kubernetes.executor.podTemplateFile": "mine.json",
    }
    settings = pod_settings(given, SubmitterPlace("10.0.0.7", "shop", None), TEMPLATE)
    assert not settings.keys() & given.keys()
    assert settings["spark.kubernetes.executor.useDriverPodIP"] == "false", "or executors are sent to 0.0.0.0"


def test_what_is_not_known_is_left_to_spark() -> None:
    settings = pod_settings({}, SubmitterPlace(), TEMPLATE)
    assert not settings.keys() & {"spark.driver.host", "spark.kubernetes.namespace", "spark.kubernetes.driver.pod.name"}


def test_the_whereabouts_of_a_pod(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("shop\n")
    environment = {"POD_NAME": "driver", "POD_IP": "10.0.0.7"}
    found = whereabouts("k8s://https://10.96.0.1", environment, tmp_path / "namespace")
    assert found == SubmitterPlace("10.0.0.7", "shop", "driver")


@pytest.mark.parametrize("master", ["k8s://https://127.0.0.1:6443", "k8s://127.0.0.1:6443", "k8s://[::1", "k8s://"])
def test_outside_a_loopback_address_is_nothing_that_pods_reach(master: str, tmp_path: Path) -> None:
    assert whereabouts(master, {"POD_NAME": "driver"}, tmp_path / "namespace") == SubmitterPlace()


def test_the_template_keeps_to_the_restricted_level(tmp_path: Path) -> None:
    spec = json.loads(write_template(tmp_path / "executor.json").read_text())["spec"]
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    (container,) = spec["containers"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert spec["automountServiceAccountToken"] is False


def test_without_an_image_it_is_one_sentence(tmp_path: Path) -> None:
    pipeline = tmp_path / "pipeline.py"
    pipeline.write_text("def pipeline(spark): ...\n")
    answer = CliRunner().invoke(spark, ["submit", "--master", "k8s://https://127.0.0.1:1", str(pipeline)])
    assert answer.exit_code == 1
    assert "the executors need an image" in answer.output


def test_an_image_is_asked_for_with_k8s_alone() -> None:
    assert what_is_missing("local[2]", {}) is what_is_missing("spark://127.0.0.1:7077", {}) is None
    for name in ("spark.kubernetes.container.image", "spark.kubernetes.executor.container.image"):
        assert what_is_missing("k8s://https://127.0.0.1", {name: "us/spark:1"}) is None
    assert "--conf spark.kubernetes.container.image=" in str(what_is_missing("k8s://https://127.0.0.1", {}))
