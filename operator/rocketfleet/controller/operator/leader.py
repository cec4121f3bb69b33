"""Who acts: one operator at a time, by a Lease in the cluster.

The holder writes its name and a new time into the Lease every `retry` seconds. Another one may take it only after it
has *seen* the Lease unchanged for its full duration, by its own clock: no two clocks are compared. The holder counts
from the moment before it sent its last successful renewal, which is earlier than anybody can have seen it, and stops
acting at the renewal's deadline, some seconds before that time is over. So its last write is out, and has been answered
or given up, before the Lease can be taken. `may_act` is asked before every write, not only when a renewal fails: a
process that was frozen wakes up with writes in its hands and no renewal tried.

Who stops in good order empties the Lease, and a standby takes it at its next look.

`decide` is the rule as a pure function. `Leadership` is the loop around it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil
from typing import Any, Protocol

from rocketfleet.base.clock import lease_clock
from rocketfleet.base.timestamps import micro_time
from rocketfleet.controller.reconciling.backend import BackendError

_log = logging.getLogger(__name__)
LEASE = 15.0
RENEW_DEADLINE = 10.0
RENEW = 2.0
LEASE_MARGIN = LEASE - RENEW_DEADLINE
STANDBY_LOOK_SECONDS = 1.0  # between two looks
LONGEST_LEASE = 60.0  # whatever a record says, nobody is waited for longer


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """In seconds, and as Kubernetes' own components have them: how long a Lease lasts, after how long without a renewal
    its holder stops acting, and how often it tries. A short Lease is taken over soon, and lost in a short interruption.
    """

    duration: float = LEASE
    deadline: float = RENEW_DEADLINE
    retry: float = RENEW

    def __post_init__(self) -> None:
        if not self.retry < self.deadline < self.duration <= LONGEST_LEASE:
            raise ValueError(
                f"the retry period ({self.retry:g} s) has to be shorter than the renew deadline ({self.deadline:g} s), "
                f"and that shorter than the lease duration ({self.duration:g} s), which is at most {LONGEST_LEASE:g} s"
            )

    @property
    def margin(self) -> float:
        """What a write that began in time may still take."""
        return self.duration - self.deadline


class LeaseTaken(Exception):
    """Somebody else wrote the Lease since we read it."""


class LeaseStore(Protocol):
    """The Lease object, read and written as it is. `write` fails with LeaseTaken if it has another version by now."""

    async def read(self, timeout: float) -> Mapping[str, Any] | None: ...

    async def write(self, lease: Mapping[str, Any], version: str | None, timeout: float) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says. `version` changes with every write."""

    holder: str
    duration: float
    version: str
    acquired: str | None = None
    transitions: int = 0


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """A record, and since when we have seen it in this form. No record: there is no Lease yet."""

    record: LeaseRecord | None
    since: float


class LeaseStep(Enum):
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


def decide(me: str, sight: ObservedLease, now: float) -> LeaseStep:
    """What to do about the Lease as we see it."""
    record = sight.record
    if record is None or not record.holder:
        return LeaseStep.TAKE
    if record.holder == me:
        return LeaseStep.RENEW
    return LeaseStep.TAKE if now >= sight.since + record.duration else LeaseStep.WAIT


def see(before: ObservedLease | None, record: LeaseRecord | None, now: float) -> ObservedLease:
    """The new sight; a record that has not changed was seen when it first came."""
    if before is not None and before.record == record:
        return before
    return ObservedLease(record, now)


def record_of(lease: Mapping[str, Any] | None) -> LeaseRecord | None:
    """Read a Lease. A duration that makes no sense is taken for ours."""
    if lease is None:
        return None
    metadata, spec = lease.get("metadata") or {}, lease.get("spec") or {}
    duration = spec.get("leaseDurationSeconds")
    if not isinstance(duration, int) or not 0 < duration <= LONGEST_LEASE:
        duration = LEASE
    return LeaseRecord(
        holder=str(spec.get("holderIdentity") or ""),
        duration=float(duration),
        version=str(metadata.get("resourceVersion") or ""),
        acquired=spec.get("acquireTime"),
        transitions=int(spec.get("leaseTransitions") or 0),
    )


def lease_spec(record: LeaseRecord, wall: float) -> dict[str, Any]:
    """The Lease's spec for a record, written at this time of day."""
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": ceil(record.duration),
        "acquireTime": record.acquired or micro_time(wall),
        "renewTime": micro_time(wall),
        "leaseTransitions": record.transitions,
    }


