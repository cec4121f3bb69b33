"""The pod: what it must have whatever the template says, and how the template is laid over it."""

import json
from typing import Any

import pytest
from tests.unit.controller.model_parts import group_of

from rocketfleet.controller.resources.pod import Defaults, PodError, build, selector
from rocketfleet.controller.resources.secret import control_secret
from rocketfleet.controller.resources.worker_settings import settings_of

DEFAULTS = Defaults("rocketfleet/worker:1", "IfNotPresent")
Manifest = dict[str, Any]


def pod_of(ordinal: int = 0, *, certificate: bool = False, **spec: Any) -> Manifest:
    return build(group_of(**spec), ordinal, "abc", DEFAULTS, client_certificate=certificate)


def consumer(pod: Manifest) -> Manifest:
    found = [container for container in pod["spec"]["containers"] if container["name"] == "consumer"]
    assert len(found) == 1
    return dict(found[0])


def environment(pod: Manifest) -> dict[str, Any]:
    variables = consumer(pod)["env"]
    assert len({variable["name"] for variable in variables}) == len(variables), "server-side apply refuses doubles"
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in variables}


def template(container: Manifest | None = None, **spec: Any) -> Manifest:
    return {"template": {"spec": {"containers": [{"name": "consumer", **(container or {})}], **spec}}}


def test_its_name_labels_and_owner() -> None:
    pod = pod_of(3)
    metadata = pod["metadata"]
    assert metadata["name"] == "orders-3"
    assert metadata["labels"]["rocketfleet.io/group"] == "orders"
    assert metadata["labels"]["rocketfleet.io/ordinal"] == "3"
    assert metadata["labels"]["rocketfleet.io/revision"] == "abc"
    assert metadata["labels"]["rocketfleet.io/engine"] == "Worker"
    assert metadata["ownerReferences"][0]["controller"] is True
    assert selector(group_of()) == "rocketfleet.io/group=orders"


def test_its_settings_are_an_annotation_that_becomes_a_file() -> None:
    pod = pod_of(1)
    assert json.loads(pod["metadata"]["annotations"]["rocketfleet.io/settings"]) == settings_of(group_of(), 1)
    sources = next(v for v in pod["spec"]["volumes"] if v["name"] == "rocketfleet")["projected"]["sources"]
    item = sources[0]["downwardAPI"]["items"][0]
    assert item["fieldRef"]["fieldPath"] == "metadata.annotations['rocketfleet.io/settings']"
    mount = next(m for m in consumer(pod)["volumeMounts"] if m["name"] == "rocketfleet")
    assert environment(pod)["ROCKETFLEET_SETTINGS"] == f"{mount['mountPath']}/{item['path']}"
    assert environment(pod)["ROCKETFLEET_TOKEN_FILE"] == f"{mount['mountPath']}/token"
    assert sources[1]["secret"]["name"] == control_secret(group_of())["metadata"]["name"] == "orders-control"


def test_no_mount_lies_within_another() -> None:
    pod = pod_of(
        worker={"handler": "app:handle", "codeConfigMap": "code"},
        cluster={"nameServers": ["a:1"], "tls": {"secretName": "tls"}},
        messageModel="Broadcasting",
    )
    paths = [mount["mountPath"] for mount in consumer(pod)["volumeMounts"]]
    assert not [(a, b) for a in paths for b in paths if a != b and b.startswith(f"{a}/")]
    assert {mount["name"] for mount in consumer(pod)["volumeMounts"]} <= {v["name"] for v in pod["spec"]["volumes"]}


@pytest.mark.parametrize("path", ["/var/lib/rocketfleet", "/var/lib/rocketfleet/", "/var/lib"])
def test_offsets_go_to_the_template_s_volume_if_it_has_one_there(path: str) -> None:
    claim = {"name": "kept", "persistentVolumeClaim": {"claimName": "offsets"}}
    pod = pod_of(
        messageModel="Broadcasting",
        **template({"volumeMounts": [{"name": "kept", "mountPath": path}]}, volumes=[claim]),
    )
    mounts = {mount["mountPath"]: mount["name"] for mount in consumer(pod)["volumeMounts"]}
    assert mounts[path] == "kept"
    assert "rocketfleet-offsets" not in mounts.values()
    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["rocketfleet", "rocketfleet-tmp", "kept"]
    assert environment(pod)["ROCKETFLEET_OFFSET_DIRECTORY"] == "/var/lib/rocketfleet"


