"""A wrong manifest for every rule of the resource that the API server checks: what to change in a good one."""

from typing import Any

from tests.cluster.kube import Manifest

ANYTHING = "registry.example/consumer:1"
CONSUMER = {"name": "consumer", "image": ANYTHING}
QUEUE = {"topic": "orders", "broker": "broker-a", "queueId": 0}
NEARBY = {"strategy": "MachineRoomNearby", "memberRooms": ["berlin"]}
CONFIG = {"strategy": "Config", "assignments": [{"ordinal": 0, "queues": [QUEUE]}]}
PIPELINE = {"pipeline": "shop:pipeline", "checkpoint": "/data/checkpoint"}
SPARK: dict[str, Any] = {"engine": "Spark", "worker": None, "replicas": None, "spark": PIPELINE}
SCALED: dict[str, Any] = {"replicas": None, "autoscaling": {"maxReplicas": 4, "targetLag": 100}}


def good(name: str, **spec: Any) -> Manifest:
    """A ConsumerGroup that is accepted, with other values; None leaves one out."""
    given = {
        "cluster": {"nameServers": ["rocketmq:9876"]},
        "subscriptions": [{"topic": "orders"}],
        "replicas": 1,
        "worker": {"handler": "orders:handle"},
        **spec,
    }
    return {
        "apiVersion": "rocketfleet.io/v1alpha1",
        "kind": "ConsumerGroup",
        "metadata": {"name": name},
        "spec": {key: value for key, value in given.items() if value is not None},
    }


def _topic(**subscription: str) -> dict[str, Any]:
    return {"subscriptions": [{"topic": "orders", **subscription}]}


def _allocation(**allocation: Any) -> dict[str, Any]:
    return {"allocation": allocation}


def _worker(**worker: Any) -> dict[str, Any]:
    return {"worker": {"handler": "orders:handle", **worker}}


def _spark(**spark: Any) -> dict[str, Any]:
    return {**SPARK, "spark": {**PIPELINE, **spark}}


def _pod(**spec: Any) -> dict[str, Any]:
    return {"template": {"spec": spec}}


# rule → spec. Rules about the object's own name are below.
WRONG: dict[str, dict[str, Any]] = {
    "own-dead-letters-not-subscribed": {"groupName": "shop", "subscriptions": [{"topic": "%DLQ%shop"}]},
    "group-name-form": {"groupName": "shop orders"},
    "group-name-not-reserved": {"groupName": "TOOLS_CONSUMER"},
    "name-server-form": {"cluster": {"nameServers": ["http://rocketmq:9876"]}},
    "topics-differ": {"subscriptions": [{"topic": "orders"}, {"topic": "orders", "expression": "paid"}]},
    "topic-form": _topic(topic="or.ders"),
    "no-retry-topic": _topic(topic="%RETRY%shop"),
    "tags-make-sense": _topic(expression="paid || *"),
    "tags-can-match": _topic(expression="created, paid"),
    "sql-is-a-condition": _topic(expression="*", type="SQL92"),
    "timestamp-given": {"consumeFromWhere": "Timestamp"},
    "timestamp-only-with-timestamp": {"consumeTimestamp": "2026-01-31T08:00:00Z"},
    "timestamp-is-a-moment": {"consumeFromWhere": "Timestamp", "consumeTimestamp": "1931-01-31T08:00:00Z"},
    "orderly-is-clustering": {"consumeMode": "Orderly", "messageModel": "Broadcasting"},
    "auto-commit-off-is-orderly": {"consume": {"autoCommit": False}},
    "max-threads-from-threads": {"consume": {"threads": 8, "maxThreads": 4}},
    "virtualNodes-only-with-ConsistentHash": _allocation(virtualNodes=5),
    "rooms-only-with-MachineRoom": _allocation(rooms=["berlin"]),
    "separator-only-with-MachineRoomNearby": _allocation(separator="@"),
    "memberRooms-only-with-MachineRoomNearby": _allocation(memberRooms=["berlin"]),
    "inner-only-with-MachineRoomNearby": _allocation(inner="Averagely"),
    "assignments-only-with-Config": _allocation(assignments=CONFIG["assignments"]),
    "rooms-given-with-MachineRoom": _allocation(strategy="MachineRoom"),
    "memberRooms-given-with-MachineRoomNearby": _allocation(strategy="MachineRoomNearby"),
    "assignments-given-with-Config": _allocation(strategy="Config"),
    "ordinals-differ": _allocation(strategy="Config", assignments=[*CONFIG["assignments"], *CONFIG["assignments"]]),
    "room-form": _allocation(strategy="MachineRoom", rooms=["ber lin"]),
    "member-room-form": _allocation(strategy="MachineRoomNearby", memberRooms=["ber lin"]),
    "separator-form": _allocation(**NEARBY, separator="$"),
    "rooms-without-separator": _allocation(**NEARBY | {"memberRooms": ["a-b"]}, separator="-"),
    "replicas-or-autoscaling": {"autoscaling": SCALED["autoscaling"]},
    "autoscaling-shares-work": {**SCALED, "messageModel": "Broadcasting"},
    "autoscaling-shares-queues": {**SCALED, "allocation": CONFIG},
    "min-up-to-max": {**SCALED, "autoscaling": {"minReplicas": 5, "maxReplicas": 4, "targetLag": 100}},
    "a-target": {**SCALED, "autoscaling": {"maxReplicas": 4}},
    "worker-given": {"worker": None},
    "worker-only-with-worker": {"engine": "Container", **_pod(containers=[CONSUMER])},
    "spark-given": {**SPARK, "spark": None},
    "spark-only-with-spark": {"spark": SPARK["spark"]},
    "spark-is-one": {**SPARK, "replicas": 3},
    "spark-is-clustering": {**SPARK, "messageModel": "Broadcasting"},
    "spark-is-concurrent": {**SPARK, "consumeMode": "Orderly"},
    "spark-has-one-filter": {**SPARK, **_topic(expression="price > 5", type="SQL92")},
    "container-given": {"engine": "Container", "worker": None},
    "one-image": {**_worker(image=ANYTHING), **_pod(containers=[CONSUMER])},
    "spark-one-image": {**_spark(image=ANYTHING), **_pod(containers=[CONSUMER])},
    "config-has-one-process": {**_worker(processes=2), "allocation": CONFIG},
    "broadcasting-has-one-process": {**_worker(processes=2), "messageModel": "Broadcasting"},
    "grace-beyond-drain": {**_pod(terminationGracePeriodSeconds=30), "shutdown": {"drainTimeoutSeconds": 30}},
    "handler-form": _worker(handler="orders.handle"),
    "pipeline-form": _spark(pipeline="shop"),
    "spark-path-or-config-map": _spark(path="/app", codeConfigMap="code"),
    "master-form": _spark(master="yarn"),
    "trigger-form": _spark(trigger="10s"),
    "conf-is-spark-s": _spark(conf={"spark.master": "yarn"}),
    "path-or-config-map": _worker(path="/app", codeConfigMap="code"),
    "labels-free": {"template": {"metadata": {"labels": {"rocketfleet.io/mine": "yes"}}}},
    "annotations-free": {"template": {"metadata": {"annotations": {"rocketfleet.io/mine": "yes"}}}},
    "restarts-on-failure": _pod(restartPolicy="Always"),
}
# rule → the object's name
WRONG_NAMES = {"object-name-short-enough": "o" * 59, "object-name-is-a-group-name": "shop.orders"}
