"""Visiting every world that a scenario can get into, and following each to its good end.

Breadth first, so that the first thing found wrong is also the shortest way to it. Two things are asked of every world:
is anything wrong with it (`Model.wrong`: safety), and does all come right from here once there are no more faults
(`Model.well`, within `bound` ticks: liveness). For the second, a world is calmed (networks are whole, processes run)
and followed move by move; worlds that were followed before are remembered, so most ways are short.
"""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple
from unittest.mock import patch

from tests.unit.protocol.model import RUNNING, Model, Rules, Times, World
from tests.unit.protocol.scenarios import Scenario

from rocketfleet.consumer.handover import lock_keeper, roster

STUCK = "not well"


class Wrong(NamedTuple):
    """What was found, and the shortest way to it."""

    what: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([self.what, *(f"  {at + 1:2}. {label}" for at, label in enumerate(self.trace))])


class Result(NamedTuple):
    scenario: str
    states: int
    transitions: int
    seconds: float
    slowest: int  # ticks until all was well again, at most
    wrong: Wrong | None
    complete: bool

    def __str__(self) -> str:
        end = "" if self.complete else ", not all"
        return (
            f"{self.scenario}: {self.states} states, {self.transitions} transitions, {self.seconds:.1f} s{end}; "
            f"well again within {self.slowest} ticks"
        )


class _StuckError(Exception):
    def __init__(self, trace: list[str]) -> None:
        self.trace = trace


@contextmanager
def scaled(times: Times) -> Iterator[None]:
    """The durations of the consumer's functions, in ticks."""
    with ExitStack() as stack:
        for module, constant, ticks in (
            (roster, "GRACE_SECONDS", times.grace),
            (roster, "REJOIN_SECONDS", times.rejoin),
            (roster, "REMEMBERED_SECONDS", 10 * times.lives),
            (lock_keeper, "CONFIRM_APART", times.apart),
            (lock_keeper, "OWNERS_FIRST", times.owners),
        ):
            stack.enter_context(patch.object(module, constant, ticks))
        yield


def explore(scenario: Scenario, rules: Rules | None = None, *, follow: bool = True, limit: int = 10_000_000) -> Result:
    """Visit every world of a scenario, at most `limit` of them; stops at the first that is wrong.

    With `follow=False` it is not asked whether all comes right in the end.
    """
    with scaled(scenario.times):
        return _explore(scenario, Rules() if rules is None else rules, follow, limit)


def _explore(scenario: Scenario, rules: Rules, follow: bool, limit: int) -> Result:
    began = time.perf_counter()
    model = scenario.model(rules)
    start = scenario.start()
    came: dict[World, tuple[World, str] | None] = {start: None}
    fates: dict[World, int] = {}
    line = deque([start])
    transitions = slowest = 0
    wrong: Wrong | None = None
    while line and wrong is None and len(came) < limit:
        world = line.popleft()
        try:
            slowest = max(slowest, _fate(model, world, fates, scenario.bound)) if follow else 0
        except _StuckError as stuck:
            wrong = Wrong(f"{STUCK} {scenario.bound} ticks after the last fault", (*_way(came, world), *stuck.trace))
            break
        for move in model.moves(world):
            transitions += 1
            after = move.world
            if after in came:
                continue
            came[after] = (world, move.label)
            if what := model.wrong(after):
                wrong = Wrong(what, _way(came, after))
                break
            line.append(after)
    seconds = time.perf_counter() - began
    return Result(scenario.name, len(came), transitions, seconds, slowest, wrong, not line and wrong is None)


def _way(came: dict[World, tuple[World, str] | None], world: World) -> tuple[str, ...]:
    labels: list[str] = []
    while (before := came[world]) is not None:
        world, label = before
        labels.append(label)
    return tuple(reversed(labels))


def _fate(model: Model, world: World, fates: dict[World, int], bound: int) -> int:
    """How many ticks it takes until all is well."""
    if not any(member.life == RUNNING for member in world.members):
        return 0
    here = model.calm(world)
    way: list[tuple[World, str]] = []
    ticks = 0
    while (known := fates.get(here)) is None:
        if model.well(here):
            known = 0
            break
        move = model.onward(here)
        way.append((here, move.label))
        ticks += move.label == "tick"
        if ticks > bound or len(way) > _ENOUGH:
            raise _StuckError([label for _, label in way])
        here = move.world
    fates[here] = known
    for passed, label in reversed(way):
        known += label == "tick"
        fates[passed] = known
    if known > bound:
        raise _StuckError([label for _, label in way])
    return known


_ENOUGH = 2000