def test_offsets_go_to_a_volume_of_that_name() -> None:
    claim = {"name": "rocketfleet-offsets", "persistentVolumeClaim": {"claimName": "offsets"}}
    pod = pod_of(messageModel="Broadcasting", **template(volumes=[claim]))
    assert [volume for volume in pod["spec"]["volumes"] if volume["name"] == "rocketfleet-offsets"] == [claim]
    mounts = {mount["mountPath"]: mount["name"] for mount in consumer(pod)["volumeMounts"]}
    assert mounts["/var/lib/rocketfleet"] == "rocketfleet-offsets"


def test_it_meets_the_restricted_pod_security_level() -> None:
    pod = pod_of()
    assert pod["spec"]["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert consumer(pod)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert any(mount["mountPath"] == "/tmp" for mount in consumer(pod)["volumeMounts"])


def test_containers_of_the_template_are_restricted_where_it_says_nothing() -> None:
    pod = pod_of(
        **template(
            initContainers=[{"name": "fetch", "image": "f"}],
            containers=[
                {"name": "plain", "image": "p", "securityContext": {"readOnlyRootFilesystem": True}},
                {"name": "binds", "image": "b", "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"]}}},
                {"name": "root", "image": "r", "securityContext": {"privileged": True}},
            ],
        )
    )
    restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    found = {container["name"]: container["securityContext"] for container in pod["spec"]["containers"]}
    assert pod["spec"]["initContainers"][0]["securityContext"] == restricted
    assert found["plain"] == restricted | {"readOnlyRootFilesystem": True}
    assert found["binds"] == restricted | {"capabilities": {"add": ["NET_BIND_SERVICE"]}}
    assert found["root"] == {"privileged": True}
    assert "initContainers" not in pod_of()["spec"]


SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def test_its_node_may_be_removed_by_an_autoscaler_unless_the_template_says_otherwise() -> None:
    assert pod_of()["metadata"]["annotations"][SAFE_TO_EVICT] == "true"
    held = pod_of(template={"metadata": {"annotations": {SAFE_TO_EVICT: "false"}}})
    assert held["metadata"]["annotations"][SAFE_TO_EVICT] == "false"


def test_an_autoscaler_is_told_nothing_where_an_eviction_would_cost_more_than_a_drain() -> None:
    waiting = pod_of(shutdown={"onTimeout": "Wait"})
    assert SAFE_TO_EVICT not in waiting["metadata"]["annotations"]
    assert SAFE_TO_EVICT not in pod_of(messageModel="Broadcasting")["metadata"]["annotations"]
    kept = template(volumes=[{"name": "rocketfleet-offsets", "persistentVolumeClaim": {"claimName": "c"}}])
    assert SAFE_TO_EVICT in pod_of(messageModel="Broadcasting", **kept)["metadata"]["annotations"]


def test_a_start_gets_its_time_before_anybody_else_probes() -> None:
    found = consumer(pod_of())
    assert found["startupProbe"]["httpGet"] == {"path": "/healthz", "port": "control"}
    assert found["startupProbe"]["periodSeconds"] * found["startupProbe"]["failureThreshold"] == 300
    slow = pod_of(worker={"handler": "a:b", "startupSeconds": 900})
    assert consumer(slow)["startupProbe"]["failureThreshold"] == 900
    assert environment(slow)["ROCKETFLEET_STARTUP_TIMEOUT"] == "900"
    other = consumer(pod_of(**template({"startupProbe": {"exec": {"command": ["true"]}}})))
    assert other["startupProbe"] == {"exec": {"command": ["true"]}}
    stuck = consumer(pod_of(shutdown={"drainTimeoutSeconds": 30, "onTimeout": "Wait"}))
    assert stuck["startupProbe"]["terminationGracePeriodSeconds"] == 40


def test_text_of_the_user_is_no_reference_in_a_variable() -> None:
    tls = {"serverName": "mq$(POD_NAME)"}
    pod = pod_of(worker={"handler": "a:b", "path": "/opt/$(POD_UID)/$$x"}, cluster={"nameServers": ["a:1"], "tls": tls})
    assert environment(pod)["ROCKETFLEET_SERVER_NAME"] == "mq$$(POD_NAME)"
    assert environment(pod)["ROCKETFLEET_PATH"] == "/opt/$$(POD_UID)/$$$$x"


def test_settings_that_no_annotation_can_hold_are_refused_with_advice() -> None:
    subscriptions = [{"topic": f"t{number}", "expression": "x" * 4096, "type": "SQL92"} for number in range(64)]
    with pytest.raises(PodError, match=r"Kubernetes allows 262,144: shorten the expressions of spec\.subscriptions"):
        pod_of(subscriptions=subscriptions)


