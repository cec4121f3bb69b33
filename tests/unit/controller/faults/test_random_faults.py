"""The operator in bad weather: edits, accidents and faults at random, kills between any two writes; then calm.

A script is a list of steps. In each, people or fate do something; for the seconds that follow, requests of the operator
are refused, answered late or not at all (whether they had their effect or not), watches are late or deaf, and the
operator may be killed after any of its writes: what it remembered is lost, and another one begins. All along, the world
notes what must never happen. When the script is over faults stop, and the group must come to what it would have come to
with its last spec had nothing ever happened.
"""

import asyncio
import json
import os
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.unit.controller.faults.api_server import GROUPS, Asked, Change, Object
from tests.unit.controller.faults.operator_process import LATENCY, Faults, Run, Verdict
from tests.unit.controller.faults.pods import WELL, Mishap, Process
from tests.unit.controller.faults.rocketmq import writes
from tests.unit.controller.faults.scenarios import differences, end_state, settled
from tests.unit.controller.faults.virtual_time import run
from tests.unit.controller.faults.world import BEGINS, World
from tests.unit.controller.kube_objects import manifest

from rocketfleet.wire.command import Command

# The same weather in every run, unless other is looked for on purpose: what it finds wants time to be understood.
ANY_WEATHER = "ROCKETFLEET_ANY_WEATHER" in os.environ

GOOD = Verdict()
VERDICTS = {
    "refused, somebody else has written": Verdict(409, done=False, reason="Conflict"),
    "told to wait": Verdict(429, done=False, reason="TooManyRequests", retry_after="2"),
    "failed": Verdict(500, done=False, reason="InternalError"),
    "failed, and done": Verdict(500, done=True, reason="InternalError"),
    "no answer": Verdict(0, done=False),
    "no answer, and done": Verdict(0, done=True),
}
NEVER = -1.0
MOST_WRITES = 8  # of the operator in a second, on average


@dataclass(frozen=True)
class Step:
    """What happens, and the weather of the seconds after it. Each request takes the next of the verdicts."""

    happens: str = "nothing"
    number: int = 0
    seconds: float = 2.0
    verdicts: tuple[str, ...] = ()
    latencies: tuple[float, ...] = ()
    killed_after: int | None = None  # so many writes


@dataclass
class Weather(Faults):
    """The present step's."""

    verdicts: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    def api(self, asked: Asked) -> Verdict:
        what = self.verdicts.pop(0) if self.verdicts else ""
        if what.startswith("refused") and not asked.writes:
            return GOOD
        return VERDICTS.get(what, GOOD)

    def broker(self, broker: str, command: Command) -> Verdict:
        what = self.verdicts.pop(0) if self.verdicts and writes(command) else ""
        return VERDICTS[what] if what.startswith("no answer") else GOOD

    def told(self, number: int, change: Change) -> float | None:
        after = self.latencies.pop(0) if self.latencies else LATENCY
        # People's edits are told, or nobody could say how many pods were wanted as far as the operator knew.
        return None if after == NEVER and change.key[0] != GROUPS else max(after, LATENCY)


