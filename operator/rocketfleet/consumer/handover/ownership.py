"""Who may touch a queue: the handover protocol, as two tables.

Theory. A broker keeps three things about a group: which client id holds the lock of a queue, which members it has a
connection to, and the offset of each queue. It keeps the first two in memory only, the third on disk every five
seconds, and it guards none of them: a lock can be released in anybody's name, an offset can be written by anybody. So
the members keep the rules, and there are five. Everything below follows from them.

1. *A queue is consumed only under its lock.* A queue that is allocated to us is WANTED; with the lock it is OWNED, and
   only then is it pulled, delivered and committed. When it is allocated to somebody else it is LEAVING: nothing new
   begins, what has begun finishes; then SETTLING: the offset is persisted with the broker's reply; then RELEASING: the
   lock is given back, again and again until the broker has answered; then it is GONE. The next owner gets the lock only
   after that, so it reads the final offset: no message twice, none skipped.
2. *After an interruption nothing that was believed before is used without asking again.* The broker's word holds for
   the connection it was given on and for as long as the lock lives. When the connection breaks, when the broker has
   another master, when the lease is out, when this process was frozen, the lock is DOUBTED: nothing begins,
   nothing is committed, what has begun goes on, nothing is thrown away. It is believed again after two grants, apart in
   time (CONFIRMED_ONCE), and a look at the stored offset (CHECKING). The time apart is longer than others need to
   release a lock they think forfeited. The offset tells whether somebody else had the queue meanwhile: if it is beyond
   all that we have sent, our window is void and the queue starts anew; if it is not, the window goes on, and the broker
   is told again what it may have forgotten.
3. *A lock is released for somebody else only when that member cannot still believe in it*: it was absent from the list
   of every broker that answers, for longer than a live member needs to come back (`roster.py`).
4. *Who is a member needs a view that is whole.* A broker that has just started knows only those who have come back; a
   list counts when it was not interrupted, or when everybody has had the time to return (`roster.py`).
5. *Where a group began is stored before the first delivery* (`beginning.py`), and where a queue starts before its
   first pull (`offsets.py`). So whoever comes next knows what is new and what is history.

The lease. The broker forgets a lock some time after it was last asked for, 60 s unless it is told otherwise. The owner
notes when it *sent* each request that was granted, and past that time, less a margin, the lock is in doubt by itself.
The clock must run while the process is stopped (CLOCK_BOOTTIME), or one that was frozen would believe in its lease.

Without a master there is nobody to ask. Where a slave is there, a concurrent group goes on from it by the last agreed
ownership (STANDBY): nobody else can get the lock, so nobody else begins. Offsets are kept, and told when there is a
master again; until then a member that is newly given such a queue leaves its owner time to come back first
(`lock_keeper.py`).

A queue can be MOVED: the group was reset, or the offset that was asked for does not exist. The broker says so once. Who
holds the lock starts again from there at once. In doubt the queue may be somebody else's to move, so it is remembered
until that is settled, and a queue that is leaving is left there. From a slave it may mean only that the slave is
behind: the queue is restarted, but without a lease nothing begins in its new window before a master was asked.

Without locks (Eager, broadcasting) a queue is owned when it is allocated and gone when it is not.

`LOCK` says what we believe about the lock, `TABLE` what we do with the queue, `IGNORED` what means nothing in a state,
and why; `step` puts them together. It returns the next state and the effects, which `holdings.py` carries out in order.
An event that none of them knows cannot happen, and is an error.
"""

from enum import Enum, auto
from typing import NamedTuple

AWAKE_SECONDS = 1.5
"""For how long a lock is believed without a look at the clock by the event loop.

A process that is frozen does not learn that its connection broke until its loop runs again, and its handlers' threads
may run first. So a window's lease is moved on bit by bit while the loop is awake, by less than others wait before they
release a lock (`roster.GRACE_SECONDS`); a loop that comes too late has been away, and that is an interruption too.
"""

LEASE_MARGIN = 5.0
"""How long before a lock ends the owner stops believing in it."""

CONFIRM_APART = 0.5
"""Seconds between the two grants that a doubtful lock needs."""


class Lock(Enum):
    """What is believed about the broker's lock."""

    NONE = auto()  # not ours, as far as we know
    HELD = auto()  # ours
    DOUBTED = auto()  # was ours; something came between
    CONFIRMED_ONCE = auto()  # in doubt, and granted once since
    CHECKING = auto()  # granted twice; the stored offset is being read