@pytest.mark.parametrize(("drain", "written", "grace"), [(30, None, 40), (2.5, None, 13), (30, 20, 40), (30, 90, 90)])
def test_the_grace_period_is_longer_than_the_drain(drain: float, written: int | None, grace: int) -> None:
    extra = template(terminationGracePeriodSeconds=written) if written is not None else {}
    pod = pod_of(shutdown={"drainTimeoutSeconds": drain}, **extra)
    assert pod["spec"]["terminationGracePeriodSeconds"] == grace


def test_a_pod_that_waits_is_not_killed_early_but_one_that_is_stuck_is() -> None:
    waiting: dict[str, Any] = {"shutdown": {"drainTimeoutSeconds": 30, "onTimeout": "Wait"}}
    pod = pod_of(**waiting)
    assert pod["spec"]["terminationGracePeriodSeconds"] == 86_400
    assert consumer(pod)["livenessProbe"]["terminationGracePeriodSeconds"] == 40
    bounded = pod_of(**waiting, **template(terminationGracePeriodSeconds=600))
    assert bounded["spec"]["terminationGracePeriodSeconds"] == 600
    assert "terminationGracePeriodSeconds" not in consumer(pod_of())["livenessProbe"]
    theirs = template(containers=[{"name": "consumer", "image": "theirs"}])
    assert pod_of(engine="Container", worker=None, **waiting, **theirs)["spec"]["terminationGracePeriodSeconds"] == 40


def test_a_drained_worker_is_not_started_again_whatever_the_template_says() -> None:
    assert pod_of(**template(restartPolicy="Always"))["spec"]["restartPolicy"] == "OnFailure"


def test_secrets_are_referred_to_and_never_written() -> None:
    pod = pod_of(cluster={"nameServers": ["a:1", "b:2"], "credentials": {"secretName": "acl"}})
    found = environment(pod)
    assert found["ROCKETFLEET_ACCESS_KEY"] == {"secretKeyRef": {"name": "acl", "key": "accessKey"}}
    assert found["ROCKETFLEET_SECRET_KEY"] == {"secretKeyRef": {"name": "acl", "key": "secretKey"}}
    assert found["ROCKETFLEET_SECURITY_TOKEN"]["secretKeyRef"]["optional"] is True
    assert found["ROCKETFLEET_NAME_SERVERS"] == "a:1;b:2"


def test_credentials_are_files_that_kubernetes_renews() -> None:
    pod = pod_of(cluster={"nameServers": ["a:1"], "credentials": {"secretName": "acl"}})
    assert environment(pod)["ROCKETFLEET_CREDENTIALS_DIRECTORY"] == "/etc/rocketfleet/credentials"
    volume = next(volume for volume in pod["spec"]["volumes"] if volume["name"] == "rocketfleet")
    needed, optional = [
        source["secret"] for source in volume["projected"]["sources"] if source.get("secret", {}).get("name") == "acl"
    ]
    assert [item["path"] for item in needed["items"]] == ["credentials/accessKey", "credentials/secretKey"]
    assert "optional" not in needed
    assert (optional["items"][0]["path"], optional["optional"]) == ("credentials/securityToken", True)
    assert all("subPath" not in mount for mount in consumer(pod)["volumeMounts"])  # those would never be renewed


def test_a_template_can_keep_the_keys_out_of_the_environment() -> None:
    cluster = {"nameServers": ["a:1"], "credentials": {"secretName": "acl"}}
    keys = ("ROCKETFLEET_ACCESS_KEY", "ROCKETFLEET_SECRET_KEY", "ROCKETFLEET_SECURITY_TOKEN")
    taken_out = template({"env": [{"name": name, "value": ""} for name in keys]})
    found = environment(pod_of(cluster=cluster, **taken_out))
    assert [found[name] for name in keys] == ["", "", ""]
    assert found["ROCKETFLEET_CREDENTIALS_DIRECTORY"] == "/etc/rocketfleet/credentials", "the worker reads it there"


