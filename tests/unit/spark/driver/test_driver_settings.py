"""What a driver is told, and what it makes of it: Spark's settings, and the source's options."""

import json
from pathlib import Path
from typing import Any

import pytest

from rocketfleet.base.settings_error import SettingsError
from rocketfleet.client.config import ClientConfig, TlsConfig
from rocketfleet.spark.driver.options import read_options, secrets_of
from rocketfleet.spark.driver.session import DriverPlace, master_url, place_in, session_conf
from rocketfleet.spark.driver.settings import DriverSettings, read, settings_of
from rocketfleet.spark.source.options import read_options as checked
from rocketfleet.wire.acl import Credentials
from rocketfleet.wire.queue import MessageQueue

QUEUE = MessageQueue("orders", "broker-a", 0)
TEMPLATE = {"spec": {"containers": [{"name": "executor", "image": "s:1", "imagePullPolicy": "Never"}]}}


def content(**spark: Any) -> dict[str, Any]:
    return {
        "groupName": "shop",
        "subscriptions": [{"topic": "orders", "expression": "paid"}, {"topic": "refunds", "expression": "paid"}],
        "shutdown": {"drainTimeoutSeconds": 7},
        "spark": {"pipeline": "shop:revenue", "checkpoint": "/data/checkpoint", **spark},
    }


def settings(**spark: Any) -> DriverSettings:
    return settings_of(content(**spark))


