"""What `kubectl get cg` says of groups that are not as they should be."""

from tests.cluster.kube import Kube, Manifest
from tests.cluster.scene import GROUP, Scene


def _line(kube: Kube, scene: Scene) -> list[str]:
    return kube.kubectl("get", "cg", GROUP, "-n", scene.name, "--no-headers").split()


def test_a_missing_topic_and_a_suspension_are_seen_in_the_list(kube: Kube, scene: Scene) -> None:
    scene.open()
    manifest = scene.manifest(replicas=2)
    manifest["spec"]["subscriptions"] = [{"topic": "nobody-made-this"}]
    scene.apply(manifest)
    scene.when(lambda one: _line(kube, one)[1:3] == ["0/2", "TopicNotFound"], "the list says what is missing")
    conditions = {one["type"]: one for one in scene.group["status"]["conditions"]}
    assert conditions["BrokerReachable"]["status"] == "True"
    manifest["spec"]["suspend"] = True
    scene.apply(manifest)
    scene.when(lambda one: _line(kube, one)[2] == "Suspended", "the list says that it is suspended")


def test_a_volume_that_cannot_be_mounted_is_said(kube: Kube, scene: Scene) -> None:
    scene.open()
    manifest = scene.manifest(replicas=1)
    spec = manifest["spec"].setdefault("template", {}).setdefault("spec", {})
    spec.setdefault("volumes", []).append({"name": "nope", "configMap": {"name": "nope"}})
    # The kubelet waits only for volumes that a container mounts.
    spec["containers"][0]["volumeMounts"] = [{"name": "nope", "mountPath": "/nope"}]
    scene.apply(manifest)

    def said(one: Scene) -> bool:
        found = (one.group.get("status") or {}).get("conditions") or []
        ready: Manifest = next((each for each in found if each["type"] == "Ready"), {})
        return ready.get("reason") == "PodTrouble" and "ConfigMap" in ready.get("message", "")

    scene.when(said, "Ready says that something it mounts may be missing")
