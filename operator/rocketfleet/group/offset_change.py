"""Moving a group's offsets by hand: what would change, and whether it may. Pure.

The broker guards nothing: it takes an offset backwards, beyond the end of a queue, for a queue that does not exist, and
under the feet of a running member. So the care is taken here, in the order in which a change is made:

1. `why_not`: only a group without members may be moved. A member commits where it stands, over whatever was written.
2. `plan_change`: where every queue is, where it would go, kept within the queue. This is what a person is shown.
3. `drifted`: after the person said yes, the offsets are read again. If one is not where the preview said, somebody else
   is at work, and nothing is written.
4. `unconfirmed`: what was written is read back. What is not there was not moved, whatever the broker answered.

A queue is moved to an offset or left alone. There is no "remove the offset": the broker has no such call for one queue.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rocketfleet.base.counting import counted
from rocketfleet.wire.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class QueueOffsets:
    """A group's place in a queue, None if it has none; the first message still there; the place of the next one."""

    committed: int | None
    first: int
    end: int

    def within(self, offset: int) -> int:
        """The offset, or the end of the queue that it lies beyond."""
        return max(self.first, min(offset, self.end))


@dataclass(frozen=True, slots=True)
class Move:
    """One queue's change. `asked` differs from `to` where it lay outside the queue."""

    queue: MessageQueue
    now: int | None
    asked: int
    to: int
    messages: int | None  # above 0: so many are skipped; below: so many come again; None: nobody knows where it was

    @property
    def changes(self) -> bool:
        return self.now != self.to

    @property
    def clamped(self) -> bool:
        return self.asked != self.to


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """What is to happen to a group. `left` are queues that nobody asked about, `absent` such as are not there."""

    moves: tuple[Move, ...]
    left: tuple[MessageQueue, ...] = ()
    absent: tuple[MessageQueue, ...] = ()

    @property
    def to_write(self) -> tuple[Move, ...]:
        """The queues whose offset changes."""
        return tuple(move for move in self.moves if move.changes)

    @property
    def skipped(self) -> int:
        """Messages that would never be consumed, as far as it is known."""
        return sum(move.messages for move in self.moves if move.messages is not None and move.messages > 0)

    @property
    def repeated(self) -> int:
        """Messages that would come again, as far as it is known."""
        return -sum(move.messages for move in self.moves if move.messages is not None and move.messages < 0)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A queue that is not where it should be."""

    queue: MessageQueue
    expected: int | None
    found: int | None

    def __str__(self) -> str:
        return f"{self.queue}: {_shown(self.found)} instead of {_shown(self.expected)}"


def plan_change(found: Mapping[MessageQueue, QueueOffsets], asked: Mapping[MessageQueue, int]) -> OffsetChange:
    """What it takes to bring the queues that are there to the offsets asked for."""
    moves = []
    for queue in sorted(found.keys() & asked.keys()):
        offsets = found[queue]
        to = offsets.within(asked[queue])
        # A place before the first message or behind the last is counted from there: the rest are no messages.
        messages = None if offsets.committed is None else to - offsets.within(offsets.committed)
        moves.append(Move(queue, offsets.committed, asked[queue], to, messages))
    return OffsetChange(
        moves=tuple(moves),
        left=tuple(sorted(found.keys() - asked.keys())),
        absent=tuple(sorted(asked.keys() - found.keys())),
    )


def drifted(change: OffsetChange, committed: Mapping[MessageQueue, int | None]) -> tuple[Mismatch, ...]:
    """The queues that are no longer where the change was planned from, and those about which nothing is known now."""
    return tuple(
        Mismatch(move.queue, move.now, committed.get(move.queue))
        for move in change.moves
        if move.queue not in committed or committed[move.queue] != move.now
    )


def unconfirmed(change: OffsetChange, committed: Mapping[MessageQueue, int | None]) -> tuple[Mismatch, ...]:
    """The queues that are not where they were moved to."""
    return tuple(
        Mismatch(move.queue, move.to, committed.get(move.queue))
        for move in change.to_write
        if committed.get(move.queue) != move.to
    )


def why_not(group: str, members: Collection[str], *, broadcasting: bool) -> str | None:
    """Why a group's offsets must not be moved now; None if they may."""
    if broadcasting:
        return (
            f"{group} is a broadcasting group: each member keeps its offsets itself, so there are none at the broker "
            "to move. Change consumeFromWhere, and let the members start without their offset files"
        )
    if members:
        named = ", ".join(sorted(members)[:3]) + (", …" if len(members) > 3 else "")
        count = counted(len(members), "member")
        return f"{group} has {count} at the broker ({named}), which would commit over the new offsets"
    return None


def _shown(offset: int | None) -> str:
    return "none" if offset is None else str(offset)
