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
REGISTRY = "imageRegistry=registry.example/rf"


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
    given = [part for setting in (REGISTRY, *settings) for part in ("--set", setting)]
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
def test_secrets_and_config_maps_are_read_by_name_only() -> None:
    rules = [rule for role in of_kind(rendered(), "ClusterRole") for rule in role["rules"]]
    verbs = {resource: set(rule["verbs"]) for rule in rules for resource in rule["resources"]}
    assert verbs["configmaps"] == {"get"}
    assert not verbs["secrets"] & {"list", "watch"}


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
def test_nodes_are_read_one_by_one_and_only_by_an_operator_for_the_whole_cluster() -> None:
    def about_nodes(*values: str) -> list[list[str]]:
        roles = of_kind(rendered(*values), "ClusterRole") + of_kind(rendered(*values), "Role")
        return [rule["verbs"] for role in roles for rule in role["rules"] if "nodes" in rule["resources"]]

    assert about_nodes() == [["get"]]
    assert about_nodes("watchNamespaces={a,b}") == []


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
    assert any(argument.startswith("--spark-image=registry.example/rf/spark:") for argument in arguments)


@pytest.mark.core
def test_one_replica_has_no_disruption_budget() -> None:
    assert of_kind(rendered(), "PodDisruptionBudget")
    assert not of_kind(rendered("replicas=1"), "PodDisruptionBudget")


@pytest.mark.core
@pytest.mark.parametrize(
    "setting",
    [
        "replica=3",
        "image.digest=sha256:1",
        "watchNamespaces={Upper}",
        "replicas=many",
        "operator.allowedNameServers={ }",
        "operator.allowedNameServers={*}",
    ],
)
def test_wrong_values_are_refused(setting: str) -> None:
    answer = helm("template", "rf", str(CHART), "--kube-version=1.34.0", "--set", REGISTRY, "--set", setting)
    assert answer.returncode != 0
    assert "values don't meet the specifications" in answer.stderr


@pytest.mark.core
@pytest.mark.parametrize("key", sorted(yaml.safe_load((CHART / "values.yaml").read_text())["operator"]))
def test_a_value_that_an_earlier_release_did_not_have_is_not_rendered_as_nothing(key: str) -> None:
    # As with `helm upgrade --reuse-values`, where values that the chart has added since are missing.
    setting = f"{REGISTRY},operator.{key}=null"
    answer = helm("template", "rf", str(CHART), "--kube-version=1.34.0", "--set", setting)
    if answer.returncode:
        assert "--reset-then-reuse-values" in answer.stderr, answer.stderr
        return
    (deployment,) = of_kind([one for one in yaml.safe_load_all(answer.stdout) if one], "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert not [argument for argument in container["args"] if argument.endswith("=")]


def operators_container(*settings: str) -> dict[str, Any]:
    (deployment,) = of_kind(rendered(*settings), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(container)


@pytest.mark.core
@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ((), "Where is the operator's image?"),
        (("image.repository=mine/operator",), "Where is the worker's image?"),
    ],
)
def test_an_image_that_nobody_publishes_is_no_default(settings: tuple[str, ...], missing: str) -> None:
    given = [part for setting in settings for part in ("--set", setting)]
    answer = helm("template", "rf", str(CHART), "--kube-version=1.34.0", *given)
    assert answer.returncode != 0
    assert missing in answer.stderr
    assert "imageRegistry=registry.example/rocketfleet" in answer.stderr


@pytest.mark.core
def test_images_come_from_one_registry_or_from_where_they_are_said_to_be() -> None:
    container = operators_container()
    assert container["image"] == "registry.example/rf/operator:0.1.0"
    assert "--worker-image=registry.example/rf/worker:0.1.0" in container["args"]
    digest = f"sha256:{'a' * 64}"
    container = operators_container(
        "imageRegistry=",
        "image.repository=one/operator",
        f"image.digest={digest}",
        "workerImage.repository=two/worker",
        "workerImage.tag=v7",
    )
    assert container["image"] == f"one/operator@{digest}"
    assert "--worker-image=two/worker:v7" in container["args"]
    assert not any(argument.startswith("--spark-image") for argument in container["args"])


def test_the_operator_is_told_its_class_and_its_limits() -> None:
    plain = operators_container()["args"]
    assert not any("--operator-class" in argument or "--allowed-name" in argument for argument in plain)
    assert {"--max-rolling-groups=10", "--lease-duration=15", "--kube-api-qps=100", "--bind=::"} <= set(plain)
    told = operators_container("operatorClass=blue", "operator.allowedNameServers={.rocketmq.svc,10.0.0.0/8}")["args"]
    names = {"--allowed-name-servers=.rocketmq.svc", "--allowed-name-servers=10.0.0.0/8"}
    assert {"--operator-class=blue", *names} <= set(told)


