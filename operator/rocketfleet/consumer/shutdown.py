"""Stopping, as a table of phases: no pod goes before its offsets are safe.

Draining gives up every queue (each stops pulling, finishes what has begun, persists with a reply, unlocks; see
`ownership.py`). When all are gone, or time is up, the member unregisters, so that the others are told at once, and
closes. A second request to stop hurries: handlers are no longer waited for, but what is finished is still persisted.
What was in flight and did not finish is never committed.
"""

from enum import Enum, auto


class Phase(Enum):
    RUNNING = auto()
    DRAINING = auto()
    UNREGISTERING = auto()
    CLOSED = auto()


class Signal(Enum):
    STOP = auto()  # asked to stop: SIGTERM, a call, a drain request
    ALL_GONE = auto()  # no queue is held any more
    OUT_OF_TIME = auto()  # the drain took longer than it may
    UNREGISTERED = auto()


class Step(Enum):
    DRAIN = auto()  # stop rebalancing, give up every queue
    HURRY = auto()  # do not wait for handlers
    ABANDON = auto()  # drop what is left, uncommitted
    UNREGISTER = auto()
    CLOSE = auto()


TABLE: dict[tuple[Phase, Signal], tuple[Phase, tuple[Step, ...]]] = {
    (Phase.RUNNING, Signal.STOP): (Phase.DRAINING, (Step.DRAIN,)),
    (Phase.DRAINING, Signal.STOP): (Phase.DRAINING, (Step.HURRY,)),
    (Phase.DRAINING, Signal.ALL_GONE): (Phase.UNREGISTERING, (Step.UNREGISTER,)),
    (Phase.DRAINING, Signal.OUT_OF_TIME): (Phase.UNREGISTERING, (Step.ABANDON, Step.UNREGISTER)),
    (Phase.UNREGISTERING, Signal.UNREGISTERED): (Phase.CLOSED, (Step.CLOSE,)),
}


def advance(phase: Phase, signal: Signal) -> tuple[Phase, tuple[Step, ...]]:
    """The next phase and what to do; a signal that means nothing in a phase changes nothing."""
    return TABLE.get((phase, signal), (phase, ()))