def test_executors_have_the_credentials_where_the_driver_has_them() -> None:
    cluster = {"nameServers": ["a:1"], "credentials": {"secretName": "acl"}}
    made = executors_of(spark_pod(spark={"master": "k8s"}, cluster=cluster))
    mounts = {mount["name"]: mount["mountPath"] for mount in made["spec"]["containers"][0]["volumeMounts"]}
    assert mounts["rocketfleet"] == "/etc/rocketfleet"
    volume = next(volume for volume in made["spec"]["volumes"] if volume["name"] == "rocketfleet")
    assert volume["projected"]["sources"][0]["secret"]["items"][0]["path"] == "credentials/accessKey"


@pytest.mark.parametrize("certificate", [False, True])
def test_tls_names_the_files_that_the_secret_has(certificate: bool) -> None:
    tls = {"secretName": "tls", "serverName": "mq", "checkHostname": False}
    pod = pod_of(cluster={"nameServers": ["a:1"], "tls": tls}, certificate=certificate)
    found = environment(pod)
    assert found["ROCKETFLEET_TLS"] == "true"
    assert found["ROCKETFLEET_CA_FILE"].endswith("/tls/ca.crt")
    assert ("ROCKETFLEET_CERT_FILE" in found) == ("ROCKETFLEET_KEY_FILE" in found) == certificate
    assert found["ROCKETFLEET_SERVER_NAME"] == "mq"
    assert found["ROCKETFLEET_CHECK_HOSTNAME"] == "false"
    sources = pod["spec"]["volumes"][0]["projected"]["sources"]
    assert len(sources[-1]["secret"]["items"]) == (3 if certificate else 1)