def test_lease_times_that_the_operator_would_refuse_are_refused_before() -> None:
    given = ("--set", REGISTRY, "--set", "operator.leaseDurationSeconds=5")
    answer = helm("template", "rf", str(CHART), "--kube-version=1.34.0", *given)
    assert answer.returncode != 0
    assert "shorter than leaseDurationSeconds" in answer.stderr


def test_large_numbers_of_a_values_file_are_whole(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("operator: {maxRollingGroups: 1000000}\n")  # a float, as Helm reads it
    answer = helm("template", "rf", str(CHART), "--kube-version=1.34.0", "--set", REGISTRY, "-f", str(values))
    assert "--max-rolling-groups=1000000\n" in answer.stdout, answer.stderr


def test_users_can_be_left_to_the_cluster() -> None:
    users = ("runAsUser", "runAsGroup", "fsGroup")
    manifests = rendered(*(f"podSecurityContext.{user}=null" for user in users))
    (deployment,) = of_kind(manifests, "Deployment")
    (test,) = of_kind(manifests, "Pod")
    for spec in (deployment["spec"]["template"]["spec"], test["spec"]):
        assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        (container,) = spec["containers"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.core
def test_the_control_port_is_closed_to_strangers_and_no_other_port_is() -> None:
    manifests = rendered("watchNamespaces={a}", "networkPolicy.consumerMetricsFrom={monitoring}")
    policies = {policy["metadata"]["name"]: policy for policy in of_kind(manifests, "NetworkPolicy")}
    assert policies.keys() == {"rf-rocketfleet", "rf-rocketfleet-worker", "rf-rocketfleet-spark"}
    for engine, guarded in (("Worker", {9470}), ("Spark", {7078, 7079, 9470})):
        spec = policies[f"rf-rocketfleet-{engine.lower()}"]["spec"]
        assert spec["podSelector"] == {"matchLabels": {"rocketfleet.io/engine": engine}}, "not engine Container"
        assert spec["policyTypes"] == ["Ingress"]
        everybody, ours, *_ = spec["ingress"]
        ranges = [port for port in everybody["ports"] if port.get("protocol", "TCP") == "TCP"]
        reached = {number for port in ranges for number in range(port["port"], port["endPort"] + 1)}
        assert reached == set(range(1, 65536)) - guarded
        assert "from" not in everybody
        assert ours["ports"] == [{"port": 9470}]
        operator, scraper = ours["from"]
        assert operator["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "operator"
        assert scraper["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "monitoring"}
    assert len(of_kind(rendered(), "NetworkPolicy")) == 1, "a release for the whole cluster knows no namespaces"
    assert not of_kind(rendered("networkPolicy.enabled=false", "watchNamespaces={a}"), "NetworkPolicy")


def test_a_monitor_that_could_not_reach_the_consumers_is_refused() -> None:
    settings = (REGISTRY, "podMonitor.enabled=true", "watchNamespaces={a}")
    given = [part for setting in settings for part in ("--set", setting)]
    answer = helm("template", "rf", str(CHART), "--kube-version=1.34.0", *given)
    assert answer.returncode != 0
    assert "networkPolicy.consumerMetricsFrom" in answer.stderr


@pytest.mark.core
def test_checkov_finds_nothing() -> None:
    answer = subprocess.run([str(Path(__file__).parent / "lint-chart")], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_consumers_are_scraped_where_the_operator_looks_after_them() -> None:
    assert not of_kind(rendered(), "PodMonitor")
    (monitor,) = of_kind(rendered("podMonitor.enabled=true"), "PodMonitor")
    assert monitor["spec"]["namespaceSelector"] == {"any": True}
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] == "control"
    named = ("podMonitor.enabled=true", "watchNamespaces={a,b}", "networkPolicy.consumerMetricsFrom={monitoring}")
    (monitor,) = of_kind(rendered(*named), "PodMonitor")
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


@pytest.mark.core
def test_alerts_have_an_address_only_where_their_pages_are_served() -> None:
    def annotations(*settings: str) -> list[dict[str, str]]:
        (rule,) = of_kind(rendered("prometheusRule.enabled=true", *settings), "PrometheusRule")
        return [one["annotations"] for group in rule["spec"]["groups"] for one in group["rules"]]

    assert annotations()
    for found in annotations():
        assert "runbook_url" not in found
        assert (ROOT / found["runbook"]).is_file()
    for found in annotations("prometheusRule.runbooks=https://docs.example/runbooks/"):
        page = found["runbook"].removeprefix("docs/runbooks/")
        assert found["runbook_url"] == f"https://docs.example/runbooks/{page}"
