"""Ways through a scenario that are worth walking in the real world too, and the same ways in the protocol as it is.

The exploration proves what it proves about a model. Whether brokers, connections and processes behave like that model
is another question, and a few ways answer it better than many: those on which a broken protocol comes to grief
(`wrong_way`), and those into the least visited corners of the unbroken one (`rarest_way`).

A way is a list of labels. What a broken protocol did, the protocol as it is refuses at some point: `nearest` goes the
same way as far as it lets us. What happens to members is done to them all the same, what a member would not do is left
out, and what it does at once is put in before time passes. From the end of the way `home` leads on, without any more
faults, to a world in which all is well; that is the prediction.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tests.unit.protocol.explore import Wrong, explore, scaled
from tests.unit.protocol.model import EXCUSED, URGENT, Model, Move, Rules, World
from tests.unit.protocol.mutants import Mutant
from tests.unit.protocol.scenarios import Scenario

TICK = "tick"


class Step(NamedTuple):
    """One move on a way, with what else could have been done instead."""

    label: str
    before: World
    after: World
    others: frozenset[str]


class Way(NamedTuple):
    """A way through a scenario under the unbroken protocol."""

    scenario: Scenario
    steps: tuple[Step, ...]
    refused: tuple[str, ...]  # what a broken protocol did, and this one does not
    end: World  # where it leads, once there are no more faults

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(step.label for step in self.steps)

    @property
    def excused(self) -> bool:
        """Whether a rewind may be undone on it, because nobody has told its owner."""
        claims = (claim for step in self.steps for member in step.after.members for claim in member.claims)
        return any(claim is not None and claim.overdue == EXCUSED for claim in claims)


def is_fault(label: str) -> bool:
    """Whether a move is done to members and brokers, rather than by them; `FAULTS` has the kinds."""
    words = label.split()
    loud = any(word.isupper() and len(word) > 1 for word in words)
    return loud or label.endswith(("wakes", "hears nothing", "which is late")) or "lost with the connection" in label


def wrong_way(mutant: Mutant) -> Wrong:
    """The shortest way on which a broken protocol is found out, and what is wrong there."""
    with mutant.breaks():
        found = explore(mutant.scenario, mutant.rules, follow=False).wrong
    if found is None:
        raise AssertionError(f"nothing that must not happen comes of it that {mutant.name}")
    return found


def rarest_way(scenario: Scenario) -> tuple[str, ...]:
    """The way to the least visited corner in which every fault has happened; of several, the deepest."""
    with scaled(scenario.times):
        model, start = scenario.model(Rules()), scenario.start()
        came: dict[World, tuple[World, str] | None] = {start: None}
        line = deque([start])
        while line:
            world = line.popleft()
            for move in model.moves(world):
                if move.world not in came:
                    came[move.world] = (world, move.label)
                    line.append(move.world)
    corners = Counter(map(_corner, came))
    spent = [world for world in came if not world.left]
    spent = [world for world in spent if _in_trouble(world)] or spent
    fewest = min(corners[_corner(world)] for world in spent)
    here = [world for world in spent if corners[_corner(world)] == fewest][-1]  # breadth first: the last is the deepest
    labels: list[str] = []
    while (before := came[here]) is not None:
        here, label = before
        labels.append(label)
    return tuple(reversed(labels))


def _corner(world: World) -> object:
    """What is remarkable about a world: states, and no offsets or times."""
    members = tuple(
        (
            member.life,
            member.frozen,
            tuple(conn != 0 for conn in member.conns),
            tuple(
                claim
                and (claim.state, claim.lock, claim.window >= 0, claim.busy, claim.unanswered, claim.start_at >= 0)
                for claim in member.claims
            ),
        )
        for member in world.members
    )
    return members, tuple(shelf.holder for shelf in world.shelves), tuple(flight.kind for flight in world.flights)


def _in_trouble(world: World) -> bool:
    """Whether somebody's lock is in doubt, or on its way out: at rest all ways look alike."""
    claims = [claim for member in world.members for claim in member.claims if claim is not None]
    return any(claim.lock.name in ("DOUBTED", "CONFIRMED_ONCE", "CHECKING") for claim in claims)


def nearest(scenario: Scenario, labels: Iterable[str]) -> Way:
    """The same way under the unbroken protocol, and on to its good end."""
    with scaled(scenario.times):
        model = scenario.model(Rules())
        world = scenario.start()
        steps: list[Step] = []
        refused: list[str] = []
        for label in labels:
            for step in _towards(model, world, label):
                steps.append(step)
                world = step.after
                if wrong := model.wrong(world):
                    raise AssertionError(f"{wrong}\n" + "\n".join(step.label for step in steps))
            if not steps or steps[-1].label != label:
                refused.append(label)
        return Way(scenario, tuple(steps), tuple(refused), home(model, world, scenario.bound))


def _towards(model: Model, world: World, label: str) -> Iterator[Step]:
    """The steps that it takes to make a move; none if the protocol does not make it."""
    while True:
        moves = model.moves(world)
        wanted = _pick(moves, label)
        urgent = next((move for move in moves if move.when == URGENT), None)
        if wanted is None and label != TICK:
            if is_fault(label):
                raise AssertionError(f"{label!r} cannot happen here: {[move.label for move in moves]}")
            return
        move = wanted or urgent
        assert move is not None, "time passes, or something is urgent"
        others = frozenset(one.label for one in model.possible(world)) - {move.label}
        yield Step(move.label, world, move.world, others)
        if wanted is not None:
            return
        world = move.world


def _pick(moves: list[Move], label: str) -> Move | None:
    found = [move for move in moves if move.label == label]
    if len({move.world for move in found}) > 1:
        raise AssertionError(f"{label!r} may mean several things here")
    return found[0] if found else None


def home(model: Model, world: World, bound: int) -> World:
    """The first world in which all is well, without any more faults."""
    here, ticks = model.calm(world), 0
    while not model.well(here):
        move = model.onward(here)
        ticks += move.label == TICK
        if ticks > bound:
            raise AssertionError(f"not well {bound} ticks after the last fault")
        here = move.world
    return here
