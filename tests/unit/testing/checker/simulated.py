"""A small orderly group, simulated as the promises have it: what it writes down is right, whatever befalls it.

Each queue has an owner who handles one message after the other and commits 50 ms later. A queue is handed over, or its
owner is killed: then the next owner begins 2.5 s later where the broker's offset is, so that what was not committed
comes again. A broker may be killed too, and comes back having forgotten nothing that its members cannot tell it.
"""

import itertools
from dataclasses import dataclass, field
from random import Random

from rocketfleet.testing.history import EventHistory, EventKind, HistoryEvent

COMMITS_AFTER = 0.05
QUIET = 100.0  # seconds at the end in which nothing happens


@dataclass
class SimulatedRun:
    """What was written down, and what a test needs to know to spoil it."""

    events: list[HistoryEvent] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)  # at the end
    ends: dict[str, int] = field(default_factory=dict)
    done: float = 0.0  # when everything was handled; QUIET seconds before the end
    repeated: int = 0

    @property
    def history(self) -> EventHistory:
        return EventHistory.of(self.events)

    def note(self, at: float, kind: EventKind, by: str, **more: object) -> None:
        fields = {name: more.pop(name) for name in ("message", "queue", "offset") if name in more}
        self.events.append(HistoryEvent(at, kind, by, **fields, details=more))  # type: ignore[arg-type]  # passed through


def simulate(random: Random, *, queues: int = 3, messages: int = 12, members: int = 3, kills: int = 2) -> SimulatedRun:
    """One run."""
    run = SimulatedRun()
    names = [f"m{number}" for number in range(members)]
    for name in names:
        run.note(0.0, EventKind.JOINED, name)
    killed: dict[str, float] = {}
    for name in random.sample(names, min(kills, members - 1)):
        killed[name] = random.uniform(3.0, 15.0)
        run.note(killed[name], EventKind.FAULT, "harness", name="killed", target=name)
    owned: list[tuple[float, str, str, bool]] = []  # when, who, which queue, whether it is owned from then on
    steps: dict[str, list[tuple[float, int]]] = {}
    for number in range(queues):
        queue = f"orders@broker-{'ab'[number % 2]}/{number}"
        steps[queue] = _consume(random, run, queue, names, number, messages, killed, owned)
    run.done = max(at for commits in steps.values() for at, _ in commits) + 1.0
    _say_owned(run, owned)
    _look(run, steps, random)
    run.note(run.done + QUIET, EventKind.END_OF_RUN, "harness")
    return run


def _consume(
    random: Random,
    run: SimulatedRun,
    queue: str,
    names: list[str],
    first: int,
    messages: int,
    killed: dict[str, float],
    owned: list[tuple[float, str, str, bool]],
) -> list[tuple[float, int]]:
    """One queue, from its first to its last message; returns when the broker had which offset."""
    turns = itertools.cycle(names)
    owner = next(itertools.islice(turns, first, None))
    numbers = itertools.count(1)
    now, offset, handled = 2.0, 0, set[int]()
    commits = [(0.0, 0)]
    owned.append((1.0, owner, queue, True))
    for sent in range(messages):
        at = 0.5 + sent * 0.3
        place = {"message": f"{queue}:{sent}", "queue": queue, "offset": sent}
        run.note(at, EventKind.SENT, "sender", **place, began=at - 0.01)
    while offset < messages:
        begin = max(now, 0.6 + offset * 0.3) + random.uniform(0.0, 0.2)
        end = begin + random.choice([0.001, 0.1, 1.0])
        dies = killed.get(owner, 1e9)
        if end + COMMITS_AFTER > dies:  # the kill comes before this message is safe
            if begin < dies:
                _note_handling(run, owner, queue, offset, begin, end if end < dies else None, next(numbers))
                run.repeated += end < dies
                handled |= {offset} if end < dies else set()
            owner = next(one for one in turns if killed.get(one, 1e9) > max(now, dies))
            now = max(now, dies) + 2.5
            owned.append((now, owner, queue, True))
            continue
        good = random.random() < 0.9
        _note_handling(run, owner, queue, offset, begin, end, next(numbers), good=good)
        now = end
        if good:
            offset += 1
            commits.append((end + COMMITS_AFTER, offset))
        if random.random() < 0.1:  # handed over
            now += COMMITS_AFTER
            owned.append((now, owner, queue, False))
            owner = next(one for one in turns if killed.get(one, 1e9) > now + 1.0)
            now += random.uniform(0.01, 0.5)
            owned.append((now, owner, queue, True))
    dies = killed.get(owner, 0.0)
    if dies > now:  # nothing is left to be handled, but the queue goes to somebody else
        owner = next(one for one in turns if one not in killed)
        owned.append((dies + 2.5, owner, queue, True))
        commits.append((dies + 2.5, offset))
    run.owners[queue], run.ends[queue] = owner, messages
    return commits


def _note_handling(
    run: SimulatedRun,
    member: str,
    queue: str,
    offset: int,
    begin: float,
    end: float | None,
    number: int,
    *,
    good: bool = True,
) -> None:
    place = {"message": f"{queue}:{offset}", "queue": queue, "offset": offset}
    handling = f"{queue}-{number}"
    run.note(begin, EventKind.BEGIN, member, **place, handling=handling)
    if end is not None:
        outcome = "success" if good else "retry"
        run.note(end, EventKind.END, member, **place, handling=handling, outcome=outcome)


def _say_owned(run: SimulatedRun, owned: list[tuple[float, str, str, bool]]) -> None:
    holds: dict[str, set[str]] = {}
    for at, member, queue, gets in sorted(owned):
        held = holds.setdefault(member, set())
        held.symmetric_difference_update({queue} if gets != (queue in held) else set())
        run.note(at, EventKind.OWNS, member, queues=sorted(held))


def _look(run: SimulatedRun, steps: dict[str, list[tuple[float, int]]], random: Random) -> None:
    """The observer: offsets now and then, ends at the end."""
    now = random.uniform(0.0, 1.0)
    while now < run.done + QUIET:
        for queue, commits in steps.items():
            seen = max(offset for at, offset in commits if at <= now)
            run.note(now, EventKind.COMMITTED, "observer", queue=queue, offset=seen)
        now += random.choice([0.25, 1.0, 3.0])
    for queue, end in run.ends.items():
        run.note(now, EventKind.END_OFFSET, "observer", queue=queue, offset=end)
        run.note(now, EventKind.COMMITTED, "observer", queue=queue, offset=end)
