"""Day-2 commands towards the Kubernetes API: what they read, what they write, and how they say no."""

import base64
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.cli.day2_api import GROUPS, PODS, SECRETS, FakeApi, serving

from rocketfleet.cli.access import kube_access
from rocketfleet.cli.access.in_cluster_command import OVERRIDES
from rocketfleet.cli.commands import drain as drain_command
from rocketfleet.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = (
    "status", "members", "lag", "rebalance", "drain", "reset-offsets", "snapshot-offsets", "restore-offsets",
)  # fmt: skip


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    made = FakeApi()
    for variable in ("ROCKETFLEET_ACCESS_KEY", "ROCKETFLEET_SECRET_KEY", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    with serving(made, tmp_path) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        yield made


def run(*arguments: str, code: int = 0, **options: Any) -> Result:
    result = CliRunner().invoke(main, arguments, **options)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.stderr
    return result


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example_and_kubectl_s_options(command: str) -> None:
    text = run(command, "--help").output
    assert f"rocketfleet {command}" in text.partition("Example")[2]
    for option in ("--namespace", "--context", "--kubeconfig"):
        assert option in text


@pytest.mark.parametrize(
    ("program", "shown"),
    [("/usr/bin/kubectl-rocketfleet", "kubectl rocketfleet"), ("/usr/bin/rocketfleet", "rocketfleet")],
)
def test_as_a_plugin_it_calls_itself_what_people_type(
    program: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [program, "lag", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.startswith(f"Usage: {shown} lag ")


# -- status and members -----------------------------------------------------------------------------------------------


def test_the_groups_of_a_namespace_page_by_page(api: FakeApi) -> None:
    for name in ("a", "b", "c", "d", "e"):
        api.add_group(name, status={"readyReplicas": 1, "desiredReplicas": 2})
    lines = run("status").stdout.splitlines()
    assert lines[0].split()[:3] == ["NAME", "GROUP", "STATE"]
    assert [line.split()[0] for line in lines[1:]] == ["a", "b", "c", "d", "e"]
    assert [row["name"] for row in json.loads(run("status", "-A", "-o", "json").stdout)] == ["a", "b", "c", "d", "e"]
    assert "NAMESPACE" in run("status", "-A").stdout
    assert set(api.tokens) == {"Bearer t0ken"}


def test_no_group_is_no_error(api: FakeApi) -> None:
    result = run("status")
    assert (result.stdout, result.stderr) == ("", "There is no ConsumerGroup in namespace shop.\n")
    assert json.loads(run("status", "-o", "json").stdout) == []


def test_one_group_with_its_conditions(api: FakeApi) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "AllReady", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    api.add_group("orders", status={"observedGeneration": 1, "conditions": [ready], "lag": {"messages": 7}})
    text = run("status", "orders").stdout
    assert "shop/orders" in text
    assert "7 messages" in text
    assert "AllReady" in text
    told = json.loads(run("status", "orders", "-o", "json").stdout)
    assert (told["state"], told["lag"], told["up_to_date"]) == ("Ready", 7, True)
    api.objects[f"{GROUPS}/orders"]["metadata"]["generation"] = 2
    assert "has changed since the operator last looked" in run("status", "orders").stderr
    api.add_group("new")
    assert "no operator has looked at this group yet" in run("status", "new").stderr


def test_members_are_pods_and_guests(api: FakeApi) -> None:
    members = [
        {"pod": "orders-0", "clientId": "c0", "queues": 4, "state": "Running"},
        {"clientId": "j", "state": "Guest"},
    ]
    api.add_group("orders", status={"members": members})
    api.add_pod("orders-1")
    api.add_pod("orders-0")
    api.add_pod("other-0", group="other")
    rows = json.loads(run("members", "orders", "-o", "json").stdout)
    assert [(row["pod"], row["client_id"], row["ready"]) for row in rows] == [
        ("orders-0", "c0", True),
        ("orders-1", None, True),
        (None, "j", None),
    ]
    assert run("members", "orders").stdout.splitlines()[1].split()[:2] == ["orders-0", "Running"]


# -- rebalance --------------------------------------------------------------------------------------------------------


def test_a_rebalance_is_a_note_on_the_object(api: FakeApi) -> None:
    api.add_group("orders")
    assert "rocketfleet status orders -n shop" in run("rebalance", "orders").stdout
    ((path, kind, body),) = api.patches
    assert (path, kind) == (f"{GROUPS}/orders", "application/merge-patch+json")
    assert list(body) == ["metadata"]
    (moment,) = body["metadata"]["annotations"].values()
    assert list(body["metadata"]["annotations"]) == ["rocketfleet.io/rebalance-requested"]
    assert moment.endswith("Z")
    run("rebalance", "orders")
    assert api.patches[1][2] != body  # a second request is another one


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"messageModel": "Broadcasting"}, "every member has every queue"),
        ({"engine": "Container"}, "share out their queues by themselves"),
        ({"suspend": True}, "there are no members to tell"),
    ],
)
def test_a_rebalance_that_would_do_nothing_is_refused(api: FakeApi, spec: dict[str, Any], reason: str) -> None:
    api.add_group("orders", spec=spec)
    assert reason in run("rebalance", "orders", code=1).stderr
    assert api.patches == []


