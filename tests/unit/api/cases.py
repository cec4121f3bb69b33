"""Manifests that break a rule, one by one, and some that a hasty rule would break: for both sides of the rules."""

from typing import Any

CONSUMER = [{"name": "consumer", "image": "i:1"}]
QUEUE = {"topic": "orders", "broker": "a", "queueId": 0}
SPARK = {"pipeline": "a:b", "checkpoint": "/data/checkpoint"}
IN_SPARK: dict[str, Any] = {"spec.engine": "Spark", "spec.worker": None, "spec.spark": SPARK}
CONFIG = {"strategy": "Config", "assignments": [{"ordinal": 0, "queues": [QUEUE]}]}

# rule, what to change in a good manifest, where it is said
BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("object-name-short-enough", {"metadata.name": "x" * 59}, "metadata"),
    ("object-name-is-a-group-name", {"metadata.name": "shop.orders"}, "spec.groupName"),
    ("own-dead-letters-not-subscribed", {"spec.subscriptions": [{"topic": "%DLQ%orders"}]}, "spec.subscriptions"),
    (
        "own-dead-letters-not-subscribed",
        {"spec.groupName": "shop", "spec.subscriptions": [{"topic": "%DLQ%shop"}]},
        "spec.subscriptions",
    ),
    ("group-name-form", {"spec.groupName": "orders 2"}, "spec.groupName"),
    ("group-name-form", {"spec.groupName": "orders\n"}, "spec.groupName"),
    ("group-name-not-reserved", {"spec.groupName": "DEFAULT_CONSUMER"}, "spec.groupName"),
    ("group-name-not-reserved", {"spec.groupName": "CID_RMQ_SYS_TRANS"}, "spec.groupName"),
    ("name-server-form", {"spec.cluster.nameServers": ["a:1", "http://a:1"]}, "spec.cluster.nameServers[1]"),
    ("name-server-form", {"spec.cluster.nameServers": ["a:1;b:2"]}, "spec.cluster.nameServers[0]"),
    ("name-server-form", {"spec.cluster.nameServers": ["a:65536"]}, "spec.cluster.nameServers[0]"),
    ("topics-differ", {"spec.subscriptions": [{"topic": "a"}, {"topic": "a"}]}, "spec.subscriptions"),
    ("topic-form", {"spec.subscriptions": [{"topic": "a.b"}]}, "spec.subscriptions[0].topic"),
    ("no-retry-topic", {"spec.subscriptions": [{"topic": "%RETRY%shop"}]}, "spec.subscriptions[0].topic"),
    (
        "tags-make-sense",
        {"spec.subscriptions": [{"topic": "a", "expression": " || "}]},
        "spec.subscriptions[0].expression",
    ),
    (
        "tags-make-sense",
        {"spec.subscriptions": [{"topic": "a"}, {"topic": "b", "expression": "a || *"}]},
        "spec.subscriptions[1].expression",
    ),
    *(
        (
            "tags-can-match",
            {"spec.subscriptions": [{"topic": "a", "expression": odd}]},
            "spec.subscriptions[0].expression",
        )
        for odd in ("created, paid", "created,paid", "created; paid", "created paid", "created | paid", "a || b c")
    ),
    (
        "sql-is-a-condition",
        {"spec.subscriptions": [{"topic": "a", "type": "SQL92"}]},
        "spec.subscriptions[0].expression",
    ),
    ("timestamp-given", {"spec.consumeFromWhere": "Timestamp"}, "spec.consumeTimestamp"),
    ("timestamp-only-with-timestamp", {"spec.consumeTimestamp": "2026-01-31T08:00:00Z"}, "spec.consumeTimestamp"),
    (
        "timestamp-is-a-moment",
        {"spec.consumeFromWhere": "Timestamp", "spec.consumeTimestamp": "2026-02-30T08:00:00Z"},
        "spec.consumeTimestamp",
    ),
    (
        "timestamp-is-a-moment",
        {"spec.consumeFromWhere": "Timestamp", "spec.consumeTimestamp": "1969-12-31T23:59:59Z"},
        "spec.consumeTimestamp",
    ),
    (
        "orderly-is-clustering",
        {"spec.consumeMode": "Orderly", "spec.messageModel": "Broadcasting"},
        "spec.consumeMode",
    ),
    ("auto-commit-off-is-orderly", {"spec.consume.autoCommit": False}, "spec.consume.autoCommit"),
    ("max-threads-from-threads", {"spec.consume.threads": 8, "spec.consume.maxThreads": 7}, "spec.consume.maxThreads"),
    ("virtualNodes-only-with-ConsistentHash", {"spec.allocation.virtualNodes": 10}, "spec.allocation.virtualNodes"),
    ("rooms-only-with-MachineRoom", {"spec.allocation.rooms": ["a"]}, "spec.allocation.rooms"),
    ("separator-only-with-MachineRoomNearby", {"spec.allocation.separator": "@"}, "spec.allocation.separator"),
    ("memberRooms-only-with-MachineRoomNearby", {"spec.allocation.memberRooms": ["a"]}, "spec.allocation.memberRooms"),
    ("inner-only-with-MachineRoomNearby", {"spec.allocation.inner": "Balanced"}, "spec.allocation.inner"),
    (
        "assignments-only-with-Config",
        {"spec.allocation": CONFIG | {"strategy": "Balanced"}},
        "spec.allocation.assignments",
    ),
    ("rooms-given-with-MachineRoom", {"spec.allocation.strategy": "MachineRoom"}, "spec.allocation.rooms"),
    (
        "memberRooms-given-with-MachineRoomNearby",
        {"spec.allocation.strategy": "MachineRoomNearby"},
        "spec.allocation.memberRooms",
    ),
    ("assignments-given-with-Config", {"spec.allocation.strategy": "Config"}, "spec.allocation.assignments"),
    (
        "ordinals-differ",
        {
            "spec.allocation": {
                "strategy": "Config",
                "assignments": [
                    {"ordinal": 1, "queues": [QUEUE]},
                    {"ordinal": 1, "queues": [QUEUE | {"queueId": 1}]},
                ],
            }
        },
        "spec.allocation.assignments",
    ),
    (
        "queues-assigned-once",
        {
            "spec.allocation": {
                "strategy": "Config",
                "assignments": [{"ordinal": 0, "queues": [QUEUE]}, {"ordinal": 1, "queues": [QUEUE]}],
            }
        },
        "spec.allocation.assignments",
    ),
    (
        "assigned-queues-subscribed",
        {"spec.subscriptions": [{"topic": "payments"}], "spec.allocation": CONFIG},
        "spec.allocation.assignments",
    ),
    ("room-form", {"spec.allocation": {"strategy": "MachineRoom", "rooms": ["a@b"]}}, "spec.allocation.rooms[0]"),
    (
        "member-room-form",
        {"spec.allocation": {"strategy": "MachineRoomNearby", "memberRooms": ["a", "b c"]}},
        "spec.allocation.memberRooms[1]",
    ),
    (
        "separator-form",
        {"spec.allocation": {"strategy": "MachineRoomNearby", "memberRooms": ["a"], "separator": "$("}},
        "spec.allocation.separator",
    ),
    (
        "rooms-without-separator",
        {"spec.allocation": {"strategy": "MachineRoomNearby", "memberRooms": ["room-1"], "separator": "-"}},
        "spec.allocation.memberRooms",
    ),
    (
        "replicas-or-autoscaling",
        {"spec.replicas": 2, "spec.autoscaling": {"maxReplicas": 3, "targetLag": 100}},
        "spec.replicas",
    ),
    (
        "autoscaling-shares-work",
        {"spec.messageModel": "Broadcasting", "spec.autoscaling": {"maxReplicas": 3, "targetLag": 100}},
        "spec.autoscaling",
    ),
    (
        "autoscaling-shares-queues",
        {"spec.allocation": CONFIG, "spec.autoscaling": {"maxReplicas": 3, "targetLag": 100}},
        "spec.autoscaling",
    ),
    (
        "min-up-to-max",
        {"spec.autoscaling": {"minReplicas": 4, "maxReplicas": 3, "targetLag": 100}},
        "spec.autoscaling.minReplicas",
    ),
    ("a-target", {"spec.autoscaling": {"maxReplicas": 3}}, "spec.autoscaling"),
    ("worker-given", {"spec.worker": None}, "spec.worker"),
    (
        "worker-only-with-worker",
        {"spec.engine": "Container", "spec.template": {"spec": {"containers": CONSUMER}}},
        "spec.worker",
    ),
    ("spark-given", {"spec.engine": "Spark", "spec.worker": None}, "spec.spark"),
    ("spark-only-with-spark", {"spec.spark": SPARK}, "spec.spark"),
    (
        "spark-is-one",
        {**IN_SPARK, "spec.replicas": 2},
        "spec.replicas",
    ),
    ("spark-is-clustering", {**IN_SPARK, "spec.messageModel": "Broadcasting"}, "spec.messageModel"),
    ("spark-is-concurrent", {**IN_SPARK, "spec.consumeMode": "Orderly"}, "spec.consumeMode"),
    (
        "spark-has-one-filter",
        {**IN_SPARK, "spec.subscriptions": [{"topic": "a"}, {"topic": "b", "expression": "paid"}]},
        "spec.subscriptions",
    ),
    (
        "spark-has-one-filter",
        {**IN_SPARK, "spec.subscriptions": [{"topic": "a", "expression": "x > 5", "type": "SQL92"}]},
        "spec.subscriptions",
    ),
    (
        "spark-one-image",
        {
            **IN_SPARK,
            "spec.spark": {**SPARK, "image": "i:2"},
            "spec.template": {"spec": {"containers": CONSUMER}},
        },
        "spec.spark.image",
    ),
    (
        "spark-path-or-config-map",
        {**IN_SPARK, "spec.spark": {**SPARK, "path": "/app", "codeConfigMap": "code"}},
        "spec.spark.path",
    ),
    ("master-form", {**IN_SPARK, "spec.spark": {**SPARK, "master": "yarn"}}, "spec.spark.master"),
    ("master-form", {**IN_SPARK, "spec.spark": {**SPARK, "master": "local[]"}}, "spec.spark.master"),
    ("trigger-form", {**IN_SPARK, "spec.spark": {**SPARK, "trigger": "10s"}}, "spec.spark.trigger"),
    (
        "conf-is-spark-s",
        {**IN_SPARK, "spec.spark": {**SPARK, "conf": {"spark.executor.instances": "3"}}},
        "spec.spark.conf",
    ),
    ("conf-is-spark-s", {**IN_SPARK, "spec.spark": {**SPARK, "conf": {"executors": "3"}}}, "spec.spark.conf"),
    ("container-given", {"spec.engine": "Container", "spec.worker": None}, "spec.template.spec.containers"),
    (
        "container-given",
        {
            "spec.engine": "Container",
            "spec.worker": None,
            "spec.template": {"spec": {"containers": [{"name": "java"}]}},
        },
        "spec.template.spec.containers",
    ),
    (
        "one-image",
        {"spec.worker.image": "i:2", "spec.template": {"spec": {"containers": CONSUMER}}},
        "spec.worker.image",
    ),
    ("config-has-one-process", {"spec.allocation": CONFIG, "spec.worker.processes": 2}, "spec.worker.processes"),
    (
        "broadcasting-has-one-process",
        {"spec.messageModel": "Broadcasting", "spec.worker.processes": 2},
        "spec.worker.processes",
    ),
    (
        "grace-beyond-drain",
        {"spec.template": {"spec": {"terminationGracePeriodSeconds": 39}}},
        "spec.template.spec.terminationGracePeriodSeconds",
    ),
    ("handler-form", {"spec.worker.handler": "orders.handle"}, "spec.worker.handler"),
    (
        "pipeline-form",
        {"spec.engine": "Spark", "spec.worker": None, "spec.spark": {**SPARK, "pipeline": "pipeline"}},
        "spec.spark.pipeline",
    ),
    ("path-or-config-map", {"spec.worker.path": "/app", "spec.worker.codeConfigMap": "code"}, "spec.worker.path"),
    (
        "labels-free",
        {"spec.template": {"metadata": {"labels": {"rocketfleet.io/group": "x"}}}},
        "spec.template.metadata.labels",
    ),
    (
        "annotations-free",
        {"spec.template": {"metadata": {"annotations": {"rocketfleet.io/drain": "x"}}}},
        "spec.template.metadata.annotations",
    ),
    (
        "restarts-on-failure",
        {"spec.template": {"spec": {"restartPolicy": "Always"}}},
        "spec.template.spec.restartPolicy",
    ),
]

