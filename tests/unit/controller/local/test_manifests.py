"""Manifests of this machine: objects with generations, files that are edited, command lines and environments."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.controller.stage import group_of

from rocketfleet.api.checking import ManifestError
from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.client.transport.keys import read_credentials
from rocketfleet.controller.local.command import MemberCommand, MemberFiles, command_of
from rocketfleet.controller.local.files import StateDirectory
from rocketfleet.controller.local.manifests import ManifestFiles
from rocketfleet.controller.local.objects import LocalObjects
from rocketfleet.controller.local.secrets import LocalSecrets
from rocketfleet.controller.reconciling.backend import BackendError

MANIFEST = """\
apiVersion: rocketfleet.io/v1alpha1
kind: ConsumerGroup
metadata: {name: NAME}
spec:
  cluster: {nameServers: ["127.0.0.1:9876"]}
  subscriptions: [{topic: orders}]
  replicas: 2
  worker: {handler: "orders:handle"}
"""
KEY = GroupKey("default", "orders")


# -- objects ----------------------------------------------------------------------------------------------------------


def objects_in(path: Path) -> LocalObjects:
    objects = LocalObjects(StateDirectory(path))
    objects.load()
    return objects


def held(objects: LocalObjects) -> ConsumerGroup:
    found = objects.get(KEY)
    assert found is not None
    return found.group


def test_a_changed_spec_is_a_new_generation_of_the_same_object(tmp_path: Path) -> None:
    objects = objects_in(tmp_path)
    objects.put(group_of(2), tmp_path)
    objects.add_finalizer(KEY)
    first = held(objects)
    objects.put(group_of(2), tmp_path)
    assert held(objects).metadata.generation == 1
    objects.put(group_of(3), tmp_path)
    assert held(objects).metadata.generation == 2
    assert held(objects).metadata.uid == first.metadata.uid
    assert held(objects).metadata.finalizers == first.metadata.finalizers


def test_objects_are_found_again_with_their_status(tmp_path: Path) -> None:
    objects = objects_in(tmp_path)
    objects.put(group_of(2), tmp_path / "manifests")
    objects.add_finalizer(KEY)
    objects.write_status(KEY, {"observedGeneration": 1, "prepared": "abc"})
    objects.delete(KEY)
    again = objects_in(tmp_path)
    assert held(again) == held(objects)
    assert held(again).metadata.deletion_timestamp is not None
    found = again.get(KEY)
    assert found is not None
    assert found.base == tmp_path / "manifests"


def test_what_is_being_deleted_is_not_changed_and_goes_with_its_finalizer(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    objects = LocalObjects(StateDirectory(tmp_path), told.append)
    objects.put(group_of(2), tmp_path)
    objects.add_finalizer(KEY)
    objects.delete(KEY)
    objects.put(group_of(5), tmp_path)
    assert held(objects).spec.replicas == 2
    told.clear()
    objects.remove_finalizer(KEY)
    assert objects.keys == frozenset()
    assert told == [KEY]
    assert objects_in(tmp_path).keys == frozenset()


def test_without_a_finalizer_a_deletion_is_at_once(tmp_path: Path) -> None:
    objects = objects_in(tmp_path)
    objects.put(group_of(2), tmp_path)
    objects.delete(KEY)
    assert objects.keys == frozenset()


# -- files ------------------------------------------------------------------------------------------------------------


def test_an_edit_is_noticed_and_a_broken_one_is_an_error_that_says_where(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(MANIFEST.replace("NAME", "orders"))
    files = ManifestFiles([tmp_path])
    assert files.changed()
    assert not files.changed()
    assert files.read().groups[KEY][1] == tmp_path
    path.write_text(MANIFEST.replace("NAME", "orders").replace("replicas: 2", "replicas: -2"))
    assert files.changed()
    with pytest.raises(ManifestError, match="replicas"):
        files.read()
    path.unlink()
    assert files.changed()


def test_an_object_in_two_files_is_refused(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(MANIFEST.replace("NAME", "orders"))
    with pytest.raises(ManifestError, match="another file"):
        ManifestFiles([tmp_path]).read()


# -- commands ---------------------------------------------------------------------------------------------------------


def command(
    group: ConsumerGroup, tmp_path: Path, secrets: LocalSecrets | None = None, path: Path | None = None
) -> MemberCommand:
    secrets = secrets or LocalSecrets(environment={"PATH": "/bin", "ROCKETFLEET_GROUP": "another"})
    files = StateDirectory(tmp_path).group(group.key)
    around = MemberFiles(
        pod=files.pod(0),
        group=files,
        path=path,
        secret=lambda name: secrets.secret("default", name),
        config_map=lambda name: secrets.config_maps.get(("default", name)),
        inherited=secrets.environment,
    )
    return command_of(group, 0, "uid-7", "rev", around)


def test_a_worker_runs_as_it_would_in_a_pod_with_its_files_here(tmp_path: Path) -> None:
    made = command(group_of(), tmp_path, path=tmp_path / "handlers")
    files = StateDirectory(tmp_path).group(KEY)
    assert made.argv[0] == sys.executable
    assert made.argv[-1] == "worker"
    expected = {
        "PATH": "/bin",
        "POD_NAME": "orders-0",
        "POD_UID": "uid-7",
        "ROCKETFLEET_CLIENT_ID": "orders-0@uid-7",
        "ROCKETFLEET_HANDLER": "orders:handle",
        "ROCKETFLEET_PATH": str(tmp_path / "handlers"),
        "ROCKETFLEET_NAME_SERVERS": "127.0.0.1:9876",
        "ROCKETFLEET_BIND": "127.0.0.1",
        "ROCKETFLEET_BIND_PORT": "0",
        "ROCKETFLEET_PORT_FILE": str(files.pod(0).control),
        "ROCKETFLEET_TOKEN_FILE": str(files.token),
        "ROCKETFLEET_LAST_WORDS": str(files.pod(0).last_words),
        "ROCKETFLEET_SETTINGS": str(files.pod(0).settings),
        "ROCKETFLEET_LOG_FORMAT": "text",
    }
    assert {name: made.environment.get(name) for name in expected} == expected
    assert "ROCKETFLEET_GROUP" not in made.environment


def test_a_driver_runs_as_it_would_in_a_pod_but_its_executors_do_not(tmp_path: Path) -> None:
    spark = {"pipeline": "shop:revenue", "checkpoint": "/c", "master": "k8s"}
    made = command(group_of(engine="Spark", worker=None, spark=spark), tmp_path, path=tmp_path / "pipelines")
    assert made.argv[0] == sys.executable
    assert made.argv[-2:] == ("spark", "driver")
    assert made.environment["ROCKETFLEET_PATH"] == str(tmp_path / "pipelines")
    assert made.environment["ROCKETFLEET_PORT_FILE"] == str(StateDirectory(tmp_path).group(KEY).pod(0).control)
    assert "ROCKETFLEET_EXECUTOR_TEMPLATE" not in made.environment, "they are processes of this machine"


def container(**facts: Any) -> ConsumerGroup:
    one = {"name": "consumer", "command": ["java"], **facts}
    return group_of(engine="Container", worker=None, template={"spec": {"containers": [one]}})


def test_variables_are_resolved_as_the_kubelet_does(tmp_path: Path) -> None:
    env = [
        {"name": "WHO", "value": "$(POD_NAME) for $$5 of $(NOBODY)"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "acl", "key": "accessKey"}}},
        {"name": "MAYBE", "valueFrom": {"secretKeyRef": {"name": "acl", "key": "none", "optional": True}}},
        {"name": "HOST", "valueFrom": {"configMapKeyRef": {"name": "map", "key": "host"}}},
    ]
    secrets = LocalSecrets(
        {("default", "acl"): {"accessKey": b"ak"}}, {("default", "map"): {"host": "h"}}, environment={}
    )
    made = command(container(env=env, args=["-n", "$(ROCKETFLEET_NAME_SERVERS)"]), tmp_path, secrets)
    assert made.argv == ("java", "-n", "127.0.0.1:9876")
    assert made.environment["WHO"] == "orders-0 for $5 of $(NOBODY)"
    assert (made.environment["KEY"], made.environment["HOST"]) == ("ak", "h")
    assert "MAYBE" not in made.environment
    assert "ak" not in repr(made)


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"command": []}, "no command"),
        ({"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "no", "key": "k"}}}]}, "Secret no with k"),
        ({"env": [{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}]}, "only in a cluster"),
        ({"env": [{"name": "X", "valueFrom": {"resourceFieldRef": {}}}]}, "only in a cluster"),
    ],
)
def test_what_this_machine_does_not_have_is_said(tmp_path: Path, facts: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BackendError, match=sentence):
        command(container(**facts), tmp_path)


def test_credentials_come_from_the_manifest_or_from_the_environment(tmp_path: Path) -> None:
    group = group_of(
        cluster={"nameServers": ["127.0.0.1:9876"], "credentials": {"secretName": "acl"}, "tls": {"secretName": "tls"}}
    )
    files = StateDirectory(tmp_path).group(group.key)
    given = {"accessKey": b"ak", "secretKey": b"sk"}
    certificates = {"ca.crt": b"CA", "other": b"never written"}
    secrets = LocalSecrets({("default", "acl"): given, ("default", "tls"): certificates}, environment={})
    config = secrets.connection(group, files, "me")
    assert config.credentials is not None
    assert (config.credentials.access_key, config.credentials.secret_key) == ("ak", "sk")
    assert config.tls is not None
    assert config.tls.ca_file is not None
    assert Path(config.tls.ca_file).read_bytes() == b"CA"
    mounted = sorted(path.name for path in files.mounted.rglob("*") if path.is_file())
    assert mounted == ["accessKey", "ca.crt", "secretKey"]
    assert "sk" not in repr(secrets)
    made = command(group, tmp_path, secrets)
    assert made.environment["ROCKETFLEET_CA_FILE"] == config.tls.ca_file
    assert made.environment["ROCKETFLEET_SECRET_KEY"] == "sk"
    directory = Path(made.environment["ROCKETFLEET_CREDENTIALS_DIRECTORY"])
    assert read_credentials(directory) == config.credentials
    secrets.secrets = {**secrets.secrets, ("default", "acl"): {"accessKey": b"ak", "secretKey": b"renewed"}}
    secrets.connection(group, files, "me")  # as each pass asks for it: members that run follow the file
    assert read_credentials(directory).secret_key == "renewed"
    with pytest.raises(BackendError, match="Secret acl"):
        LocalSecrets(environment={}).connection(group, files, "me")
    variables = {"ROCKETFLEET_ACCESS_KEY": "ak2", "ROCKETFLEET_SECRET_KEY": "sk2"}
    plain = group_of(cluster={"nameServers": ["127.0.0.1:9876"], "credentials": {"secretName": "acl"}})
    config = LocalSecrets(environment=variables).connection(plain, files, "me")
    assert config.credentials is not None
    assert config.credentials.access_key == "ak2"


def test_a_handler_in_a_config_map_becomes_a_module(tmp_path: Path) -> None:
    group = group_of(worker={"handler": "orders:handle", "codeConfigMap": "code"})
    files = StateDirectory(tmp_path).group(group.key)
    secrets = LocalSecrets(config_maps={("default", "code"): {"orders.py": "def handle(message): ..."}})
    path = secrets.mount_code(group, files)
    assert path is not None
    assert (path / "orders.py").read_text() == "def handle(message): ..."
    with pytest.raises(BackendError, match="ConfigMap code"):
        LocalSecrets().mount_code(group, files)
    with pytest.raises(BackendError, match="no name for a file"):
        LocalSecrets(config_maps={("default", "code"): {"../x": ""}}).mount_code(group, files)
