"""The chart without a cluster: what it renders, and that it carries the definitions of this tree."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.operator_release import CHART
from tests.cluster.provision import programs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", autouse=True)
def _helm_is_there(request: pytest.FixtureRequest) -> None:
    """On a fresh machine helm comes with the cluster."""
    if not (programs() / "helm").exists() and shutil.which("helm") is None:
        request.getfixturevalue("provision")


def helm(*arguments: str) -> "subprocess.CompletedProcess[str]":
    path = programs() / "helm"
    program = str(path) if path.exists() else "helm"
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def rendered(*settings: str) -> list[dict[str, Any]]:
    given = [part for setting in settings for part in ("--set", setting)]
    answer = helm("template", "rf", str(CHART), "-n", "system", "--kube-version=1.34.0", *given)
    assert answer.returncode == 0, answer.stderr
    return [manifest for manifest in yaml.safe_load_all(answer.stdout) if manifest]


def of_kind(manifests: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


@pytest.mark.core
def test_the_charts_definitions_are_those_of_the_tree() -> None:
    ours = {path.name: path.read_text() for path in (ROOT / "crds").glob("*.yaml")}
    charts = {path.name: path.read_text() for path in (CHART / "files" / "crds").glob("*.yaml")}
    assert ours
    assert charts == ours, "run `make crds`"


@pytest.mark.core
def test_a_rendered_definition_is_the_trees_with_one_annotation() -> None:
    (definition,) = of_kind(rendered(), "CustomResourceDefinition")
    (original,) = [yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml")]
    assert definition["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert definition == original
    assert not of_kind(rendered("crds.install=false"), "CustomResourceDefinition")


@pytest.mark.core
def test_no_right_has_a_wildcard() -> None:
    for manifests in (rendered(), rendered("watchNamespaces={a,b}")):
        for role in of_kind(manifests, "ClusterRole") + of_kind(manifests, "Role"):
            for rule in role["rules"]:
                assert "*" not in json.dumps(rule), role["metadata"]["name"]


@pytest.mark.core
def test_named_namespaces_need_no_cluster_wide_binding() -> None:
    manifests = rendered("watchNamespaces={a,b}")
    assert not of_kind(manifests, "ClusterRoleBinding")
    bound = {(role["metadata"]["namespace"], role["roleRef"]["name"]) for role in of_kind(manifests, "RoleBinding")}
    assert {("a", "rf-rocketfleet"), ("b", "rf-rocketfleet"), ("system", "rf-rocketfleet-leader")} <= bound
    (deployment,) = of_kind(manifests, "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"--namespace=a", "--namespace=b"} <= set(arguments)


@pytest.mark.core
def test_spark_drivers_may_make_pods_and_nothing_else() -> None:
    assert not [role for role in of_kind(rendered(), "Role") if "spark" in role["metadata"]["name"]]
    manifests = rendered("spark.namespaces={shop}", "spark.serviceAccount=drivers")
    (role,) = [role for role in of_kind(manifests, "Role") if role["metadata"]["namespace"] == "shop"]
    assert [rule["resources"] for rule in role["rules"]] == [["pods"]]
    assert ("drivers", "shop") in {
        (account["metadata"]["name"], account["metadata"]["namespace"])
        for account in of_kind(manifests, "ServiceAccount")
    }
    (deployment,) = of_kind(manifests, "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--spark-service-account=drivers" in arguments
    assert any(argument.startswith("--spark-image=rocketfleet/spark:") for argument in arguments)


@pytest.mark.core
def test_one_replica_has_no_disruption_budget() -> None:
    assert of_kind(rendered(), "PodDisruptionBudget")
    assert not of_kind(rendered("replicas=1"), "PodDisruptionBudget")


@pytest.mark.core
@pytest.mark.parametrize("setting", ["replica=3", "image.digest=sha256:1", "watchNamespaces={Upper}", "replicas=many"])
def test_wrong_values_are_refused(setting: str) -> None:
    answer = helm("template", "rf", str(CHART), "--kube-version=1.34.0", "--set", setting)
    assert answer.returncode != 0
    assert "values don't meet the specifications" in answer.stderr


@pytest.mark.core
def test_checkov_finds_nothing() -> None:
    answer = subprocess.run([str(Path(__file__).parent / "lint-chart")], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_consumers_are_scraped_where_the_operator_looks_after_them() -> None:
    assert not of_kind(rendered(), "PodMonitor")
    (monitor,) = of_kind(rendered("podMonitor.enabled=true"), "PodMonitor")
    assert monitor["spec"]["namespaceSelector"] == {"any": True}
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] == "control"
    (monitor,) = of_kind(rendered("podMonitor.enabled=true", "watchNamespaces={a,b}"), "PodMonitor")
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["a", "b"]}


def test_the_lags_history_is_sent_by_tls_where_that_is_asked_for() -> None:
    where = ("operator.lag.history.topic=lag", "operator.lag.history.nameServers=a:1")

    def arguments(*settings: str) -> list[str]:
        (deployment,) = of_kind(rendered(*where, *settings), "Deployment")
        given: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        return [argument for argument in given if argument.startswith("--lag-history")]

    plain = ["--lag-history-every=60", "--lag-history-topic=lag", "--lag-history-name-server=a:1"]
    assert arguments() == plain
    assert arguments("operator.lag.history.tls.enabled=true") == [*plain, "--lag-history-tls"]
    assert arguments("operator.lag.history.tls.caFile=/ca/ca.pem") == [*plain, "--lag-history-ca-file=/ca/ca.pem"]