def test_the_template_is_laid_over_ours_by_name() -> None:
    pod = pod_of(
        template={
            "metadata": {"labels": {"team": "orders"}, "annotations": {"note": "x"}},
            "spec": {
                "nodeSelector": {"disk": "ssd"},
                "securityContext": {"fsGroup": 7},
                "volumes": [{"name": "cache", "emptyDir": {}}],
                "containers": [
                    {"name": "sidecar", "image": "sidecar:1"},
                    {
                        "name": "consumer",
                        "image": "ours:2",
                        "env": [{"name": "REGION", "value": "eu"}, {"name": "ROCKETFLEET_LOG_FORMAT", "value": "text"}],
                        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
                        "resources": {"limits": {"memory": "1Gi"}},
                        "readinessProbe": {"periodSeconds": 7},
                    },
                ],
            },
        }
    )
    found = consumer(pod)
    assert [container["name"] for container in pod["spec"]["containers"]] == ["consumer", "sidecar"]
    assert found["image"] == "ours:2"
    assert found["resources"] == {"limits": {"memory": "1Gi"}}
    assert found["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert found["readinessProbe"]["periodSeconds"] == 7
    assert {"cache", "rocketfleet"} <= {mount["name"] for mount in found["volumeMounts"]}
    assert {"cache", "rocketfleet"} <= {volume["name"] for volume in pod["spec"]["volumes"]}
    assert environment(pod)["REGION"] == "eu"
    assert environment(pod)["ROCKETFLEET_LOG_FORMAT"] == "text"
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert pod["spec"]["securityContext"]["fsGroup"] == 7
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert pod["metadata"]["labels"]["team"] == "orders"
    assert pod["metadata"]["annotations"]["note"] == "x"


def test_ours_wins_where_the_group_would_break() -> None:
    written = [
        {"name": "ROCKETFLEET_CLIENT_ID", "value": "one-for-all"},
        {"name": "ROCKETFLEET_BIND_PORT", "value": "1"},
        {"name": "ROCKETFLEET_SETTINGS", "value": "/mine"},
        {"name": "ROCKETFLEET_GROUP", "value": "another"},
        {"name": "ROCKETFLEET_HANDOVER", "value": "Eager"},
    ]
    spec = template({"env": written, "ports": [{"name": "control", "containerPort": 1}]})
    spec["template"]["metadata"] = {
        "labels": {"rocketfleet.io/ordinal": "9"},
        "annotations": {"rocketfleet.io/drain": "{}", "rocketfleet.io/settings": "{}"},
    }
    pod = pod_of(**spec)
    found = environment(pod)
    assert found["ROCKETFLEET_CLIENT_ID"] == "$(POD_NAME)@$(POD_UID)"
    assert found["ROCKETFLEET_BIND_PORT"] == "9470"
    assert "ROCKETFLEET_GROUP" not in found
    assert "ROCKETFLEET_HANDOVER" not in found
    assert consumer(pod)["ports"] == [{"name": "control", "containerPort": 9470, "protocol": "TCP"}]
    assert pod["metadata"]["labels"]["rocketfleet.io/ordinal"] == "0"
    ours = ["rocketfleet.io/settings", "rocketfleet.io/shared-settings", "rocketfleet.io/control"]
    assert list(pod["metadata"]["annotations"]) == [SAFE_TO_EVICT, *ours]


def test_the_template_is_not_changed() -> None:
    group = group_of(**template({"env": [{"name": "A", "value": "1"}]}))
    before = group.model_copy(deep=True)
    build(group, 0, "abc", DEFAULTS)
    assert group == before


def test_a_room_begins_the_client_id_and_is_no_reference() -> None:
    pod = pod_of(1, allocation={"strategy": "MachineRoomNearby", "memberRooms": ["a", "$(B)"]})
    assert environment(pod)["ROCKETFLEET_CLIENT_ID"] == "$$(B)@$(POD_NAME)@$(POD_UID)"


def test_nodes_that_do_not_answer_are_left_soon_unless_the_template_says_otherwise() -> None:
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ours = {toleration["key"]: toleration["tolerationSeconds"] for toleration in pod_of()["spec"]["tolerations"]}
    assert ours == dict.fromkeys(keys, 10)
    own = {"key": keys[1], "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    tolerations = pod_of(**template(tolerations=[own]))["spec"]["tolerations"]
    assert [t["tolerationSeconds"] for t in tolerations if t["key"] == keys[1]] == [300]
    assert len(tolerations) == 2
    everything = [{"operator": "Exists"}]
    assert pod_of(**template(tolerations=everything))["spec"]["tolerations"] == everything


def test_pods_spread_over_nodes_unless_the_template_has_an_affinity() -> None:
    assert pod_of()["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] == "ScheduleAnyway"
    assert "topologySpreadConstraints" not in pod_of(**template(affinity={"nodeAffinity": {}}))["spec"]


def test_a_container_of_somebody_else_is_told_the_essentials_and_not_probed() -> None:
    pod = pod_of(engine="Container", worker=None, **template({"image": "java:1", "args": ["-x"]}))
    found = consumer(pod)
    assert found["image"] == "java:1"
    assert found["args"] == ["-x"]
    assert not {"command", "ports", "readinessProbe", "livenessProbe"} & set(found)
    assert environment(pod)["ROCKETFLEET_GROUP"] == "orders"
    assert environment(pod)["ROCKETFLEET_TOPICS"] == "orders"
    assert "ROCKETFLEET_TOKEN_FILE" not in environment(pod)
    assert pod["metadata"]["labels"]["rocketfleet.io/engine"] == "Container"
    assert "readOnlyRootFilesystem" not in found["securityContext"]


def test_the_worker_s_image_and_code() -> None:
    assert consumer(pod_of())["image"] == "rocketfleet/worker:1"
    assert consumer(pod_of())["imagePullPolicy"] == "IfNotPresent"
    assert consumer(pod_of(worker={"handler": "a:b", "image": "own:1"}))["image"] == "own:1"
    assert environment(pod_of(worker={"handler": "a:b", "path": "/app"}))["ROCKETFLEET_PATH"] == "/app"
    coded = pod_of(worker={"handler": "a:b", "codeConfigMap": "code"})
    mount = next(m for m in consumer(coded)["volumeMounts"] if m["name"] == "rocketfleet-code")
    assert environment(coded)["ROCKETFLEET_PATH"] == mount["mountPath"]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"engine": "Container", "worker": None}, "needs an image"),
        ({"engine": "Spark", "worker": None}, "needs spec.spark"),
        ({"engine": "Spark", "spark": {"pipeline": "a:b", "checkpoint": "/c"}}, "no image with Spark"),
        ({"worker": None}, "needs spec.worker"),
    ],
)
def test_what_cannot_be_built_is_said(spec: Manifest, sentence: str) -> None:
    with pytest.raises(PodError, match=sentence):
        pod_of(**spec)


IN_SPARK: Manifest = {
    "engine": "Spark",
    "worker": None,
    "spark": {"pipeline": "shop:revenue", "checkpoint": "s3a://shop/revenue", "executors": 3, "codeConfigMap": "code"},
}
WITH_SPARK = Defaults("w:1", "IfNotPresent", ("pull",), spark_image="s:1", spark_service_account="drivers")


def spark_pod(**changes: Any) -> Manifest:
    spark = {**IN_SPARK["spark"], **changes.pop("spark", {})}
    return build(group_of(**IN_SPARK | {"spark": spark} | changes), 0, "abc", WITH_SPARK)