def test_a_settings_file_is_a_worker_s_with_a_section_more(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(content(executors=3, conf={"spark.executor.memory": "2g"}, trigger=None)))
    found = read(file)
    assert (found.group, found.topics, found.expression) == ("shop", ("orders", "refunds"), "paid")
    assert found.consumer.drain_timeout == 7
    assert (found.spark.executors, found.spark.master, found.spark.trigger) == (3, "local[*]", None)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"spark": None}, "no section 'spark'"),
        ({"spark": {"pipeline": "a:b"}}, "spark.checkpoint is missing"),
        ({"spark": {"pipeline": "a:b", "checkpoint": "/c", "executor": 2}}, "no setting spark.executor"),
        ({"spark": {"pipeline": "a:b", "checkpoint": "/c", "executors": "2"}}, "spark.executors is a str"),
        ({"groupName": None}, "no consumer group"),
        ({"subscriptions": [{"topic": "a"}, {"topic": "b", "expression": "x"}]}, "differ in their expressions"),
        ({"replica": 3}, "no setting 'replica'"),
    ],
)
def test_what_is_wrong_with_it_is_said(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        settings_of(content() | change)


def test_a_driver_that_does_the_work_itself_asks_for_no_executors() -> None:
    conf = session_conf(settings(executors=5), DriverPlace())
    assert "spark.executor.instances" not in conf
    assert not [name for name in conf if name.startswith("spark.kubernetes")]
    assert master_url(settings(), DriverPlace()) == "local[*]"


def test_the_manifest_s_settings_win() -> None:
    assert session_conf(settings(), DriverPlace())["spark.ui.enabled"] == "false"
    assert session_conf(settings(conf={"spark.ui.enabled": "true"}), DriverPlace())["spark.ui.enabled"] == "true"


@pytest.mark.parametrize(
    ("memory", "expected"), [(None, 1024), ("2g", 2048), ("512m", 512), ("700", 700), ("1T", 1 << 20), ("2048k", 2)]
)
def test_without_a_cluster_executors_are_processes(memory: str | None, expected: int) -> None:
    conf = {} if memory is None else {"spark.executor.memory": memory}
    made = settings(master="k8s", executors=3, conf=conf)
    assert master_url(made, DriverPlace(path=Path("/app"))) == f"local-cluster[3,1,{expected}]"
    found = session_conf(made, DriverPlace(path=Path("/app")))
    assert found["spark.executorEnv.PYTHONPATH"] == "/app"
    assert not [name for name in found if name.startswith("spark.kubernetes")]


def test_in_a_standalone_cluster_executors_do_not_look_for_our_directory() -> None:
    found = session_conf(settings(master="spark://10.0.0.1:7077", executors=3), DriverPlace(path=Path("/app")))
    assert "spark.executorEnv.PYTHONPATH" not in found, "it would hide the package that is sent to them"
    assert found["spark.executor.instances"] == "3"


def test_an_executor_s_memory_that_makes_no_sense_is_said() -> None:
    with pytest.raises(SettingsError, match=r"spark\.executor\.memory"):
        master_url(settings(master="k8s", conf={"spark.executor.memory": "much"}), DriverPlace())


POD = {
    "POD_NAME": "orders-0",
    "POD_IP": "10.0.0.7",
    "POD_NAMESPACE": "shop",
    "KUBERNETES_SERVICE_HOST": "fd00::1",
    "KUBERNETES_SERVICE_PORT": "6443",
}


def test_in_a_pod_executors_are_pods_that_the_driver_s_owns(tmp_path: Path) -> None:
    template = tmp_path / "executor.json"
    template.write_text(json.dumps(TEMPLATE))
    place = place_in(POD, template, Path("/app"))
    made = settings(master="k8s", executors=4)
    assert master_url(made, place) == "k8s://https://[fd00::1]:6443"
    conf = session_conf(made, place)
    assert conf["spark.executor.instances"] == "4"
    assert conf["spark.kubernetes.driver.pod.name"] == "orders-0"
    assert conf["spark.kubernetes.container.image"] == "s:1"
    assert conf["spark.kubernetes.container.image.pullPolicy"] == "Never"
    assert conf["spark.kubernetes.namespace"] == "shop"
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "10.0.0.7"
    assert conf["spark.kubernetes.executor.podTemplateFile"] == str(template)


def test_what_a_pod_lacks_is_said(tmp_path: Path) -> None:
    template = tmp_path / "executor.json"
    template.write_text(json.dumps(TEMPLATE))
    made = settings(master="k8s")
    with pytest.raises(SettingsError, match="KUBERNETES_SERVICE_HOST"):
        master_url(made, place_in({}, template, None))
    with pytest.raises(SettingsError, match="POD_NAME"):
        session_conf(made, place_in({"KUBERNETES_SERVICE_HOST": "a"}, template, None))
    template.write_text("kind: Pod")
    with pytest.raises(SettingsError, match="not a pod template"):
        place_in(POD, template, None)


def test_the_source_takes_its_options_and_no_secret_is_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ClientConfig(
        "a:1;b:2",
        credentials=Credentials("ak", "sk-secret", "token-secret"),
        tls=TlsConfig(ca_file="/ca", cert_file="/c", key_file="/k", key_password="pw-secret", check_hostname=False),
    )
    made = settings(maxOffsetsPerTrigger=500)
    options = read_options(made, config, {QUEUE: 12})
    assert "secret" not in json.dumps(options)
    for name, value in secrets_of(made, config).items():
        monkeypatch.setenv(name, value)
    found = checked({name.lower(): value for name, value in options.items()}, streaming=True)
    assert found.topics == ("orders", "refunds")
    assert (found.group, found.expression, found.max_offsets_per_trigger) == ("shop", "paid", 500)
    assert found.starting.offsets == {QUEUE: 12}
    assert found.connection.credentials == config.credentials
    assert found.connection.tls == config.tls
    assert found.connection.config().name_servers == config.name_servers
    assert (found.commit_offsets, found.fail_on_data_loss) == (False, False), "the driver writes, and passes over gaps"


@pytest.mark.parametrize(
    ("master", "followed"), [("local[2]", True), ("k8s", True), ("spark://a:7077", False)], ids=str
)
def test_keys_in_a_file_are_followed_by_those_who_read_where_they_have_the_file(master: str, followed: bool) -> None:
    config = ClientConfig("a:1", credentials=Credentials("ak", "sk"), credentials_path="/etc/rocketfleet/credentials")
    made = settings(master=master)
    options = read_options(made, config, {QUEUE: 12})
    assert options.get("credentialsPath") == ("/etc/rocketfleet/credentials" if followed else None)
    assert ("ROCKETFLEET_SECRET_KEY" in secrets_of(made, config)) is not followed
    if followed:
        found = checked({name.lower(): value for name, value in options.items()}, streaming=True)
        assert found.connection.config().credentials_path == "/etc/rocketfleet/credentials"
