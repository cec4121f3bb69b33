"""The protocol with one rule broken at a time. Each has to be found out, or the exploration proves nothing.

A mutant replaces an entry of a table, a function or a duration of the consumer, or a decision of its shell (`Rules`).
`rule` is the number of the rule in `consumer/handover/ownership.py`; 0 is the lease.

Three are decisions of the shell that the exploration itself has found missing: `Holdings.stay_awake`, the offset that
is told again until its answer is sure (`BrokerOffsets`), and the lock that a beginning asks for again (`Beginnings`).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import NamedTuple
from unittest.mock import patch

from tests.unit.protocol.explore import STUCK
from tests.unit.protocol.model import Rules, Times
from tests.unit.protocol.scenarios import Scenario, scenario

from rocketfleet.consumer.handover import lock_keeper, ownership, roster
from rocketfleet.consumer.handover.ownership import Effect, Lock, News, OwnershipState, QueueEvent
from rocketfleet.consumer.offset_storage import beginning

Break = Callable[[], AbstractContextManager[object]]


class Mutant(NamedTuple):
    name: str
    rule: int
    scenario: Scenario
    found: str  # part of what is found
    breaks: Break = nullcontext
    rules: Rules = Rules()


def _lock(lock: Lock, event: QueueEvent, after: Lock, news: News) -> Break:
    return partial(patch.dict, ownership.LOCK, {(lock, event): (after, news)})


def _table(state: OwnershipState, event: QueueEvent | News, after: OwnershipState, *effects: Effect) -> Break:
    return partial(patch.dict, ownership.TABLE, {(state, event): (after, effects)})


def _function(module: object, function: str, broken: Callable[..., object]) -> Break:
    return partial(patch.object, module, function, broken)


_look = roster.look


def _look_without_waiting(before: roster.Roster, lists: object, *, interrupted: bool, now: float) -> roster.Roster:
    del interrupted
    return _look(before, lists, interrupted=False, now=now)  # type: ignore[arg-type]


def _begun_by_half(stored: object) -> int | None:
    return beginning.LONG_AGO if any(mark is not None for mark in stored) else None  # type: ignore[attr-defined]


MUTANTS = (
    Mutant(
        "a queue is owned without its lock",
        1,
        scenario("joining and draining"),
        "is taken from",
        _lock(Lock.NONE, QueueEvent.REFUSED, Lock.HELD, News.GAINED),
    ),
    Mutant(
        "a queue is unlocked before what has begun is finished",
        1,
        scenario("joining and draining"),
        "begun a second time",
        _table(OwnershipState.OWNED, QueueEvent.UNALLOCATED, OwnershipState.RELEASING, Effect.UNLOCK),
    ),
    Mutant(
        "a queue is unlocked before its offset is persisted",
        1,
        scenario("joining and draining"),
        "begun a second time",
        _table(OwnershipState.LEAVING, QueueEvent.SETTLED, OwnershipState.RELEASING, Effect.UNLOCK),
    ),
    Mutant(
        "a lost connection is no reason to doubt",
        2,
        scenario("a network is cut"),
        "two owners",
        _lock(Lock.HELD, QueueEvent.INTERRUPTED, Lock.HELD, News.NOTHING),
    ),
    Mutant(
        "one grant settles a doubt",
        2,
        scenario("a network is cut"),
        "two owners",
        _lock(Lock.DOUBTED, QueueEvent.GRANTED, Lock.CHECKING, News.CONFIRMED_TWICE),
    ),
    Mutant(
        "the stored offset is not read after a doubt",
        2,
        scenario("a network is cut"),
        "though the group is at",
        _lock(Lock.CONFIRMED_ONCE, QueueEvent.GRANTED, Lock.HELD, News.RECOVERED),
    ),
    Mutant(
        "every stored offset is taken for our own",
        2,
        scenario("a network is cut"),
        "though the group is at",
        _function(ownership, "nobody_else_had_it", lambda _stored, _sent: True),
    ),
    Mutant(
        "what a broker has forgotten is not told again",
        2,
        scenario("a broker restarts"),
        STUCK,
        rules=Rules(tells_again=False),
    ),
    Mutant(
        "a member that is back asks for new locks at once",
        2,
        scenario("a process is started again"),
        "two owners",
        _function(lock_keeper, "may_ask", lambda _lock, **_: True),
    ),
    Mutant(
        "a broker restarts, and whoever is first back takes what is being handed over",
        2,
        scenario("a broker restarts as somebody joins"),
        "is taken from",
        _function(lock_keeper, "may_ask", lambda _lock, **_: True),
    ),
    Mutant(
        "owners do not come first when there is a master again",
        2,
        scenario("somebody joins while a broker has no master")._replace(times=Times(owners=0)),
        "is taken from",
    ),
    Mutant(
        "a member has departed when it is not listed",
        3,
        scenario("a connection is reset")._replace(times=Times(grace=0)),
        "two owners",
    ),
    Mutant(
        "nobody releases what a dead member held",
        3,
        scenario("one of three dies"),
        STUCK,
        _function(roster, "departed", lambda _roster, _now: frozenset()),
    ),
    Mutant(
        "nobody is awaited after an interruption",
        4,
        scenario("a broker restarts"),
        "is taken from",
        _function(roster, "look", _look_without_waiting),
    ),
    Mutant(
        "a newcomer believes the list of a young broker",
        4,
        scenario("somebody joins at a broker that has only just started"),
        "is taken from",
        _function(roster, "newcomer_waits", lambda _uptimes: 0.0),
    ),
    Mutant(
        "where the group began is not stored before the first delivery",
        5,
        scenario("a group begins, and its first member dies"),
        "nothing is finished",
        _function(beginning, "begun_at", lambda _stored: beginning.LONG_AGO),
        Rules(asks_beginning=False, stores_start=False),
    ),
    Mutant(
        "a new queue of a group that has begun starts at its end",
        5,
        scenario("a queue is new"),
        "nothing is finished",
        rules=Rules(asks_beginning=False),
    ),
    Mutant(
        "a group that is new is taken for one that others began",
        5,
        scenario("a group begins, and its first member dies"),
        "is history",
        _function(beginning, "begun_by_others", lambda _stored, _offsets: True),
    ),
    Mutant(
        "half a beginning is taken for a whole one",
        5,
        scenario("a group begins, and its first member dies"),
        "nothing is finished",
        _function(beginning, "begun_at", _begun_by_half),
    ),
    Mutant(
        "a beginning goes on without its lock",
        5,
        scenario("a group begins, and its first member freezes"),
        "nothing is finished",
        rules=Rules(keeps_lease_of_beginning=False),
    ),
    Mutant(
        "a lease that is out is no reason to doubt",
        0,
        scenario("a process freezes as somebody joins")._replace(faults={"freeze": 1, "join": 1, "drain": 1}, most=3),
        "though the group is at",
        _lock(Lock.HELD, QueueEvent.LAPSED, Lock.HELD, News.NOTHING),
    ),
    Mutant(
        "the lease stands still while its owner is frozen",
        0,
        scenario("a process freezes as somebody joins"),
        "two owners",
        rules=Rules(clock_runs=False),
    ),
    Mutant(
        "a member that wakes goes on before it looks at its connections",
        0,
        scenario("a process freezes and is cut off"),
        "two owners",
        rules=Rules(checks_itself=False),
    ),
    Mutant(
        "an update that was overtaken is not read back",
        2,
        scenario("answers are lost or late"),
        STUCK,
        rules=Rules(reads_back=False),
    ),
    Mutant(
        "a rewind that is heard of in doubt is ignored",
        2,
        scenario("a group is rewound as its owner freezes"),
        "undoes",
        _table(OwnershipState.OWNED, News.MOVED_IN_DOUBT, OwnershipState.OWNED),
    ),
    Mutant(
        "a rewind that is heard of while the queue is leaving is ignored",
        2,
        scenario("a group is rewound as a queue moves"),
        "undoes",
        _table(OwnershipState.LEAVING, News.MOVED_UNDER_LOCK, OwnershipState.LEAVING),
    ),
)
