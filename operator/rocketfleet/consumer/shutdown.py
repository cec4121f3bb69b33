"""Stopping, as a table of phases: no pod goes before its offsets are safe.

Draining gives up every queue (each stops pulling, finishes what has begun, persists with a reply, unlocks; see
`ownership.py`). When all are gone, or time is up, the member unregisters, so that the others are told at once, and
closes. A second request to stop hurries: handlers are no longer waited for, but what is finished is still persisted.
What was in flight and did not finish is never committed.

`advance` returns the next phase and the steps, which `consumer.py` carries out in order. A signal that neither table
knows cannot come in that phase, and is an error.
"""

from enum import Enum, auto


class StopPhase(Enum):
    RUNNING = auto()
    DRAINING = auto()
    UNREGISTERING = auto()
    CLOSED = auto()


class Signal(Enum):
    STOP = auto()  # asked to stop: SIGTERM, a call, a drain request
    ALL_GONE = auto()  # no queue is held any more
    OUT_OF_TIME = auto()  # the drain took longer than it may
    UNREGISTERED = auto()
    FAILED = auto()  # the start has failed; or, by a bug, the drain


class StopStep(Enum):
    DRAIN = auto()  # stop rebalancing, give up every queue; then ALL_GONE or OUT_OF_TIME
    HURRY = auto()  # do not wait for handlers
    ABANDON = auto()  # drop what is left, uncommitted
    UNREGISTER = auto()  # leave the group
    SIGN_OFF = auto()  # nobody on this host has to give anything back in our name
    CLOSE = auto()


TABLE: dict[tuple[StopPhase, Signal], tuple[StopPhase, tuple[StopStep, ...]]] = {
    (StopPhase.RUNNING, Signal.STOP): (StopPhase.DRAINING, (StopStep.DRAIN,)),
    (StopPhase.RUNNING, Signal.FAILED): (StopPhase.CLOSED, (StopStep.CLOSE,)),
    (StopPhase.DRAINING, Signal.STOP): (StopPhase.DRAINING, (StopStep.HURRY,)),
    (StopPhase.DRAINING, Signal.ALL_GONE): (StopPhase.UNREGISTERING, (StopStep.UNREGISTER, StopStep.SIGN_OFF)),
    (StopPhase.DRAINING, Signal.OUT_OF_TIME): (StopPhase.UNREGISTERING, (StopStep.ABANDON, StopStep.UNREGISTER)),
    (StopPhase.DRAINING, Signal.FAILED): (StopPhase.CLOSED, (StopStep.CLOSE,)),
    (StopPhase.UNREGISTERING, Signal.UNREGISTERED): (StopPhase.CLOSED, (StopStep.CLOSE,)),
    (StopPhase.UNREGISTERING, Signal.FAILED): (StopPhase.CLOSED, (StopStep.CLOSE,)),
}

IGNORED: dict[tuple[StopPhase, Signal], str] = {
    (StopPhase.UNREGISTERING, Signal.STOP): "no handler is waited for any more",
    (StopPhase.CLOSED, Signal.STOP): "it has stopped",
}


class ImpossibleSignalError(Exception):
    """A signal that cannot come in a phase: all but STOP are sent by what the phase before has begun."""

    def __init__(self, phase: StopPhase, signal: Signal) -> None:
        super().__init__(f"{signal.name} cannot come to a consumer that is {phase.name}")


def advance(phase: StopPhase, signal: Signal) -> tuple[StopPhase, tuple[StopStep, ...]]:
    """The next phase and what to do."""
    if (phase, signal) in IGNORED:
        return phase, ()
    if (phase, signal) not in TABLE:
        raise ImpossibleSignalError(phase, signal)
    return TABLE[phase, signal]