class Play:
    """A script, played."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.weather = Weather()
        self.run = Run(world, self.weather)
        self._left: int | None = None

    def wrote(self, _: str) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                self._left, self.run.operator.alive = None, False

    async def step(self, step: Step) -> None:
        happen(self.world, step)
        self.weather.verdicts, self.weather.latencies = list(step.verdicts), list(step.latencies)
        self._left = step.killed_after
        if step.happens == "kill":
            self.run.operator.alive = False
        left = step.seconds
        while left > 0:
            await asyncio.sleep(min(0.5, left))
            left -= 0.5
            if not self.run.operator.alive:
                await self.run.restart(0.5)

    async def calm(self) -> None:
        self.weather.verdicts, self.weather.latencies, self._left = [], [], None
        world = self.world
        world.mq.away.clear()
        world.pods.mishaps.clear()
        for one in world.pods.processes.values():
            one.mishap = WELL
        await self.run.restart(0.5)
        await self.run.settle()


def happen(world: World, step: Step) -> None:
    ours = sorted(world.pods.processes.values(), key=lambda one: one.name)
    one = ours[step.number % len(ours)] if ours else None
    match step.happens:
        case "scale":
            world.edit(replicas=step.number)
        case "suspend":
            world.edit(suspend=step.number % 2 == 0)
        case "image":
            world.edit(worker={"image": f"registry.example/worker:{step.number}"})
        case "subscribe":
            world.edit(subscriptions=[{"topic": "orders", "expression": "abc"[step.number % 3]}])
        case "surge":
            world.edit(update={"surge": step.number % 2})
        case "type":
            world.edit(update={"type": (None, "Rolling", "Recreate")[step.number % 3]})
        case "strategy":
            world.edit(allocation={"strategy": ("Balanced", "Averagely")[step.number % 2]})
        case "delete":
            world.delete()
        case "broker":
            world.mq.away = set() if world.mq.away else {"broker-a"}
        case name if one is not None and name in ACCIDENTS:
            ACCIDENTS[name](world, one)


def delete_pod(world: World, one: Process) -> None:
    world.server.delete("pods", one.name)


def slow(world: World, one: Process) -> None:
    one.mishap = Mishap(drains=40.0)


def hangs(world: World, one: Process) -> None:
    one.mishap = Mishap(drains=1e9)


ACCIDENTS = {
    "delete pod": delete_pod,
    "crash pod": lambda world, one: world.pods.crash(one),
    "fail pod": lambda world, one: world.pods.fail(one),
    "slow drain": slow,
    "hanging drain": hangs,
}
EDITS = ["scale", "scale", "suspend", "image", "image", "subscribe", "surge", "type", "strategy", "delete"]

steps = st.builds(
    Step,
    happens=st.sampled_from(["nothing"] * 3 + EDITS + ["kill", "broker", *ACCIDENTS]),
    number=st.integers(0, 4),
    seconds=st.sampled_from([0.3, 1.0, 3.0, 8.0, 30.0]),
    verdicts=st.lists(st.sampled_from(["", "", "", *VERDICTS]), max_size=10).map(tuple),
    latencies=st.lists(st.sampled_from([LATENCY, LATENCY, 0.4, 3.0, NEVER]), max_size=8).map(tuple),
    killed_after=st.sampled_from([None, None, None, 1, 2, 3, 5, 8]),
)
specs = st.fixed_dictionaries(
    {
        "replicas": st.integers(0, 3),
        "update": st.sampled_from([{}, {"surge": 1}, {"type": "Rolling"}, {"type": "Recreate"}]),
        "shutdown": st.sampled_from(
            [{"drainTimeoutSeconds": 5}, {"drainTimeoutSeconds": 5, "onTimeout": "Wait"}, {"drainTimeoutSeconds": 20}]
        ),
        "deletionPolicy": st.sampled_from(["Retain", "DeleteOffsets", "DeleteAll"]),
        "consumeFromWhere": st.sampled_from(["LastOffset", "FirstOffset"]),
    }
)


def play(spec: Object, script: list[Step]) -> World:
    async def main() -> World:
        world = World()
        one = Play(world)
        async with one.run:
            world.apply(manifest(**spec))
            await asyncio.sleep(3.0)
            world.on_write = one.wrote
            for step in script:
                await one.step(step)
                assert not world.wrongs, world.wrongs
            await one.calm()
        assert not world.wrongs, world.wrongs
        seconds = 10.0 + sum(step.seconds for step in script)
        assert len(world.writes) < 60 + MOST_WRITES * seconds, f"{len(world.writes)} writes within {seconds:g} s"
        return world

    return run(BEGINS, main)


def essentials(world: World) -> Object:
    """An end state without what tells of the way to it."""
    end = end_state(world)
    for key in ("offsets", "groups", "retry topics"):
        del end[key]
    if end["object"] is not None:
        for key in ("observedGeneration", "finalizers"):
            del end["object"][key]
        if end["object"]["spec"].get("suspend"):  # it keeps what it had when it ran, if it ever did
            del end["object"]["prepared"], end["budgets"], end["secrets"]
    return end


_PLAIN: dict[str, Object] = {}


def plain(spec: Any) -> Object:
    """What a group with this spec comes to when nothing ever happens."""
    text = json.dumps(spec, sort_keys=True)
    if text not in _PLAIN:
        _PLAIN[text] = essentials(settled(spec)[0])
    return _PLAIN[text]


@settings(
    max_examples=25,
    derandomize=not ANY_WEATHER,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(specs, st.lists(steps, min_size=1, max_size=8))
@example({"replicas": 2}, [Step("scale", 0, 0.3), Step("scale", 3, 0.3), Step("delete", 0, 3.0, killed_after=3)])
def test_whatever_the_weather_the_group_comes_to_its_spec(spec: Object, script: list[Step]) -> None:
    world = play(spec, script)
    body = world.server.get(GROUPS, "orders")
    if body is None:
        end = essentials(world)
        # A lock of a member that died ends by itself within a minute, and nobody is there any more to wait for it.
        left = {key: held for key, held in end.items() if held and key != "owned"}
        assert not left, f"the object is gone, and this is left: {left}"
        return
    assert not body["metadata"].get("deletionTimestamp"), "the deletion does not end"
    assert differences(plain(body["spec"]), essentials(world)) == []