class OwnershipState(Enum):
    """What is done with the queue."""

    WANTED = auto()  # allocated to us, lock not held
    OWNED = auto()  # ours: pulled, delivered, committed, while the lock is held; on hold while it is in doubt
    STANDBY = auto()  # ours by the last agreement: its broker has no master, and is read from a slave
    LEAVING = auto()  # allocated elsewhere: what has begun finishes
    SETTLING = auto()  # nothing is in flight: the final offset is being persisted
    RELEASING = auto()  # the lock is being given back
    GONE = auto()  # nothing of it is left here


class QueueEvent(Enum):
    GRANTED = auto()  # the broker says the lock is ours
    REFUSED = auto()  # the broker says it is somebody else's
    LAPSED = auto()  # the lease is out
    INTERRUPTED = auto()  # the connection to the broker broke, or it has another master
    UNCHANGED = auto()  # the stored offset is one that we have sent, or lower: nobody else had the queue
    OVERTAKEN = auto()  # the stored offset is beyond what we have sent: somebody else had the queue
    UNALLOCATED = auto()  # rebalancing gave the queue to somebody else
    STOPPING = auto()  # we are leaving the group
    NO_MASTER = auto()  # the broker has no master, but a slave that can be read
    MASTER_BACK = auto()  # it has one again
    MOVED = auto()  # the broker sends us to another offset
    SETTLED = auto()  # what had begun is finished, or its time is up
    PERSISTED = auto()  # the final offset is confirmed by the broker, or its time is up
    UNLOCKED = auto()  # the broker has answered, or the lock has ended by itself


class News(Enum):
    """What an event has changed about the lock, or means because of what is believed about it."""

    NOTHING = auto()
    GAINED = auto()
    RENEWED = auto()
    IN_DOUBT = auto()
    CONFIRMED_TWICE = auto()
    RECOVERED = auto()
    SUPERSEDED = auto()  # the lock is ours, but the window is not worth anything any more
    LOST = auto()
    MOVED_UNDER_LOCK = auto()
    MOVED_IN_DOUBT = auto()


class Effect(Enum):
    START = auto()  # a new window from the stored offset; pull
    EXTEND = auto()  # move the lease on
    HOLD = auto()  # end the lease without dropping anything: nothing begins, nothing is committed
    CHECK = auto()  # read the stored offset, then UNCHANGED or OVERTAKEN
    RESUME = (
        auto()
    )  # as EXTEND, after HOLD; tell the broker what it may have forgotten; RESTART where a move is remembered
    RESTART = auto()  # drop the window, and open a new one where the broker has moved us; pull
    REMEMBER = auto()  # where the broker has moved us: commit nothing but that, until RESUME or the end
    GO_ON = auto()  # deliver without a lease, commit nothing
    ABANDON = auto()  # drop the window; commit nothing
    WIND_DOWN = auto()  # stop pulling, drop what is only buffered, wait for what has begun, then SETTLED
    PERSIST = auto()  # commit with a reply, then PERSISTED
    UNLOCK = auto()  # give the lock back, then UNLOCKED


class QueueOwnership(NamedTuple):
    """The whole state of one queue."""

    state: OwnershipState
    lock: Lock


_L, _S, _E, _N, _F = Lock, OwnershipState, QueueEvent, News, Effect