# What a hasty rule would refuse.
KEPT: list[dict[str, Any]] = [
    {},
    {"spec.groupName": "orders"},
    {"spec.cluster.nameServers": ["[::1]:9876", "10.0.0.1:1", "my_host.example.com:65535"]},
    {"spec.subscriptions": [{"topic": "%DLQ%shop"}, {"topic": "a", "expression": " a ||b|| c-d.e:f "}]},
    {"spec.subscriptions": [{"topic": "a", "expression": "price > 5 AND x IN ('*')", "type": "SQL92"}]},
    {"spec.consumeFromWhere": "Timestamp", "spec.consumeTimestamp": "2026-01-31T08:00:00.123+05:30"},
    {"spec.messageModel": "Broadcasting"},
    {"spec.consumeMode": "Orderly", "spec.consume.autoCommit": False, "spec.rebalance.handover": "Eager"},
    {"spec.template": {"spec": {"terminationGracePeriodSeconds": 40, "restartPolicy": "OnFailure"}}},
    {"spec.shutdown.drainTimeoutSeconds": 0.5, "spec.template": {"spec": {"terminationGracePeriodSeconds": 11}}},
    {"spec.worker.image": "i:1", "spec.worker.codeConfigMap": "code", "spec.worker.processes": 4},
    {"spec.worker.image": "i:1", "spec.template": {"spec": {"containers": [{"name": "consumer", "tty": True}]}}},
    {"spec.allocation": CONFIG, "spec.replicas": 0},
    {"spec.engine": "Container", "spec.worker": None, "spec.template": {"spec": {"containers": CONSUMER}}},
    {**IN_SPARK, "spec.replicas": 1},
    {**IN_SPARK, "spec.subscriptions": [{"topic": "a", "expression": "x"}, {"topic": "b", "expression": "x"}]},
    {**IN_SPARK, "spec.spark": {**SPARK, "master": "local[4]", "trigger": "1 minute", "conf": {"spark.ui.port": "1"}}},
    {**IN_SPARK, "spec.spark": {**SPARK, "master": "spark://10.0.0.1:7077", "trigger": "500 milliseconds"}},
    {**IN_SPARK, "spec.spark": {**SPARK, "master": "k8s", "executors": 3, "image": "i:1", "codeConfigMap": "code"}},
    {"spec.replicas": None, "spec.autoscaling": {"minReplicas": 0, "maxReplicas": 3, "targetSeconds": 30}},
]
