"""Which small messages travel together, and when. Pure: time comes from a clock, and nothing here sends.

A batch is open for one key (topic, queue, …) at a time. It closes when the next message would take it over
`max_bytes` or `max_messages`, or when its oldest message has waited `max_delay`. Sizes are those of the encoded form,
so a batch never exceeds what the broker takes.

Bytes are held from the moment a message is accepted until its batch was answered, open and under way alike;
`has_room` is the back-pressure: whoever finds no room waits. (Java sends such messages singly instead, which makes an
overloaded broker's work harder.) A single message larger than everything is let in when nothing else is held, or it
would wait forever.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Bytes and seconds. The defaults are Java's: 32 KiB, 10 ms, 32 MiB."""

    max_bytes: int = 32 * 1024
    max_delay: float = 0.010
    max_held: int = 32 * 1024 * 1024
    max_messages: int = 1024

    def __post_init__(self) -> None:
        if not 0 < self.max_bytes <= 2 * 1024 * 1024:
            raise ValueError(f"max_bytes of a batch must be between 1 byte and 2 MiB, not {self.max_bytes}")
        if not 0 <= self.max_delay <= 30:
            raise ValueError(f"max_delay of a batch must be between 0 and 30 seconds, not {self.max_delay}")
        if self.max_held <= 0:
            raise ValueError(f"max_held must be more than 0 bytes, not {self.max_held}")
        if self.max_messages <= 0:
            raise ValueError(f"max_messages of a batch must be more than 0, not {self.max_messages}")


@dataclass(slots=True)
class Batch(Generic[K, T]):
    """Messages of one key that leave together, in the order in which they came."""

    key: K
    deadline: float
    items: list[T] = field(default_factory=list)
    size: int = 0


class Accumulator(Generic[K, T]):
    """The open batches. Whoever takes a batch out must `release` it once it is answered, well or badly."""

    def __init__(self, clock: Callable[[], float], limits: BatchLimits) -> None:
        self._clock = clock
        self.limits = limits
        self.held = 0
        self._open: dict[K, Batch[K, T]] = {}  # in order of deadline: all batches wait equally long

    def has_room(self, size: int) -> bool:
        """Whether a message of this size may come in now."""
        return self.held == 0 or self.held + size <= self.limits.max_held

    def add(self, key: K, item: T, size: int) -> list[Batch[K, T]]:
        """Take a message in. Returns the batches that are complete because of it, in the order to send them."""
        complete = []
        self.held += size
        batch = self._open.get(key)
        if batch is not None and batch.size + size > self.limits.max_bytes:
            complete.append(self._open.pop(key))
            batch = None
        if batch is None:
            batch = self._open[key] = Batch(key, self._clock() + self.limits.max_delay)
        batch.items.append(item)
        batch.size += size
        if batch.size >= self.limits.max_bytes or len(batch.items) >= self.limits.max_messages:
            complete.append(self._open.pop(key))
        return complete

    def next_deadline(self) -> float | None:
        """When the oldest open batch has to leave."""
        for batch in self._open.values():
            return batch.deadline
        return None

    def due(self) -> list[Batch[K, T]]:
        """Take out the batches whose time has come."""
        now = self._clock()
        ready = []
        for batch in self._open.values():
            if batch.deadline > now:
                break
            ready.append(batch)
        for batch in ready:
            del self._open[batch.key]
        return ready

    def flush(self) -> list[Batch[K, T]]:
        """Take out every open batch."""
        batches = list(self._open.values())
        self._open.clear()
        return batches

    def release(self, batch: Batch[K, T]) -> None:
        """The batch was answered: its bytes are no longer held."""
        self.held -= batch.size
