"""Manifests made up for the rules: each fits the schema, and about every rule is kept by some and broken by others."""

from typing import Any

from hypothesis import strategies as st

from rocketfleet.allocation.strategies import StrategyName
from rocketfleet.api.allocation import InnerStrategy
from rocketfleet.api.spec import Engine
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.wire.enums import ConsumeFromWhere, ExpressionType, MessageModel

ODD = "aZ09 \t\n|*@.%:;,-_$[]/'\\é"


def texts(*usual: str, longest: int, shortest: int = 1) -> st.SearchStrategy[str]:
    return st.sampled_from(usual) | st.sampled_from(usual) | st.text(ODD, min_size=shortest, max_size=longest)


def keyed(
    needed: dict[str, st.SearchStrategy[Any]], optional: dict[str, st.SearchStrategy[Any]] | None = None
) -> st.SearchStrategy[dict[str, Any]]:
    """An object with these keys, an optional one every other time: Hypothesis by itself leaves most of them out."""
    drawn = needed | {key: st.none() | values for key, values in (optional or {}).items()}
    return st.fixed_dictionaries(drawn).map(lambda held: {k: v for k, v in held.items() if v is not None})


def maybe(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of these keys."""
    return keyed({}, keys)


def one_of_enum(kind: Any) -> st.SearchStrategy[str]:
    return st.sampled_from([str(value) for value in kind])


topics = texts("orders", "payments", "%RETRY%orders", "%DLQ%orders", "%DLQ%shop", longest=10)
seconds = st.sampled_from([0.1, 5, 5.5, 15, 30, 50])
functions = texts("orders:handle", "shop.orders:Shop.handle", "orders", "a:b:c", ":f", "a..b:f", "9a:f", longest=8)
rooms = st.lists(st.sampled_from(["room-1", "room.2"]) | texts("a@b", longest=4), min_size=1, max_size=2)

subscriptions = st.lists(
    keyed(
        {"topic": topics},
        {
            "expression": texts(
                "*", " * ", "a || b", "a||*", "||", "*||", "|*", "price > 5", "**", "a, b", " a||b ||", longest=12
            ),
            "type": one_of_enum(ExpressionType),
        },
    ),
    min_size=1,
    max_size=3,
)
queues = keyed(
    {"topic": st.sampled_from(["orders", "payments"]), "broker": st.just("broker-a"), "queueId": st.integers(0, 2)}
)
assignments = st.lists(
    keyed(
        {"ordinal": st.integers(0, 3), "queues": st.lists(queues, min_size=1, max_size=2)},
    ),
    min_size=1,
    max_size=3,
)
allocations = keyed(
    {},
    {
        "strategy": one_of_enum(StrategyName),
        "virtualNodes": st.integers(1, 100),
        "rooms": rooms,
        "separator": texts("@", "-", ".", "$(", longest=3),
        "memberRooms": rooms,
        "inner": one_of_enum(InnerStrategy),
        "assignments": assignments,
    },
)
autoscalings = keyed(
    {"maxReplicas": st.integers(1, 4)},
    {
        "minReplicas": st.integers(0, 4),
        "targetLag": st.integers(1, 9),
        "targetSeconds": seconds,
        "scaleInAfterSeconds": seconds,
        "trialSeconds": st.integers(1, 90),
    },
)
containers = st.lists(
    keyed(
        {"name": st.sampled_from(["consumer", "sidecar"])},
        {"image": st.just("i:1"), "env": st.just([{"name": "A"}])},
    ),
    max_size=3,
)
labels = st.dictionaries(st.sampled_from(["team", "rocketfleet.io/group", "rocketfleet.io"]), st.just("x"), max_size=2)
templates = maybe(
    metadata=maybe(labels=labels, annotations=labels),
    spec=maybe(
        containers=containers,
        terminationGracePeriodSeconds=st.integers(0, 60),
        restartPolicy=st.sampled_from(["Always", "OnFailure", "Never"]),
        nodeSelector=st.just({"disk": "ssd"}),
    ),
)
workers = keyed(
    {"handler": functions},
    {
        "image": st.just("i:1"),
        "path": st.just("/app"),
        "codeConfigMap": st.just("code"),
        "processes": st.integers(1, 2),
    },
)
sparks = keyed(
    {"pipeline": functions, "checkpoint": st.just("/data/checkpoint")},
    {
        "image": st.just("i:1"),
        "path": st.just("/app"),
        "codeConfigMap": st.just("code"),
        "master": st.sampled_from(
            ["local", "local[2]", "local[*]", "local[x]", "k8s", "spark://a:1", "spark://", "K8S"]
        ),
        "trigger": st.sampled_from(["10 seconds", "1 hour", "0 seconds", "10s", "1 minute "]),
        "conf": st.dictionaries(
            st.sampled_from(["spark.ui.port", "spark.master", "spark.app.name", "ui.port"]), st.just("x"), max_size=2
        ),
    },
)
timestamps = st.sampled_from(
    [
        "2026-01-31T08:00:00Z",
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00+01:00",
        "1969-12-31T23:59:59Z",
        "2026-01-31T08:00:00.5-03:30",
        "0001-01-01T00:00:00Z",
    ]
)
specs = keyed(
    {
        "cluster": keyed(
            {
                "nameServers": st.lists(
                    texts("rocketmq:9876", "[::1]:9876", "a:0", "a:65535", "a:65536", "http://a:1", "::1:9", longest=8),
                    min_size=1,
                    max_size=2,
                )
            }
        ),
        "subscriptions": subscriptions,
    },
    {
        "groupName": texts("orders", "DEFAULT_CONSUMER", "CID_RMQ_SYS_x", "a.b", longest=6),
        "messageModel": one_of_enum(MessageModel),
        "consumeMode": one_of_enum(ConsumeMode),
        "consumeFromWhere": one_of_enum(ConsumeFromWhere),
        "consumeTimestamp": timestamps,
        "allocation": allocations,
        "replicas": st.integers(0, 3),
        "autoscaling": autoscalings,
        "consume": maybe(threads=st.integers(1, 9), maxThreads=st.integers(1, 9), autoCommit=st.booleans()),
        "shutdown": maybe(drainTimeoutSeconds=seconds),
        "engine": one_of_enum(Engine),
        "worker": workers,
        "spark": sparks,
        "template": templates,
    },
)
objects = keyed(
    {
        "metadata": keyed({"name": st.sampled_from(["orders", "shop", "a.b", "x" * 58, "x" * 59])}),
        "spec": specs,
    }
)


def good() -> dict[str, Any]:
    """A manifest with nothing wrong with it."""
    return {
        "apiVersion": "rocketfleet.io/v1alpha1",
        "kind": "ConsumerGroup",
        "metadata": {"name": "orders"},
        "spec": {
            "cluster": {"nameServers": ["rocketmq:9876"]},
            "subscriptions": [{"topic": "orders"}],
            "worker": {"handler": "orders:handle"},
        },
    }


def changed(raw: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The same with other values at some paths; None takes one away."""
    for path, value in changes.items():
        held = raw
        *above, last = path.split(".")
        for name in above:
            held = held.setdefault(name, {})
        if value is None:
            held.pop(last, None)
        else:
            held[last] = value
    return raw
