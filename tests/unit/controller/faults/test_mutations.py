"""Every accepted change of every field has the effect that it should, and can be taken back.

A group is at rest; one field is changed; the real operator runs until nothing happens any more; the change is taken
back. Alarms are:

- *a crash*: an exception that nobody foresaw, or something that must never happen (world.py);
- *no reaction*: neither pods, nor other objects, nor the brokers, nor the status differ, and the field is not in
  `WITHOUT_EFFECT`, which says why;
- *a wrong reaction*: what the group says of itself does not fit the new spec (pods that carry other settings than the
  manifest's, as many as nobody asked for), or an object that the API server took is called invalid;
- *no way back*: with the old spec the group is not what it was.
"""

import functools
import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from tests.unit.controller.faults.api_server import GROUPS, Object, defaulted
from tests.unit.controller.faults.mutations import SCHEMA, Mutation, accepted, mutations
from tests.unit.controller.faults.operator_process import DEFAULTS, Run
from tests.unit.controller.faults.scenarios import differences, end_state, settled
from tests.unit.controller.faults.virtual_time import run
from tests.unit.controller.faults.world import World
from tests.unit.controller.kube_objects import manifest

from rocketfleet.api.checking import read_object
from rocketfleet.controller.resources.pod import SETTINGS_ANNOTATION, image_of
from rocketfleet.controller.resources.revision import revision_of
from rocketfleet.controller.resources.worker_settings import settings_of

CLUSTER = {"nameServers": ["namesrv.example:9876"]}
CONTAINER = {"name": "consumer", "image": "registry.example/theirs:1"}
OURS = {"name": "consumer", "env": [{"name": "REGION", "value": "north"}]}
LABELS = {"labels": {"team": "shop"}, "annotations": {"note": "one"}}
# A spec that has as many fields as may be given together; several, because not all may.
BASES: dict[str, Object] = {
    "a worker": {
        "subscriptions": [{"topic": "orders", "expression": "paid"}, {"topic": "returns"}],
        "replicas": 2,
        "allowIdleMembers": False,
        "consume": {"threads": 4, "maxThreads": 8, "batchSize": 2},
        "rebalance": {},
        "shutdown": {"drainTimeoutSeconds": 5},
        "update": {"surge": 0},
        "worker": {"image": "registry.example/worker:1", "handler": "app:handle", "path": "/code", "processes": 1},
        "template": {"metadata": LABELS, "spec": {"containers": [OURS], "terminationGracePeriodSeconds": 60}},
        "deletionPolicy": "Retain",
    },
    "autoscaling": {
        "replicas": None,
        "autoscaling": {"minReplicas": 1, "maxReplicas": 3, "targetSeconds": 10},
        "consumeFromWhere": "Timestamp",
        "consumeTimestamp": "2026-01-31T08:00:00Z",
    },
    "rooms": {
        "replicas": 2,
        "allocation": {"strategy": "MachineRoomNearby", "memberRooms": ["a", "b"], "inner": "Averagely"},
        "consumeMode": "Orderly",
    },
    "assigned queues": {
        "replicas": 1,
        "allocation": {
            "strategy": "Config",
            "assignments": [
                {
                    "ordinal": 0,
                    "queues": [
                        {"topic": "orders", "broker": "broker-a", "queueId": 0},
                        {"topic": "orders", "broker": "broker-b", "queueId": 1},
                    ],
                }
            ],
        },
    },
    "somebody's own consumer": {
        "replicas": 1,
        "engine": "Container",
        "worker": None,
        "template": {"metadata": LABELS, "spec": {"containers": [CONTAINER]}},
    },
    "a pipeline": {
        "replicas": None,
        "engine": "Spark",
        "worker": None,
        "spark": {
            "image": "registry.example/spark:1",
            "pipeline": "app:build",
            "checkpoint": "s3a://bucket/orders",
            "conf": {"spark.executor.memory": "1g"},
            "trigger": "10 seconds",
        },
    },
}
# Of the bases that are about some fields only, those.
ABOUT: dict[str, tuple[str, ...]] = {
    "autoscaling": ("autoscaling", "replicas", "consumeFromWhere", "consumeTimestamp"),
    "rooms": ("allocation", "consumeMode"),
    "assigned queues": ("allocation", "subscriptions"),
    "somebody's own consumer": ("engine", "template", "rebalance", "allocation", "shutdown"),
    "a pipeline": ("engine", "spark", "replicas"),
}
# Fields that a running group need not react to, and why. Where a base has one of them, it has no effect at least once.
_LAG = "the lag watch goes by it when it decides next; none runs here"
_LATER = "it says how a later edit is rolled out, or what a deletion does"
WITHOUT_EFFECT = {
    "allowIdleMembers": "it matters only where more members are asked for than there are queues",
    "update.type": _LATER,
    "update.surge": _LATER,
    "worker.codeUpdate": _LATER,
    "spark.codeUpdate": _LATER,
    "deletionPolicy": _LATER,
    "autoscaling": _LAG,
    "autoscaling.minReplicas": _LAG,
    "autoscaling.maxReplicas": _LAG,
    "autoscaling.targetLag": _LAG,
    "autoscaling.targetSeconds": _LAG,
    "autoscaling.scaleOutAfterSeconds": _LAG,
    "autoscaling.scaleInAfterSeconds": _LAG,
    "autoscaling.scaleToZeroAfterSeconds": _LAG,
    "autoscaling.trialSeconds": _LAG,
}
# Where the old spec alone does not bring back the old number of pods: the autoscaler holds what there is, until lag
# says that it is too much.
HELD = ("autoscaling", "replicas")


