"""Two releases that look after the same groups, by mistake: one of them stands back, and both say so.

Each leader writes the name of its release (the namespace and name of its Lease) into the status. Who finds another's
name there after its own had been there knows that the other one acts. Then the one whose name sorts first goes on, and
the other leaves the group alone for a while; when that is over it looks again, for the first may be gone. A name that
was there from the beginning proves nothing: it may be that of a release which this one has replaced.

The cure is `spec.operatorClass`, or namespaces of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rocketfleet.api.consumer_group import GroupKey

STAND_BACK = 600.0  # seconds


@dataclass(frozen=True, slots=True)
class Rival:
    """Another release that acts on a group. `leave`: the group is left to it."""

    name: str
    leave: bool


class Rivals:
    """What this release, `me`, knows of others."""

    def __init__(self, me: str, clock: Callable[[], float]) -> None:
        self._me = me
        self._clock = clock
        self._ours: set[GroupKey] = set()  # where our name was seen
        self._until: dict[GroupKey, float] = {}  # where we stand back

    def met(self, key: GroupKey, named: str | None) -> Rival | None:
        """The release that acts on this group beside us, if one does. `named`: the one in the group's status."""
        if not named or named == self._me:
            if named:
                self._ours.add(key)
            return None
        until = self._until.get(key)
        if until is not None:
            if self._clock() < until:
                return Rival(named, leave=True)
            self.forget(key)  # it may have gone: try again
            return None
        if key not in self._ours:
            return None
        if named < self._me:
            self._until[key] = self._clock() + STAND_BACK
        return Rival(named, leave=key in self._until)

    def clear(self) -> None:
        """We do not lead any more: what is written from here on may well be another's, by right."""
        self._ours.clear()
        self._until.clear()

    def forget(self, key: GroupKey) -> None:
        self._ours.discard(key)
        self._until.pop(key, None)
