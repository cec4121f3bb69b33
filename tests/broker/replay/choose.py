"""Which ways are replayed: `python -m tests.broker.replay.choose` searches for them anew and writes them down.

Of each mutant that breaks a promise of safety, the shortest way to where it is found out; and the rarest ways of some
scenarios in which several things go wrong. What needs another fleet than one broker is left out, with the reason.
"""

from collections.abc import Callable, Iterator
from functools import partial

from tests.broker.replay.schedule import DIRECTORY, Schedule
from tests.broker.replay.script import UntranslatableError, translate
from tests.unit.protocol.explore import STUCK
from tests.unit.protocol.model import NONE
from tests.unit.protocol.mutants import MUTANTS, Mutant
from tests.unit.protocol.paths import TICK, Way, nearest, rarest_way, wrong_way
from tests.unit.protocol.scenarios import Scenario, scenario

USUAL_LIVES = 60.0
SHORT_LIVES = 6.0

RARE = (
    "a network is cut twice",
    "a broker restarts as somebody joins",
    "a request is late, and a network is cut",
    "a process freezes and is cut off",
    "answers are lost or late",
    "one dies as another joins",
)
"""Scenarios whose rarest way is replayed."""

LEFT_OUT = {
    "owners do not come first when there is a master again": "needs a slave",
    "a new queue of a group that has begun starts at its end": "the topic has to grow before the way begins",
    # The model is stricter there than the code, which does not begin anew but looks at each offset before it writes.
    "a beginning goes on without its lock": "at which of its requests a member freezes cannot be chosen from outside",
    "every stored offset is taken for our own": "the way of another mutant goes there too",
    "a queue is unlocked before its offset is persisted": "the same",
    "a rewind that is heard of while the queue is leaving is ignored": "its only member leaves",
}


def sources() -> Iterator[tuple[str, Callable[[], Schedule]]]:
    """The name of each schedule, and how it is found anew."""
    for mutant in MUTANTS:
        if mutant.found != STUCK and mutant.name not in LEFT_OUT:
            yield mutant.name, partial(_of_mutant, mutant)
    for name in RARE:
        yield f"rare, {name}", partial(_of_scenario, scenario(name))


def _of_mutant(mutant: Mutant) -> Schedule:
    wrong = wrong_way(mutant)
    sound = mutant.scenario._replace(times=scenario(mutant.scenario.name).times)
    return _schedule(mutant.name, nearest(sound, wrong.trace), mutant.name, wrong.what)


def _of_scenario(one: Scenario) -> Schedule:
    return _schedule(f"rare, {one.name}", nearest(one, rarest_way(one)))


def _schedule(name: str, way: Way, mutant: str = "", found: str = "") -> Schedule:
    told = " ".join(way.labels)
    short = "FREEZES" in told or "hears nothing" in told or _lock_ends(way)
    lives = SHORT_LIVES if short else USUAL_LIVES
    script = translate(way, lives)
    scenario = way.scenario
    running = tuple(f"m{m}" for m in scenario.running)
    return Schedule(
        name=name,
        scenario=scenario.name,
        mutant=mutant,
        found=found,
        members=tuple(sorted({*running, *(one.member for one in script.actions if one.do == "join")})),
        running=running,
        queues=len(scenario.home),
        mode="Orderly",
        lives=lives,
        fresh=scenario.fresh,
        restarted=scenario.restarted,
        slow=bool(scenario.times.slow),
        labels=way.labels,
        refused=way.refused,
        skipped=script.skipped,
        actions=script.actions,
        prediction=script.prediction,
    )


def _lock_ends(way: Way) -> bool:
    """Whether a lock ends by itself on a way."""
    return any(
        before.holder != NONE and after.holder == NONE
        for step in way.steps
        if step.label == TICK
        for before, after in zip(step.before.shelves, step.after.shelves, strict=True)
    )


def main() -> None:
    for path in DIRECTORY.glob("*.json"):
        path.unlink()
    DIRECTORY.mkdir(exist_ok=True)
    for _, find in sources():
        schedule = find()
        schedule.file.write_text(schedule.written())
        print(f"{len(schedule.actions):3} actions, {len(schedule.skipped)} moves by themselves: {schedule.name}")


if __name__ == "__main__":
    try:
        main()
    except UntranslatableError as move:
        raise SystemExit(f"this cannot be done to real members: {move}") from None