LOCK: dict[tuple[Lock, QueueEvent], tuple[Lock, News]] = {
    (_L.NONE, _E.GRANTED): (_L.HELD, _N.GAINED),
    (_L.NONE, _E.REFUSED): (_L.NONE, _N.NOTHING),
    (_L.NONE, _E.LAPSED): (_L.NONE, _N.NOTHING),
    (_L.NONE, _E.INTERRUPTED): (_L.NONE, _N.NOTHING),
    (_L.HELD, _E.GRANTED): (_L.HELD, _N.RENEWED),
    (_L.HELD, _E.REFUSED): (_L.NONE, _N.LOST),
    (_L.HELD, _E.LAPSED): (_L.DOUBTED, _N.IN_DOUBT),
    (_L.HELD, _E.INTERRUPTED): (_L.DOUBTED, _N.IN_DOUBT),
    (_L.DOUBTED, _E.GRANTED): (_L.CONFIRMED_ONCE, _N.NOTHING),
    (_L.DOUBTED, _E.REFUSED): (_L.NONE, _N.LOST),
    (_L.DOUBTED, _E.LAPSED): (_L.DOUBTED, _N.NOTHING),
    (_L.DOUBTED, _E.INTERRUPTED): (_L.DOUBTED, _N.NOTHING),
    (_L.CONFIRMED_ONCE, _E.GRANTED): (_L.CHECKING, _N.CONFIRMED_TWICE),
    (_L.CONFIRMED_ONCE, _E.REFUSED): (_L.NONE, _N.LOST),
    (_L.CONFIRMED_ONCE, _E.LAPSED): (_L.DOUBTED, _N.NOTHING),
    (_L.CONFIRMED_ONCE, _E.INTERRUPTED): (_L.DOUBTED, _N.NOTHING),
    (_L.CHECKING, _E.GRANTED): (_L.CHECKING, _N.NOTHING),
    (_L.CHECKING, _E.REFUSED): (_L.NONE, _N.LOST),
    (_L.CHECKING, _E.LAPSED): (_L.DOUBTED, _N.NOTHING),
    (_L.CHECKING, _E.INTERRUPTED): (_L.DOUBTED, _N.NOTHING),
    (_L.HELD, _E.NO_MASTER): (_L.DOUBTED, _N.NOTHING),
    (_L.CONFIRMED_ONCE, _E.NO_MASTER): (_L.DOUBTED, _N.NOTHING),
    (_L.CHECKING, _E.NO_MASTER): (_L.DOUBTED, _N.NOTHING),
    (_L.CHECKING, _E.UNCHANGED): (_L.HELD, _N.RECOVERED),
    (_L.CHECKING, _E.OVERTAKEN): (_L.HELD, _N.SUPERSEDED),
    (_L.HELD, _E.MOVED): (_L.HELD, _N.MOVED_UNDER_LOCK),
    (_L.DOUBTED, _E.MOVED): (_L.DOUBTED, _N.MOVED_IN_DOUBT),
    (_L.CONFIRMED_ONCE, _E.MOVED): (_L.CONFIRMED_ONCE, _N.MOVED_IN_DOUBT),
    (_L.CHECKING, _E.MOVED): (_L.CHECKING, _N.MOVED_IN_DOUBT),
    # A look at the stored offset that comes too late says nothing.
    **{(lock, _E.UNCHANGED): (lock, _N.NOTHING) for lock in Lock if lock is not _L.CHECKING},
    **{(lock, _E.OVERTAKEN): (lock, _N.NOTHING) for lock in Lock if lock is not _L.CHECKING},
}

TABLE: dict[tuple[OwnershipState, QueueEvent | News], tuple[OwnershipState, tuple[Effect, ...]]] = {
    (_S.WANTED, _N.GAINED): (_S.OWNED, (_F.START,)),
    # The lock may have been granted by a request whose answer is still on its way: give it back in any case.
    (_S.WANTED, _E.UNALLOCATED): (_S.RELEASING, (_F.UNLOCK,)),
    (_S.WANTED, _E.STOPPING): (_S.RELEASING, (_F.UNLOCK,)),
    (_S.OWNED, _N.RENEWED): (_S.OWNED, (_F.EXTEND,)),
    (_S.OWNED, _N.IN_DOUBT): (_S.OWNED, (_F.HOLD,)),
    (_S.OWNED, _N.CONFIRMED_TWICE): (_S.OWNED, (_F.CHECK,)),
    (_S.OWNED, _N.RECOVERED): (_S.OWNED, (_F.RESUME,)),
    (_S.OWNED, _N.SUPERSEDED): (_S.OWNED, (_F.ABANDON, _F.START)),
    (_S.OWNED, _N.LOST): (_S.WANTED, (_F.ABANDON,)),
    (_S.OWNED, _N.MOVED_UNDER_LOCK): (_S.OWNED, (_F.RESTART,)),
    (_S.OWNED, _N.MOVED_IN_DOUBT): (_S.OWNED, (_F.REMEMBER,)),
    (_S.OWNED, _E.UNALLOCATED): (_S.LEAVING, (_F.WIND_DOWN,)),
    (_S.OWNED, _E.STOPPING): (_S.LEAVING, (_F.WIND_DOWN,)),
    (_S.OWNED, _E.NO_MASTER): (_S.STANDBY, (_F.GO_ON,)),
    (_S.STANDBY, _E.STOPPING): (_S.LEAVING, (_F.HOLD, _F.WIND_DOWN)),
    (_S.STANDBY, _E.MASTER_BACK): (_S.OWNED, (_F.HOLD,)),
    (_S.STANDBY, _N.LOST): (_S.WANTED, (_F.ABANDON,)),
    (_S.STANDBY, _N.MOVED_IN_DOUBT): (_S.STANDBY, (_F.RESTART,)),
    (_S.LEAVING, _N.RENEWED): (_S.LEAVING, (_F.EXTEND,)),
    (_S.LEAVING, _N.IN_DOUBT): (_S.LEAVING, (_F.HOLD,)),
    (_S.LEAVING, _N.CONFIRMED_TWICE): (_S.LEAVING, (_F.CHECK,)),
    (_S.LEAVING, _N.RECOVERED): (_S.LEAVING, (_F.EXTEND,)),
    (_S.LEAVING, _N.SUPERSEDED): (_S.RELEASING, (_F.ABANDON, _F.UNLOCK)),
    (_S.LEAVING, _N.LOST): (_S.GONE, (_F.ABANDON,)),
    (_S.LEAVING, _N.MOVED_UNDER_LOCK): (_S.LEAVING, (_F.REMEMBER,)),
    (_S.LEAVING, _N.MOVED_IN_DOUBT): (_S.LEAVING, (_F.REMEMBER,)),
    (_S.LEAVING, _E.NO_MASTER): (_S.LEAVING, (_F.HOLD,)),
    (_S.LEAVING, _E.SETTLED): (_S.SETTLING, (_F.PERSIST,)),
    (_S.SETTLING, _N.RENEWED): (_S.SETTLING, (_F.EXTEND,)),
    (_S.SETTLING, _N.IN_DOUBT): (_S.SETTLING, (_F.HOLD,)),
    (_S.SETTLING, _N.CONFIRMED_TWICE): (_S.SETTLING, (_F.CHECK,)),
    (_S.SETTLING, _N.RECOVERED): (_S.SETTLING, (_F.EXTEND,)),
    (_S.SETTLING, _N.SUPERSEDED): (_S.RELEASING, (_F.ABANDON, _F.UNLOCK)),
    (_S.SETTLING, _N.LOST): (_S.GONE, (_F.ABANDON,)),
    (_S.SETTLING, _N.MOVED_UNDER_LOCK): (_S.SETTLING, (_F.REMEMBER,)),
    (_S.SETTLING, _N.MOVED_IN_DOUBT): (_S.SETTLING, (_F.REMEMBER,)),
    (_S.SETTLING, _E.NO_MASTER): (_S.SETTLING, (_F.HOLD,)),
    # Out of time with the lock in doubt, it is given back too: that frees nothing but what is ours.
    (_S.SETTLING, _E.PERSISTED): (_S.RELEASING, (_F.UNLOCK,)),
    (_S.RELEASING, _E.UNLOCKED): (_S.GONE, ()),
}