def executors_of(pod: Manifest) -> Manifest:
    template: Manifest = json.loads(pod["metadata"]["annotations"]["rocketfleet.io/executor-template"])
    return template


def test_a_driver_has_what_a_worker_has_but_for_its_handler() -> None:
    pod = spark_pod()
    found = consumer(pod)
    assert found["command"] == ["rocketfleet", "spark", "driver"]
    assert found["image"] == "s:1"
    assert found["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"readinessProbe", "livenessProbe", "ports"} <= found.keys()
    variables = environment(pod)
    assert {"ROCKETFLEET_TOKEN_FILE", "ROCKETFLEET_LAST_WORDS", "ROCKETFLEET_PATH"} <= variables.keys()
    assert not {"ROCKETFLEET_HANDLER", "ROCKETFLEET_PROCESSES", "ROCKETFLEET_EXECUTOR_TEMPLATE"} & variables.keys()
    settings = json.loads(pod["metadata"]["annotations"]["rocketfleet.io/settings"])
    assert settings["spark"] == {
        "pipeline": "shop:revenue", "checkpoint": "s3a://shop/revenue", "executors": 3,
    }  # fmt: skip


def test_a_driver_gets_the_time_that_a_jvm_takes_to_end() -> None:
    shutdown = {"drainTimeoutSeconds": 60}
    worker = pod_of(shutdown=shutdown)["spec"]["terminationGracePeriodSeconds"]
    assert spark_pod(shutdown=shutdown)["spec"]["terminationGracePeriodSeconds"] > worker >= 70


def test_only_a_driver_that_makes_pods_has_an_account_and_its_token() -> None:
    alone = spark_pod()["spec"]
    assert alone["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in alone
    with_pods = spark_pod(spark={"master": "k8s"})["spec"]
    assert with_pods["automountServiceAccountToken"] is True
    assert with_pods["serviceAccountName"] == "drivers"
    own = spark_pod(spark={"master": "k8s"}, **template(serviceAccountName="mine"))["spec"]
    assert own["serviceAccountName"] == "mine"


def test_executors_are_restricted_and_nobody_s_members() -> None:
    pod = spark_pod(spark={"master": "k8s"})
    made = executors_of(pod)
    assert "rocketfleet.io/group" not in made["metadata"]["labels"]
    assert made["metadata"]["labels"]["rocketfleet.io/executor-of"] == "orders"
    spec = made["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    (container,) = spec["containers"]
    assert (container["name"], container["image"], container["command"]) == (
        "executor",
        "s:1",
        ["rocketfleet", "spark"],
    )
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True,
    }  # fmt: skip
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"rocketfleet-tmp": "/tmp", "rocketfleet-code": environment(pod)["ROCKETFLEET_PATH"]}
    assert {volume["name"] for volume in spec["volumes"]} == mounts.keys()
    items = [item for source in pod["spec"]["volumes"][0]["projected"]["sources"] for item in _items(source)]
    assert "executor.json" in {item["path"] for item in items}


def _items(source: Manifest) -> list[Manifest]:
    return [item for part in source.values() for item in part["items"]]


def test_executors_get_the_template_s_volumes_variables_and_certificates() -> None:
    container = {
        "env": [{"name": "AWS_REGION", "value": "eu"}, {"name": "ROCKETFLEET_ACCESS_KEY", "value": "x"}],
        "volumeMounts": [{"name": "state", "mountPath": "/state"}, {"name": "big", "mountPath": "/tmp"}],
    }
    claim = {"name": "state", "persistentVolumeClaim": {"claimName": "state"}}
    written = template(container, volumes=[claim, {"name": "big", "emptyDir": {}}], nodeSelector={"disk": "ssd"})
    tls = {"nameServers": ["a:1"], "tls": {"secretName": "certificates"}}
    spec = executors_of(spark_pod(spark={"master": "k8s"}, cluster=tls, **written))["spec"]
    (made,) = spec["containers"]
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert [variable["name"] for variable in made["env"]] == ["AWS_REGION", "ROCKETFLEET_ACCESS_KEY"]
    mounts = {mount["mountPath"]: mount["name"] for mount in made["volumeMounts"]}
    assert mounts["/state"] == "state"
    assert mounts["/tmp"] == "big", "the template's own"
    assert "/etc/rocketfleet" in mounts
    assert claim in spec["volumes"]
    sources = next(volume for volume in spec["volumes"] if volume["name"] == "rocketfleet")["projected"]["sources"]
    assert [source.keys() for source in sources] == [{"secret"}], "no settings, and no token"
