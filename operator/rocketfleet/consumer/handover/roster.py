"""Who is in the group, as far as the brokers' lists can be believed.

Theory. Each broker lists the clients it has a connection to. One list alone may be wrong in two ways, and a wrong view
costs more than a late one: with too few members a queue is taken from somebody who lives.

- *A broker that restarted* has forgotten everybody, and its members come back one by one. The first to be back would
  find itself alone. So after an interruption a list is believed only together with those who were there before, until
  they are back or have had the time to come (`REJOIN_SECONDS`; a member tries at least every second).
- *A connection that was reset* takes a live member off one list for a moment. So the view is the union of all lists
  that can be had: who is connected to any broker lives. And a member that has vanished from all of them counts as
  *departed*, which is when its locks may be released in its name, only when it has been absent for `GRACE_SECONDS`:
  longer than a live member needs to come back and less than anybody wants to wait for a dead one.

A newcomer has seen nobody before. If every broker that answers has only just started, it waits until they have been
up for `REJOIN_SECONDS`; a broker that has been up for longer knows all who live. A master that was elected while it was
up knows no more than one that has just started: what counts is for how long it has been in office.

All pure: lists, times and a frozen record in, the next record out. `membership.py` does the asking.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rocketfleet.wire.bodies import DataVersion

GRACE_SECONDS = 2.0
REJOIN_SECONDS = 10.0
REMEMBERED_SECONDS = 180.0  # longer than a lock lives
RELEASERS = 3  # how many survivors release what a departed member held


@dataclass(frozen=True, slots=True)
class Roster:
    """What one member knows about the others. Times are by its own clock."""

    present: frozenset[str] = frozenset()  # in some list, at the last look
    awaited: Mapping[str, float] = field(default_factory=dict)  # not back after an interruption: until when to wait
    absent: Mapping[str, float] = field(default_factory=dict)  # was there, and since when it is not

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(sorted(self.present | self.awaited.keys()))


def look(before: Roster, lists: Collection[Collection[str]], *, interrupted: bool, now: float) -> Roster:
    """The roster after a look at the brokers' lists.

    `interrupted`: none of the brokers that answered has been connected to us ever since the last look, so that all of
    them may have forgotten members.
    """
    present = frozenset(member for members in lists for member in members)
    awaited = {member: until for member, until in before.awaited.items() if member not in present and now < until}
    if interrupted:
        for member in before.present - present:
            awaited.setdefault(member, now + REJOIN_SECONDS)
    gone = (before.present | before.awaited.keys() | before.absent.keys()) - present - awaited.keys()
    absent = {member: before.absent.get(member, now) for member in gone}
    absent = {member: since for member, since in absent.items() if now - since < REMEMBERED_SECONDS}
    return Roster(present, awaited, absent)


def departed(roster: Roster, now: float) -> frozenset[str]:
    """Members that have been absent for so long that they cannot still believe in their locks."""
    return frozenset(member for member, since in roster.absent.items() if now - since >= GRACE_SECONDS)


def releases(me: str, member: str, roster: Roster) -> bool:
    """Whether it falls to us to release what a departed member held: to the next few after it, in the order of ids.

    A few and not one, because members in other languages do no such thing; and not all, because a hundred survivors
    would send a hundred requests.
    """
    ring = sorted({*roster.present, me})
    after = [one for one in ring if one > member] + [one for one in ring if one < member]
    return me in after[:RELEASERS]


def in_office(up: float | None, booted: float, version: DataVersion | None) -> float | None:
    """For how many seconds a broker has been the master: since it started, `booted`, or since its election.

    All by the broker's own clock, `booted` in seconds since the epoch. An election makes a new version of the topics;
    so does a new topic, and that cannot be told apart: somebody may wait in vain for some seconds. The first election
    is a part of the first start, and without a controller there is none.
    """
    if up is None or version is None or version.state_version < 2:
        return up
    return min(up, max(0.0, booted + up - version.timestamp / 1000))


def newcomer_waits(uptimes: Collection[float | None]) -> float:
    """How long a newcomer waits until the lists are whole; 0 if one of the brokers has been up for long enough.

    An uptime that is not known counts as none.
    """
    if not uptimes:
        return 0.0
    oldest = max(0.0 if uptime is None else uptime for uptime in uptimes)
    return max(0.0, REJOIN_SECONDS - oldest) if math.isfinite(oldest) else 0.0
