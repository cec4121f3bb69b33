"""Who may touch a queue, as a table of states.

Theory. A queue that is allocated to this member is *wanted*; with the broker's lock it is *owned*, and only then is
it pulled, delivered and committed. When it is allocated to somebody else it is *leaving*: nothing new begins, what
has begun finishes; then it is *settling*: the offset is persisted with the broker's reply; then the lock is given
back, and it is *gone*. The next owner gets the lock only after that, so it reads the final offset: no message twice,
none skipped.

The lock is a lease. The broker forgets a lock 60 s after it was last asked for, so the owner notes when it *sent*
each successful request, and past that time less a margin it behaves as if the lock were lost: `LAPSED`. What happens
then is the one case where work is thrown away: another member may own the queue already, so nothing in flight may be
delivered or committed any more. The clock must run while the process is stopped (CLOCK_BOOTTIME, or the monotonic
clock where there is none), or a process that was frozen would believe in its lease.

A lock may also be taken away while it is valid: members that have left the group forfeit their locks, and a member
whose connection broke for a moment looks like one that has left. So a broken connection makes the lease *doubtful*
(`SUSPENDED`): nothing begins and nothing is committed until the lock has been confirmed twice, `CONFIRM_APART` apart,
which is longer than the others need to take it.

Without locks (Eager, broadcasting) a queue is owned when it is allocated and gone when it is not.

`step` is the whole table. It returns the next state and the effects, which the consumer carries out in order.
"""

from enum import Enum, auto

LEASE_MARGIN = 5.0
"""How long before that the owner stops believing in it."""

CONFIRM_APART = 0.5
"""Seconds between the two confirmations that a doubtful lock needs."""


class State(Enum):
    WANTED = auto()  # allocated to us, lock not held
    OWNED = auto()  # ours: pulled, delivered, committed
    SUSPENDED = auto()  # ours as far as we know, but the connection broke: begin nothing, commit nothing
    CONFIRMED_ONCE = auto()  # suspended, and the lock was confirmed once since
    LEAVING = auto()  # allocated elsewhere: what has begun finishes
    SETTLING = auto()  # nothing is in flight: the final offset is being persisted
    GONE = auto()  # nothing of it is left here


class Event(Enum):
    LOCKED = auto()  # the broker says the lock is ours
    REFUSED = auto()  # the broker says it is somebody else's
    LAPSED = auto()  # the lease is out
    DISCONNECTED = auto()  # the connection to the broker broke
    UNALLOCATED = auto()  # rebalancing gave the queue to somebody else, or we are shutting down
    SETTLED = auto()  # what had begun is finished, or its time is up
    PERSISTED = auto()  # the final offset is confirmed by the broker, or its time is up


class Effect(Enum):
    START = auto()  # a new window from the broker's offset; pull
    EXTEND = auto()  # move the lease on
    HOLD = auto()  # end the lease without dropping anything: nothing begins, nothing is committed
    RESUME = auto()  # as EXTEND, after HOLD
    ABANDON = auto()  # drop the window; commit nothing
    WIND_DOWN = auto()  # stop pulling, drop what is only buffered, wait for what has begun, then SETTLED
    PERSIST = auto()  # commit with a reply, then PERSISTED
    UNLOCK = auto()


_S, _E, _F = State, Event, Effect

TABLE: dict[tuple[State, Event], tuple[State, tuple[Effect, ...]]] = {
    (_S.WANTED, _E.LOCKED): (_S.OWNED, (_F.START,)),
    (_S.WANTED, _E.REFUSED): (_S.WANTED, ()),
    (_S.WANTED, _E.LAPSED): (_S.WANTED, ()),
    (_S.WANTED, _E.DISCONNECTED): (_S.WANTED, ()),
    # The lock may have been granted by a request whose answer is still on its way: give it back in any case.
    (_S.WANTED, _E.UNALLOCATED): (_S.GONE, (_F.UNLOCK,)),
    (_S.OWNED, _E.LOCKED): (_S.OWNED, (_F.EXTEND,)),
    (_S.OWNED, _E.REFUSED): (_S.WANTED, (_F.ABANDON,)),
    (_S.OWNED, _E.LAPSED): (_S.WANTED, (_F.ABANDON,)),
    (_S.OWNED, _E.DISCONNECTED): (_S.SUSPENDED, (_F.HOLD,)),
    (_S.OWNED, _E.UNALLOCATED): (_S.LEAVING, (_F.WIND_DOWN,)),
    (_S.SUSPENDED, _E.LOCKED): (_S.CONFIRMED_ONCE, ()),
    (_S.SUSPENDED, _E.REFUSED): (_S.WANTED, (_F.ABANDON,)),
    (_S.SUSPENDED, _E.LAPSED): (_S.WANTED, (_F.ABANDON,)),
    (_S.SUSPENDED, _E.DISCONNECTED): (_S.SUSPENDED, ()),
    # Whether the lock is still ours is unknown, so nothing is committed; unlocking somebody else's queue does nothing.
    (_S.SUSPENDED, _E.UNALLOCATED): (_S.GONE, (_F.ABANDON, _F.UNLOCK)),
    (_S.CONFIRMED_ONCE, _E.LOCKED): (_S.OWNED, (_F.RESUME,)),
    (_S.CONFIRMED_ONCE, _E.REFUSED): (_S.WANTED, (_F.ABANDON,)),
    (_S.CONFIRMED_ONCE, _E.LAPSED): (_S.WANTED, (_F.ABANDON,)),
    (_S.CONFIRMED_ONCE, _E.DISCONNECTED): (_S.SUSPENDED, ()),
    (_S.CONFIRMED_ONCE, _E.UNALLOCATED): (_S.GONE, (_F.ABANDON, _F.UNLOCK)),
    (_S.LEAVING, _E.LOCKED): (_S.LEAVING, (_F.EXTEND,)),
    (_S.LEAVING, _E.REFUSED): (_S.GONE, (_F.ABANDON,)),
    (_S.LEAVING, _E.LAPSED): (_S.GONE, (_F.ABANDON,)),
    # The next LOCKED moves the lease on again; if it does not come in time, nothing is committed.
    (_S.LEAVING, _E.DISCONNECTED): (_S.LEAVING, (_F.HOLD,)),
    (_S.LEAVING, _E.UNALLOCATED): (_S.LEAVING, ()),
    (_S.LEAVING, _E.SETTLED): (_S.SETTLING, (_F.PERSIST,)),
    (_S.SETTLING, _E.LOCKED): (_S.SETTLING, (_F.EXTEND,)),
    (_S.SETTLING, _E.REFUSED): (_S.GONE, (_F.ABANDON,)),
    (_S.SETTLING, _E.LAPSED): (_S.GONE, (_F.ABANDON,)),
    (_S.SETTLING, _E.DISCONNECTED): (_S.SETTLING, (_F.HOLD,)),
    (_S.SETTLING, _E.PERSISTED): (_S.GONE, (_F.UNLOCK,)),
}


def step(state: State, event: Event) -> tuple[State, tuple[Effect, ...]]:
    """The next state and what to do about it. An event that means nothing in a state changes nothing."""
    return TABLE.get((state, event), (state, ()))


def lease_until(requested_at: float, lock_lives: float) -> float:
    """Until when a lock is believed in that was asked for at `requested_at` and granted."""
    return requested_at + lock_lives - min(LEASE_MARGIN, lock_lives / 4)