class Leadership:
    """Holds the Lease, or waits for it."""

    def __init__(
        self,
        store: LeaseStore,
        identity: str,
        *,
        wall: Callable[[], float],
        clock: Callable[[], float] = lease_clock,
        changed: Callable[[bool], None] = lambda leads: None,
        times: LeaseTimes | None = None,
    ) -> None:
        self._times = times or LeaseTimes()
        self.identity = identity
        self._store = store
        self._wall = wall
        self._clock = clock
        self._changed = changed
        self._sight: ObservedLease | None = None
        self._held_until: float | None = None  # by our own reckoning; None: we do not hold it
        self._told = False

    def may_act(self) -> bool:
        """Whether nobody else can hold the Lease now, nor soon."""
        return self._held_until is not None and self._clock() < self._held_until - self._times.margin

    def seconds_left(self) -> float:
        """How long a write that begins now may take at most: after that the Lease may be another's."""
        return 0.0 if self._held_until is None else max(0.0, self._held_until - self._clock())

    async def run(self) -> None:
        """Try to lead and go on leading, until cancelled."""
        while True:
            pause = await self.turn()
            until = self._clock() + pause
            while (left := until - self._clock()) > 0:
                # A term that ends is told at once, not at the next renewal.
                if self._told and not self.may_act():
                    self._tell()
                    break
                await asyncio.sleep(min(left, 0.25))

    async def turn(self) -> float:
        """One look at the Lease and what follows from it; says in how many seconds the next one is due."""
        leads = self.may_act()
        timeout = self._times.retry
        if leads:
            timeout = max(0.5, min(timeout, self.seconds_left() - self._times.margin))
        try:
            if not (leads and await self._renew(timeout)):
                await self._look_and_try(timeout)
        except LeaseTaken:
            _log.info("somebody else wrote the Lease first")
            self._sight, self._held_until = None, None
        except (BackendError, TimeoutError) as error:
            _log.warning("the Lease could not be read or written: %s", str(error) or "no answer in time")
        self._tell()
        if self.may_act():
            return self._times.retry
        return STANDBY_LOOK_SECONDS if self._held_until is None else 0.5  # ours by name, but late: try hard to renew it

    async def _renew(self, timeout: float) -> bool:
        """Write the Lease without looking first: its version tells whether it is as we left it. False: it is not.

        That may be our own doing, a renewal whose answer was lost: no reason to step down before having looked.
        """
        if self._sight is None or self._sight.record is None:
            return False
        try:
            await self._write(self._sight.record, timeout)
        except LeaseTaken:
            return False
        return True

    async def _look_and_try(self, timeout: float) -> None:
        found = record_of(await self._store.read(timeout))
        now = self._clock()
        self._sight = see(self._sight, found, now)
        step = decide(self.identity, self._sight, now)
        if step is LeaseStep.WAIT:
            self._held_until = None
            return
        if found is None or found.holder != self.identity:
            transitions = 0 if found is None else found.transitions + 1
            version = "" if found is None else found.version
            found = LeaseRecord(self.identity, self._times.duration, version, micro_time(self._wall()), transitions)
        await self._write(found, timeout)

    async def _write(self, record: LeaseRecord, timeout: float) -> None:
        began = self._clock()
        wanted = {"spec": lease_spec(replace(record, duration=self._times.duration), self._wall())}
        written = record_of(await self._store.write(wanted, record.version or None, timeout))
        self._sight = ObservedLease(written, self._clock())
        if written is not None and written.holder == self.identity:
            self._held_until = began + self._times.duration

    async def release(self) -> None:
        """Give the Lease up, so that another can have it at once. From here on we do not act."""
        held, self._held_until = self._held_until is not None, None
        self._tell()
        if not held:
            return
        try:
            # What we last saw may not be what is there: a renewal may have been cut off on its way.
            found = record_of(await self._store.read(self._times.retry))
            if found is not None and found.holder == self.identity:
                emptied = {"spec": lease_spec(replace(found, holder="", duration=1.0), self._wall())}
                await self._store.write(emptied, found.version or None, self._times.retry)
        except LeaseTaken:
            _log.debug("somebody has the Lease already")
        except (BackendError, TimeoutError) as error:
            _log.warning("the Lease could not be given up, it runs out in %g s: %s", self._times.duration, error)

    def _tell(self) -> None:
        leads = self.may_act()
        if leads is not self._told:
            self._told = leads
            _log.info("%s %s", self.identity, "leads" if leads else "does not lead (any more)")
            self._changed(leads)