def whole(spec: Object) -> Object:
    """The manifest with such a spec."""
    given = {key: value for key, value in {**manifest()["spec"], **spec}.items() if value is not None}
    return {**manifest(), "spec": given}


@functools.cache
def at_rest(base: str) -> tuple[World, float, Object]:
    world, time = settled(BASES[base])
    return world, time, signature(world)


def signature(world: World) -> Object:
    """All that anybody can see of the group, but its spec, generation and history."""
    end = end_state(world)
    body = world.server.get(GROUPS, "orders")
    assert body is not None
    for key in ("spec", "observedGeneration"):
        del end["object"][key]
    end["object"]["conditions in full"] = {
        one["type"]: (one["status"], one["reason"], one["message"]) for one in body["status"].get("conditions", ())
    }
    pods = {one["metadata"]["name"]: one for one in world.server.all("pods")}
    end["pods in full"] = {
        name: {"spec": one["spec"], "labels": one["metadata"]["labels"], "annotations": one["metadata"]["annotations"]}
        for name, one in pods.items()
    }
    end["class"] = (body["spec"].get("operatorClass") or "") == ""
    return end


@dataclass
class Outcome:
    """What came of a mutation."""

    mutation: Mutation
    reacted: bool
    alarms: list[str]


def mutate(base: str, mutation: Mutation) -> Outcome:
    rested, time, before = at_rest(base)
    original = whole(BASES[base])["spec"]

    async def main() -> Outcome:
        world = rested.fork()
        alarms = []
        async with Run(world) as one:
            await one.settle()
            known = _reasons(world)
            world.apply({**manifest(), "spec": mutation.spec})
            await one.settle()
            after = signature(world)
            reacted = after != before or _reasons(world) != known
            alarms += misfits(world)
            world.apply({**manifest(), "spec": original})
            await one.settle()
            back = differences(_without_history(before), _without_history(signature(world)))
        if back and not mutation.path.startswith(HELD if base == "autoscaling" else ("nothing",)):
            alarms.append(f"no way back: {back}")
        alarms += [f"never: {wrong}" for wrong in world.wrongs]
        return Outcome(mutation, reacted, alarms)

    return run(time, main)


def _reasons(world: World) -> Counter[str]:
    return Counter(f"{event['reason']} {event['note']}" for event in world.server.all("events"))


def _without_history(found: Object) -> Object:
    """Start offsets and groups stay at the brokers when a topic or a broker setting has come and gone."""
    return {key: held for key, held in found.items() if key not in ("offsets",)}


def misfits(world: World) -> list[str]:
    """What the group says, or is, that does not fit its spec."""
    body = world.group
    status = body.get("status") or {}
    if body["spec"].get("operatorClass"):
        return []  # another operator's
    if status.get("observedGeneration") != body["metadata"]["generation"]:
        return [f"the status is of generation {status.get('observedGeneration')}"]
    if status.get("state") == "InvalidSpec":
        return [f"the API server took it, and it is called invalid: {status['conditions'][0]['message']}"]
    conditions = {one["type"]: one for one in status["conditions"]}
    if conditions["Ready"]["status"] != "True":
        return [] if conditions["Ready"]["message"] else ["it is not ready and does not say why"]
    group = read_object({key: value for key, value in body.items() if key != "status"})
    pods = world.server.all("pods")
    found = []
    if len(pods) != status["desiredReplicas"]:
        found.append(f"it is ready, with {len(pods)} pods of {status['desiredReplicas']}")
    for pod in pods:
        labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
        ordinal = int(labels["rocketfleet.io/ordinal"])
        if labels["rocketfleet.io/revision"] != revision_of(group, DEFAULTS):
            found.append(f"it is ready, and {pod['metadata']['name']} is of another revision")
        if json.loads(annotations[SETTINGS_ANNOTATION]) != settings_of(group, ordinal):
            found.append(f"it is ready, and {pod['metadata']['name']} has other settings than the manifest")
        consumer = next(one for one in pod["spec"]["containers"] if one["name"] == "consumer")
        if group.spec.engine.is_ours and consumer["image"] != image_of(group, DEFAULTS):
            found.append(f"it is ready, and {pod['metadata']['name']} has another image")
    return found


def defaults_filled(spec: Object) -> Any:
    return defaulted(spec, SCHEMA)


@pytest.mark.parametrize("base", BASES)
def test_every_accepted_change_has_its_effect_and_a_way_back(base: str) -> None:
    original = whole(BASES[base])
    assert accepted(original, original), "the base itself is refused"
    refused, tried, alarms = 0, 0, dict[str, list[str]]()
    still: dict[str, bool] = {}  # of the fields that need not have an effect: whether none was seen once
    for mutation in mutations(original["spec"]):
        if not mutation.path.startswith(ABOUT.get(base, "")):
            continue
        if not accepted({**manifest(), "spec": mutation.spec}, original):
            refused += 1
            continue
        tried += 1
        outcome = mutate(base, mutation)
        same = defaults_filled(mutation.spec) == defaults_filled(original["spec"])
        if not same and mutation.path in WITHOUT_EFFECT:
            still[mutation.path] = still.get(mutation.path, False) or not outcome.reacted
        elif not same and not outcome.reacted:
            outcome.alarms.append("no reaction")
        if outcome.alarms:
            alarms[str(mutation)] = outcome.alarms
    print(f"{base}: {refused} changes refused, {tried} tried, {len(alarms)} alarms; without effect: {sorted(still)}")
    assert not [path for path, none in still.items() if not none], "they do have an effect: take them off the list"
    assert not alarms, "\n".join(f"{name}: {what}" for name, what in alarms.items())
    assert tried