# -- drain ------------------------------------------------------------------------------------------------------------


def test_a_drain_is_a_mark_on_that_very_pod(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.add_pod("orders-1", uid="u7")
    before = time.time()
    monkeypatch.setattr(kube_access, "time", SimpleNamespace(time=lambda: 5.0))  # a laptop whose clock is late
    assert "orders-1 is to be drained" in run("drain", "orders-1").stdout
    ((path, _, body),) = api.patches
    assert path == f"{PODS}/orders-1"
    assert body["metadata"]["uid"] == "u7"
    mark = json.loads(body["metadata"]["annotations"]["rocketfleet.io/drain"])
    assert mark["reason"] == "requested"
    assert mark["since"] >= before - 1
    assert "is being drained already" in run("drain", "orders-1").stdout
    assert len(api.patches) == 1  # its time begins once


def test_only_pods_of_groups_are_drained(api: FakeApi) -> None:
    api.add_pod("database-0", group=None)
    assert "belongs to no ConsumerGroup" in run("drain", "database-0", code=1).stderr
    assert "there is no pod nobody in namespace shop" in run("drain", "nobody", code=1).stderr
    assert api.patches == []


def test_a_pod_that_took_the_name_meanwhile_is_left_alone(api: FakeApi) -> None:
    api.add_pod("orders-1", uid="old")
    real = api.patch

    def replaced_first(path: str, kind: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        api.add_pod("orders-1", uid="new")
        return real(path, kind, body)

    api.patch = replaced_first  # type: ignore[method-assign]  # a fault put in the server's way
    assert "it changed meanwhile" in run("drain", "orders-1", code=1).stderr
    assert "annotations" not in api.objects[f"{PODS}/orders-1"]["metadata"]


def test_waiting_tells_of_every_step_until_the_pod_is_another(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_command, "LOOK_EVERY", 0.01)
    pod = api.add_pod("orders-1", uid="old")
    terminated = {"name": "consumer", "state": {"terminated": {"exitCode": 0}}}
    steps: Iterator[Callable[[], object]] = iter(
        [
            lambda: None,
            lambda: None,
            lambda: pod["status"].update(phase="Succeeded", containerStatuses=[terminated]),
            lambda: pod["metadata"].update(deletionTimestamp="now"),
            lambda: api.add_pod("orders-1", uid="new"),
        ]
    )

    def step(_path: str) -> None:
        next(steps)()

    api.on_get = step
    lines = run("drain", "orders-1", "--wait").stdout.splitlines()
    assert [line.partition("orders-1 ")[2] for line in lines] == [
        "is to be drained; the operator does the rest",
        "is finishing what it has begun",
        "has drained; its offsets are being read back",
        "is being deleted",
        "is gone",
    ]


def test_waiting_ends_and_says_where_to_look(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_command, "LOOK_EVERY", 0.01)
    api.add_pod("orders-1")
    assert (
        "kubectl describe consumergroup orders -n shop"
        in run("drain", "orders-1", "--wait", "--timeout", "0.05", code=1).stderr
    )


def test_waiting_for_a_pod_that_is_deleted_for_good(api: FakeApi) -> None:
    api.add_pod("orders-1", deletionTimestamp="now")
    looked: list[str] = []

    def gone_at_second(path: str) -> None:
        looked.append(path)
        if len(looked) == 2:
            del api.objects[path]

    api.on_get = gone_at_second
    lines = run("drain", "orders-1", "--wait").stdout.splitlines()
    assert lines[0] == "orders-1 is being deleted already"
    assert lines[-1].endswith("orders-1 is gone")
    assert api.patches == []


# -- saying no --------------------------------------------------------------------------------------------------------


def test_what_is_missing_is_named(api: FakeApi) -> None:
    for command in (["status", "nobody"], ["members", "nobody"], ["lag", "nobody"], ["rebalance", "nobody"]):
        assert "there is no ConsumerGroup nobody in namespace shop" in run(*command, code=1).stderr
    assert "in namespace bar" in run("status", "nobody", "-n", "bar", code=1).stderr
    assert "in namespace default" in run("status", "nobody", "--context", "other", code=1).stderr
    for command in (["lag"], ["members"], ["snapshot-offsets"]):
        assert "say which group" in run(*command, code=2).stderr


def test_a_cluster_without_the_resource_is_said(api: FakeApi) -> None:
    api.knows_groups = False
    assert "knows no ConsumerGroups: install Rocketfleet" in run("status", code=1).stderr


def test_what_the_api_refuses_is_said_in_its_words(api: FakeApi) -> None:
    api.refusals[GROUPS] = (403, 'User "eve" cannot list resource')
    assert 'User "eve" cannot list resource' in run("status", code=1).stderr
    api.refusals[GROUPS] = (401, "Unauthorized")
    assert "Unauthorized: log in, then try again" in run("status", code=1).stderr


def test_no_api_and_no_kubeconfig_are_sentences(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = json.loads(Path(tmp_path / "kubeconfig").read_text())
    config["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:1"
    (tmp_path / "dead").write_text(json.dumps(config))
    assert (
        "the Kubernetes API could not be reached"
        in run("status", "--kubeconfig", str(tmp_path / "dead"), code=1).stderr
    )
    assert "cannot reach a Kubernetes cluster" in run("status", "--context", "nowhere", code=1).stderr
    assert "cannot reach a Kubernetes cluster" in run("status", "--kubeconfig", str(tmp_path / "none"), code=1).stderr
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(kube_access, "local_instead", lambda _asked: "; there is one at 127.0.0.1:7001")
    caplog.clear()
    said = run("status", code=1).stderr
    assert not caplog.records  # nor does the library say anything beside it
    assert f"there is no {tmp_path}/home/.kube/config, and KUBECONFIG is not set" in said
    assert said.endswith("the group's name; there is one at 127.0.0.1:7001\n")
    assert said.count("\n") == 1


def test_in_a_pod_the_service_account_is_used(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = json.loads((tmp_path / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "kubernetes")
    monkeypatch.setattr(kube_access, "SERVICE_ACCOUNT", tmp_path)
    (tmp_path / "namespace").write_text("shop\n")

    def load(client_configuration: Any) -> None:
        client_configuration.host = server
        client_configuration.api_key["BearerToken"] = "Bearer of-the-pod"

    monkeypatch.setattr("kubernetes.aio.config.load_incluster_config", load)
    api.add_group("orders")
    assert "orders" in run("status").stdout
    assert api.tokens == ["Bearer of-the-pod"]
    # There, advice to go where we are already would be no help.
    assert "kubectl" not in run("lag", "orders", code=1).stderr


# -- on the way to the broker -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["lag"], ["snapshot-offsets"], ["members", "--at-broker"]])
def test_a_broker_out_of_reach_comes_with_advice(api: FakeApi, command: list[str]) -> None:
    api.add_group("orders")
    said = run(*command, "orders", code=1).stderr
    assert "127.0.0.1:1" in said
    assert f"--command -- rocketfleet {' '.join(command)} orders -n shop" in said
    assert "docs/operations.md" in said
    assert "deploy/rocketfleet" not in said


def test_credentials_come_from_the_secret(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.add_group("orders", spec={"cluster": {"nameServers": ["127.0.0.1:1"], "credentials": {"secretName": "s"}}})
    said = run("lag", "orders", code=1).stderr
    assert "cannot read Secret s" in said
    assert "--credentials-file" in said
    api.refusals[f"{SECRETS}/s"] = (403, "no secrets for you")
    assert "no secrets for you" in run("lag", "orders", code=1).stderr
    api.refusals.clear()
    api.objects[f"{SECRETS}/s"] = {"data": {"accessKey": base64.b64encode(b"user").decode()}}
    assert "Secret s has no secretKey" in run("lag", "orders", code=1).stderr
    api.objects[f"{SECRETS}/s"]["data"]["secretKey"] = base64.b64encode(b"hunter2").decode()
    said = run("lag", "orders", code=1).output
    assert "127.0.0.1:1" in said  # it got as far as that
    assert "hunter2" not in said
    del api.objects[f"{SECRETS}/s"]
    monkeypatch.setenv("ROCKETFLEET_ACCESS_KEY", "user")
    monkeypatch.setenv("ROCKETFLEET_SECRET_KEY", "hunter2")
    assert "cannot read Secret" not in run("lag", "orders", code=1).stderr


def test_a_name_server_of_the_environment_leads_nowhere_else(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.add_group("orders")
    monkeypatch.setenv("ROCKETFLEET_NAME_SERVERS", "127.0.0.1:2")
    assert "127.0.0.1:1:" in run("lag", "orders", code=1).stderr
    assert "127.0.0.1:3:" in run("lag", "orders", "--name-server", "127.0.0.1:3", code=1).stderr


MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: handler}
---
apiVersion: rocketfleet.io/v1alpha1
kind: ConsumerGroup
metadata: {name: orders}
spec:
  cluster: {nameServers: ["127.0.0.1:1"]%s}
  subscriptions: [{topic: orders}]
  worker: {handler: "handlers:handle"}
"""


def test_a_manifest_needs_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "orders.yaml"
    path.write_text(MANIFEST % "")
    for command in ("lag", "status", "members", "snapshot-offsets"):
        said = run(command, "-f", str(path), code=1).stderr
        assert "127.0.0.1:1" in said
        assert "kubectl" not in said
    assert "has no ConsumerGroup bills; it has: orders" in run("lag", "bills", "-f", str(path), code=1).stderr
    path.write_text(MANIFEST % ", credentials: {secretName: s}")
    assert (
        "cannot read Secret s: it is not in the manifest's file; give --credentials-file"
        in run("lag", "-f", str(path), code=1).stderr
    )
    path.write_text(MANIFEST % ", nonsense: 1")
    assert "spec.cluster.nonsense" in run("lag", "-f", str(path), code=1).stderr
    path.write_text("a: [")
    assert "is not YAML" in run("lag", "-f", str(path), code=1).stderr
    path.write_text("kind: ConfigMap")
    assert "kind 'ConfigMap' is not read" in run("lag", "-f", str(path), code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["reset-offsets", "orders", "--to", "tomorrow"], "neither latest, earliest nor a time, and as a file"),
        (["reset-offsets", "orders", "--to", "2026-01-01T00:00:00"], "has no time zone"),
        (["reset-offsets", "orders", "--to", "-"], "you cannot be asked"),
        (["restore-offsets", "orders", "-"], "you cannot be asked"),
        (["reset-offsets", "orders"], "--to"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_asked(arguments: list[str], reason: str) -> None:
    assert reason in run(*arguments, code=2).stderr


def test_the_advice_repeats_what_was_typed(api: FakeApi, tmp_path: Path) -> None:
    api.add_group("orders")
    documented = re.search(r"--overrides='(.*?)'", (ROOT / "docs" / "operations.md").read_text(), re.DOTALL)
    assert documented is not None
    assert json.loads(documented[1]) == OVERRIDES, "the documentation has the same"

    def in_pod(terminal: str) -> str:
        return (
            f"kubectl -n shop run desk {terminal} --rm --quiet --restart=Never --image=OPERATOR_IMAGE "
            f"--override-type=strategic --overrides='{json.dumps(OVERRIDES)}' --command -- rocketfleet "
        )

    def advised(*arguments: str) -> str:
        said = run(*arguments, code=1).stderr
        return next(line.strip() for line in said.splitlines() if line.startswith("  kubectl"))

    assert advised("reset-offsets", "orders", "--to", "-2h", "--dry-run", "-n", "shop") == (
        in_pod("-i") + "reset-offsets orders --to -2h --dry-run -n shop"
    )
    assert advised("reset-offsets", "orders", "--to=latest", "--timeout", "2") == (
        in_pod("-it") + "reset-offsets orders --to latest --timeout 2 -n shop"
    )
    assert advised("members", "orders", "--at-broker", "-ojson") == (
        in_pod("-i") + "members orders --at-broker -o json -n shop"
    )
    file = tmp_path / "orders.json"
    file.write_text(
        '{"kind": "OffsetSnapshot", "version": 1, "group": "orders", "cluster": [], "time": "", "offsets": []}'
    )
    assert advised("restore-offsets", "orders", str(file), "--force") == (
        in_pod("-i") + f"restore-offsets orders - --force -n shop --dry-run < {file}"
    )
    assert advised("reset-offsets", "--to", str(file), "orders", "-y") == (
        in_pod("-i") + f"reset-offsets --to - orders -y -n shop < {file}"
    )
    assert advised("snapshot-offsets", "orders", "-o", str(file)) == (
        in_pod("-i") + f"snapshot-offsets orders -n shop > {file}"
    )


def test_a_name_server_is_not_a_namespace(api: FakeApi) -> None:
    said = run("lag", "orders", "-n", "127.0.0.1:9876", code=2).stderr
    assert "127.0.0.1:9876 is not one: a name server is given with --name-server" in said


def test_with_a_name_server_alone_no_cluster_is_asked(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    for command in (["lag"], ["members"], ["status"], ["snapshot-offsets"], ["reset-offsets", "--to", "latest"]):
        said = run(*command, "orders", "--name-server", "127.0.0.1:1", code=1).stderr
        assert said.startswith("Error: cannot connect to 127.0.0.1:1"), command
        assert "kubectl" not in said
    assert api.tokens == []
