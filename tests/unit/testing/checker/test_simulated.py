"""What a right group wrote down is found right; one thing in it made wrong is found, and nothing else is."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.testing.checker.simulated import SimulatedRun, simulate
from tests.unit.testing.checker.story import found

from rocketfleet.testing.checker.check import check
from rocketfleet.testing.checker.history_verdict import HistoryVerdict
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.history import EventKind, HandlingOutcome, HistoryEvent

randoms = st.integers(0, 2**32).map(Random)
PROMISES = Promises(orderly=True)


def judged(run: SimulatedRun) -> HistoryVerdict:
    return check(run.history, PROMISES)


@given(randoms, st.integers(1, 4), st.integers(2, 4), st.integers(0, 3))
def test_a_right_history_is_ok(random: Random, queues: int, members: int, kills: int) -> None:
    run = simulate(random, queues=queues, members=members, kills=kills)
    verdict = judged(run)
    assert verdict.ok, str(verdict)
    assert verdict.sent == verdict.handled == queues * 12
    assert sum(verdict.excused.values()) == run.repeated


def some_message(run: SimulatedRun, random: Random) -> str:
    return random.choice(sorted({event.message for event in run.events if event.kind is EventKind.SENT}))


def safe_message(run: SimulatedRun, random: Random) -> HistoryEvent:
    """The last success of a message whose member lived on for long enough to commit it."""
    ends = {e.message: e for e in run.history.kind(EventKind.END) if e.details["outcome"] == "success"}
    killed = {e.details["target"]: e.at for e in run.events if e.kind is EventKind.FAULT}
    return random.choice([e for e in ends.values() if not 0.0 < killed.get(e.by, e.at) - e.at < 1.1])


def lose(run: SimulatedRun, random: Random) -> None:
    message = some_message(run, random)
    run.events = [
        replace(event, details={**event.details, "outcome": HandlingOutcome.ERROR.value})
        if event.kind is EventKind.END and event.message == message
        else event
        for event in run.events
    ]


def leave_out(run: SimulatedRun, random: Random) -> None:
    message = some_message(run, random)
    run.events = [event for event in run.events if event.message != message or event.kind is EventKind.SENT]


def repeat(run: SimulatedRun, random: Random) -> HistoryEvent:
    """When everything has long been safe. Returns the end of the handling before."""
    before = safe_message(run, random)
    at = run.done + random.uniform(1.0, 50.0)
    place = {"message": before.message, "queue": before.queue, "offset": before.offset}
    member = run.owners[before.queue]
    run.note(at, EventKind.BEGIN, member, **place, handling="again")
    run.note(at + 0.1, EventKind.END, member, **place, handling="again", outcome="success")
    return before


def repeat_after_a_kill(run: SimulatedRun, random: Random) -> None:
    """Whoever handled it is killed, but only after the offset was safe; and joins again at once."""
    before = repeat(run, random)
    again = run.events[-1].at - 0.1
    if before.by not in {event.details["target"] for event in run.events if event.kind is EventKind.FAULT}:
        at = random.uniform(run.done + 0.5, again - 0.3)
        run.note(at, EventKind.FAULT, "harness", name="killed", target=before.by)
        run.note(at + 0.2, EventKind.JOINED, before.by)
        held = [queue for queue, owner in run.owners.items() if owner == before.by]
        run.note(at + 0.2, EventKind.OWNS, before.by, queues=held)


def hurry(run: SimulatedRun, random: Random) -> None:
    """A message is begun while the one before it is being handled."""
    begun = sorted((event for event in run.events if event.kind is EventKind.BEGIN), key=lambda event: event.at)
    pairs = [
        (before, after)
        for after in begun
        if after is next(one for one in begun if one.message == after.message)
        for before in [last_success(run, after.queue, (after.offset or 0) - 1)]
        if before is not None and before.by == after.by
    ]
    before, after = random.choice(pairs)
    run.events.remove(after)
    run.events.append(replace(after, at=before.at - 0.0005))


def last_success(run: SimulatedRun, queue: str, offset: int) -> HistoryEvent | None:
    """The end of the first success of an offset."""
    ends = [
        event
        for event in run.events
        if event.kind is EventKind.END and (event.queue, event.offset) == (queue, offset)
        if event.details["outcome"] == "success"
    ]
    return min(ends, key=lambda event: event.at, default=None)


def join_in(run: SimulatedRun, random: Random) -> None:
    """Another member is inside a handler of the same queue, and fails."""
    ends = [event for event in run.events if event.kind is EventKind.END]
    end = random.choice(ends)
    place = {"message": end.message, "queue": end.queue, "offset": end.offset}
    run.note(end.at - 0.0005, EventKind.BEGIN, "stranger", **place, handling="strange")
    run.note(end.at - 0.0001, EventKind.END, "stranger", **place, handling="strange", outcome="error")


def set_back(run: SimulatedRun, random: Random) -> None:
    queue = random.choice(sorted(run.ends))
    at = run.done + random.uniform(10.0, 90.0)
    run.events = [e for e in run.events if not (e.kind is EventKind.COMMITTED and abs(e.at - at) < 0.001)]
    run.note(at, EventKind.COMMITTED, "observer", queue=queue, offset=random.randrange(run.ends[queue]))


def give_up(run: SimulatedRun, random: Random) -> None:
    queue, member = random.choice(sorted(run.owners.items()))
    at = run.done + random.uniform(10.0, 40.0)
    held = sorted(one for one, owner in run.owners.items() if owner == member)
    run.note(at, EventKind.OWNS, member, queues=[one for one in held if one != queue])
    run.note(at + random.uniform(5.1, 30.0), EventKind.OWNS, member, queues=held)


def leave_behind(run: SimulatedRun, random: Random) -> None:
    queue = random.choice(sorted(run.ends))
    run.note(run.done + 150.0, EventKind.END_OFFSET, "observer", queue=queue, offset=run.ends[queue] + 1)


SPOILING: list[tuple[Callable[[SimulatedRun, Random], object], str]] = [
    (lose, "lost"),
    (leave_out, "unseen"),
    (repeat, "repeated"),
    (repeat_after_a_kill, "repeated"),
    (hurry, "out of order"),
    (join_in, "double"),
    (set_back, "went back"),
    (give_up, "unowned"),
    (leave_behind, "stuck"),
]


@pytest.mark.parametrize(("spoil", "family"), SPOILING)
@given(random=randoms, kills=st.integers(0, 2))
@settings(max_examples=60)
def test_what_is_made_wrong_is_found_and_nothing_else(
    spoil: Callable[[SimulatedRun, Random], object], family: str, random: Random, kills: int
) -> None:
    run = simulate(random, kills=kills)
    spoil(run, random)
    verdict = judged(run)
    assert found(verdict) == {family: 1}, str(verdict)
    assert verdict.findings[0].excerpt
    if spoil not in (lose, leave_out):  # they may take a repetition that was excused out of the history
        assert sum(verdict.excused.values()) == run.repeated
