"""What a history is held against: docs/guarantees.md in figures.

Each figure carries the words of that page it is taken from, and a test holds the two together. Where the page says
"about", the figure has room for a machine that is busy; a run with other settings (locks that live shorter, handlers
that are waited for longer) says so here.
"""

from dataclasses import dataclass, field
from typing import Any


def _promised(value: float, source: str) -> Any:
    return field(default=value, metadata={"source": source})


@dataclass(frozen=True, slots=True)
class Promises:
    """Times are in seconds. The first four say what kind of group it is."""

    orderly: bool = False
    exclusive: bool = True  # False: an Eager group that is not orderly, whose members do not wait for each other
    from_beginning: bool = True  # False: a LastOffset group; what was sent before the change `group_began` is not its
    repeats: bool = False  # True: repetitions are counted and not judged, as in Eager groups

    # -- repetitions --------------------------------------------------------------------------------------------------
    tolerated_cut: float = _promised(1.5, "connection is reset and away for less than 1.5 s")
    commit_seconds: float = _promised(1.0, "had not committed for up to 50 ms, comes again")
    broker_saves: float = _promised(6.0, "the broker killed within the five seconds before it saves its offsets")
    clock_jump: float = _promised(40.0, "one that jumps ahead by more than 40 s ends them early")
    recovery: float = _promised(5.0, "goes on within 2 s of its return (0.7 to 1.1 s measured)")

    # -- locks --------------------------------------------------------------------------------------------------------
    lock_seconds: float = _promised(60.0, "replaced once its locks are out, after 60 s")
    renewal_seconds: float = _promised(20.0, "within the interval of its lock renewals (20 s)")
    broker_hold: float = _promised(60.0, "Whoever had its queues keeps them on hold for a minute")

    # -- how long handlers are waited for -----------------------------------------------------------------------------
    handover_timeout: float = _promised(30.0, "handlers are waited for, up to the drain's time")
    consume_timeout: float = _promised(900.0, "handlers that do not end in time")

    # -- a queue without an owner, after the last thing that explains it ----------------------------------------------
    owned_after_handover: float = _promised(5.0, "its queues are handed over")
    owned_after_kill: float = _promised(6.0, "its queues are owned again after about 2 s")
    owned_after_broker: float = _promised(12.0, "is taken over 2 to 5 s after that: former owners speak first")
    owned_after_growth: float = _promised(40.0, "A new queue is seen when routes are refreshed, at most 36 s later")
    silent_seconds: float = _promised(120.0, "by keep-alive (30 s), by the broker after two minutes")

    @property
    def shortest_lease(self) -> float:
        """How long a member that does nothing more keeps its locks at least: until just before its next renewal."""
        return self.lock_seconds - self.renewal_seconds
