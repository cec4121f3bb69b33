"""What the autoscaler looks back on: samples of a group, and what it has made of them so far.

A sample holds counts, not rates: messages ever produced and ever consumed since we began to look. A rate that somebody
else has measured covers a time of which we do not know how many members it had.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

MOST_SAMPLES = 128
SPACINGS = 100  # the longest window is kept in about so many samples


@dataclass(frozen=True, slots=True)
class LoadSample:
    """A group at one moment. None is not known."""

    at: float
    lag: int | None  # messages not yet consumed
    seconds: float | None  # that the oldest of them has waited
    retry: int | None  # messages that are due to be tried again
    produced: int | None  # counted since some moment
    consumed: int | None
    replicas: int  # wanted then
    ready: int  # there, and able to work
    queues: int | None
    at_least: int = 0  # messages known to wait or to be due for another try, where not all is known
    arrived: int = 0  # counted since some moment, in the queues that could be read


@dataclass(frozen=True, slots=True)
class Trial:
    """A scale-out that has yet to show that it helps. `rate`: messages per second before it."""

    since: float
    before: int
    replicas: int
    rate: float


@dataclass(frozen=True, slots=True)
class TooFew:
    """So many replicas were not enough when messages came in at this rate, or more. Believed for a time: members may
    have become quicker since.
    """

    replicas: int
    rate: float
    until: float


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learnt, and is still believed."""

    rate: float | None = None  # messages per second that one replica does while it has plenty
    trial: Trial | None = None
    ceiling: int | None = None  # more did not help
    ceiling_until: float = 0.0
    too_few: tuple[TooFew, ...] = ()  # counts while `rate` is unknown
    scaled_in: float | None = None  # when the lag brought the replicas down to what they are now


@dataclass(frozen=True, slots=True)
class LoadHistory:
    """Samples in the order of time, the replicas wanted now, and the mind of the last decision."""

    replicas: int
    samples: tuple[LoadSample, ...] = ()
    mind: Learned = field(default_factory=Learned)

    def add(self, sample: LoadSample, longest: float) -> "LoadHistory":
        """With one more sample. Those beyond the longest window go, and of those that lie close together some."""
        kept = list(self.samples)
        if kept and sample.at <= kept[-1].at:
            return self  # nothing new was read
        if len(kept) > 1 and kept[-1].at - kept[-2].at < longest / SPACINGS:
            kept.pop()
        kept.append(sample)
        # The one before the window stays: it shows that the window is covered.
        while len(kept) > 2 and (kept[1].at <= sample.at - longest or len(kept) > MOST_SAMPLES):
            kept.pop(0)
        return replace(self, samples=tuple(kept))

    @property
    def newest(self) -> LoadSample | None:
        return self.samples[-1] if self.samples else None

    def since(self, moment: float) -> tuple[LoadSample, ...]:
        return tuple(sample for sample in self.samples if sample.at >= moment)

    def covers(self, moment: float) -> bool:
        """Whether we have looked since then or longer."""
        return bool(self.samples) and self.samples[0].at <= moment

    def stretches(self, span: float) -> Iterator[tuple[LoadSample, ...]]:
        """For each sample, newest first, the samples from about `span` before it up to it; not where there are none."""
        start = len(self.samples)
        for end in range(len(self.samples) - 1, 0, -1):
            start = min(start, end)
            while start > 0 and self.samples[start].at > self.samples[end].at - span:
                start -= 1
            if self.samples[start].at > self.samples[end].at - span:
                return
            yield self.samples[start : end + 1]


def produce_rate(stretch: tuple[LoadSample, ...]) -> float | None:
    """Messages per second that came in."""
    return _rate(stretch[0].at, stretch[0].produced, stretch[-1].at, stretch[-1].produced)


def consume_rate(stretch: tuple[LoadSample, ...]) -> float | None:
    """Messages per second that were consumed."""
    return _rate(stretch[0].at, stretch[0].consumed, stretch[-1].at, stretch[-1].consumed)


def _rate(begin: float, first: int | None, end: float, last: int | None) -> float | None:
    if first is None or last is None or end <= begin:
        return None
    return max(0, last - first) / (end - begin)