IGNORED: dict[tuple[OwnershipState, QueueEvent], str] = {
    (_S.STANDBY, _E.GRANTED): "a late answer, of a master that is none any more",
    (_S.STANDBY, _E.UNALLOCATED): "nobody else can have it before there is a master; it is given up in good order then",
    (_S.LEAVING, _E.UNALLOCATED): "it is leaving already",
    (_S.LEAVING, _E.STOPPING): "it is leaving already",
    (_S.SETTLING, _E.UNALLOCATED): "it is leaving already",
    (_S.SETTLING, _E.STOPPING): "it is leaving already",
    **{(_S.RELEASING, event): "it is being given back already" for event in QueueEvent if event is not _E.UNLOCKED},
    **{(_S.GONE, event): "nothing of it is left here" for event in QueueEvent},
}


class ImpossibleEventError(Exception):
    """An event that cannot happen in a state: whoever sends it looks at the state first, or works for that state only.

    NO_MASTER is for queues that have a window and are not read from a slave yet, MASTER_BACK for those that are. MOVED
    is what a window's pulls are answered, or what a broker says of a queue that has one.
    SETTLED, PERSISTED and UNLOCKED are the end of a task that LEAVING, SETTLING and RELEASING have; it is cancelled
    when they are left in another way.
    """

    def __init__(self, now: QueueOwnership, event: QueueEvent) -> None:
        super().__init__(f"{event.name} cannot happen to a queue that is {now.state.name}, its lock {now.lock.name}")


def step(now: QueueOwnership, event: QueueEvent) -> tuple[QueueOwnership, tuple[Effect, ...]]:
    """The next state and what to do about it."""
    lock, news = LOCK.get((now.lock, event), (now.lock, News.NOTHING))
    cause: QueueEvent | News = event if news is News.NOTHING else news
    state, effects = TABLE.get((now.state, cause), (now.state, ()))
    if (now.state, event) in IGNORED:
        state, lock, effects = now.state, now.lock, ()
    elif (now.state, cause) not in TABLE and (news is not News.NOTHING or (now.lock, event) not in LOCK):
        raise ImpossibleEventError(now, event)
    if state in (OwnershipState.WANTED, OwnershipState.RELEASING, OwnershipState.GONE):
        lock = Lock.NONE
    return QueueOwnership(state, lock), effects


def lease_until(requested_at: float, lock_lives: float) -> float:
    """Until when a lock is believed in that was asked for at `requested_at` and granted."""
    return requested_at + lock_lives - min(LEASE_MARGIN, lock_lives / 4)


def nobody_else_had_it(stored: int | None, sent: int) -> bool:
    """Whether a stored offset is one of our own: the highest that we sent, one before it, or one that was forgotten."""
    return stored is None or stored <= sent
