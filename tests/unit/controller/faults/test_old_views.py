"""Alarms that the enumerations have raised, each as the few steps that lead to it."""

import asyncio

import pytest
from tests.unit.controller.faults.api_server import Asked, Change
from tests.unit.controller.faults.operator_process import KEY, Faults, Run, Verdict
from tests.unit.controller.faults.scenarios import settled
from tests.unit.controller.faults.virtual_time import run
from tests.unit.controller.faults.world import BEGINS, World
from tests.unit.controller.kube_objects import manifest

from rocketfleet.api.checking import read_object
from rocketfleet.controller.reconciling.backend import ObjectChanged


class Deaf(Faults):
    """From some moment on no watch tells anything."""

    def __init__(self) -> None:
        self.deaf = False

    def told(self, number: int, change: Change) -> float | None:
        return None if self.deaf else super().told(number, change)


def test_a_pod_that_has_begun_to_run_unseen_is_not_deleted_as_one_that_does_not_run() -> None:
    rested, time = settled({"replicas": 1})

    async def main() -> None:
        world, faults = rested.fork(), Deaf()
        async with Run(world, faults) as one:
            world.edit(replicas=2)
            await asyncio.sleep(0.2)
            assert one.operator.view.pods.get(("default", "orders-1")) is not None, "its creation was told"
            faults.deaf = True
            await asyncio.sleep(3.0)
            (body,) = [body for body in world.server.all("pods") if body["metadata"]["name"] == "orders-1"]
            assert body["status"]["phase"] == "Running"
            raw = one.operator.view.raw_group(KEY)
            assert raw is not None
            group = read_object(raw)
            seen = [held.pod for held in await one.operator.backend.look(group)]
            assert seen[1].idle, "as far as the operator was told"
            with pytest.raises(ObjectChanged, match="it is drained first"):
                await one.operator.backend.delete_pod(group, seen[1], False)
            assert not world.server.objects["pods", "default", "orders-1"]["metadata"].get("deletionTimestamp")
            seen = [held.pod for held in await one.operator.backend.look(group)]
            assert not seen[1].idle, "the refusal has told it"

    run(time, main)


class Amnesia(Faults):
    """The API server denies, once, that the object is there, as one does that has just started."""

    def __init__(self) -> None:
        self.denied = ""

    def api(self, asked: Asked) -> Verdict:
        if asked.part == "status" and not self.denied:
            self.denied = str(asked)
            return Verdict(404, done=False, reason="NotFound")
        return super().api(asked)


def test_an_object_that_the_api_denies_once_is_looked_after_again() -> None:
    async def main() -> None:
        world, faults = World(), Amnesia()
        async with Run(world, faults) as one:
            world.apply(manifest())
            await one.settle()
            assert faults.denied == "PATCH consumergroups/orders/status"
            assert world.group["status"]["readySummary"] == "2/2"
            world.edit(replicas=3)
            await one.settle()
            assert world.group["status"]["readySummary"] == "3/3"
        assert not world.wrongs

    run(BEGINS, main)


class PodDenied(Faults):
    """The same of a pod that is to be deleted."""

    def __init__(self) -> None:
        self.denied = 0

    def api(self, asked: Asked) -> Verdict:
        if (asked.method, asked.key[2]) == ("PATCH", "orders-1") and not self.denied:
            self.denied += 1
            return Verdict(404, done=False, reason="NotFound")
        return super().api(asked)


def test_a_pod_that_the_api_denies_once_is_found_again() -> None:
    rested, time = settled({"replicas": 2})

    async def main() -> None:
        world, faults = rested.fork(), PodDenied()
        async with Run(world, faults) as one:
            world.edit(worker={"image": "registry.example/worker:2"})
            await one.settle()
        assert faults.denied
        assert world.group["status"]["readySummary"] == "2/2"
        assert world.group["status"]["updatedReplicas"] == 2
        assert not world.wrongs

    run(time, main)
