"""A group that consumes as groups do, in simulated time: queues, members that take a while to come, commits every five
seconds, and whatever is behind the handlers.
"""

from dataclasses import dataclass, field

from rocketfleet.autoscale.decide import Decision, decide
from rocketfleet.autoscale.history import LoadHistory, LoadSample
from rocketfleet.autoscale.policy import ScalingPolicy

COMMIT = 5.0
STEP = 1.0
EDGE = 0.04  # a group that is full to within this falls behind so slowly that it may take hours to show


@dataclass
class ModelGroup:
    """`per_member` messages per second is what one member does, `downstream` what all of them together can."""

    policy: ScalingPolicy
    queues: int = 8
    per_member: float = 100.0
    downstream: float = float("inf")
    hot: float = 0.0  # the share of the traffic that goes to the first queue
    start_seconds: float = 4.0
    interval: float = 5.0
    replicas: int = 1
    blind: bool = False  # the lag cannot be read
    now: float = 1000.0
    produced: list[float] = field(default_factory=list)
    consumed: list[float] = field(default_factory=list)
    committed: list[float] = field(default_factory=list)
    coming: list[float] = field(default_factory=list)  # when members that were asked for will be ready
    ready: int = 1
    decisions: list[Decision] = field(default_factory=list)
    retry: int = 0
    oldest: float = 0.0  # the most that a message has waited
    _arrived: list[tuple[float, float]] = field(default_factory=list)  # moment, all produced until then

    def __post_init__(self) -> None:
        self.produced, self.consumed, self.committed = ([0.0] * self.queues for _ in range(3))
        self.history = LoadHistory(self.replicas)
        self.ready = self.replicas
        self._next_look = self.now
        self._next_commit = self.now

    @property
    def lag(self) -> float:
        return sum(self.produced) - sum(self.consumed)

    def capacity(self, replicas: int) -> float:
        """Messages a second that so many can take: as many as the one with the most queues."""
        return self.per_member * self.queues / -(-self.queues // replicas)

    def run(self, seconds: float, rate: float) -> None:
        """Let time pass with so many messages per second coming in."""
        end = self.now + seconds
        while self.now < end:
            self._second(rate)
            if self.now >= self._next_look:
                self._next_look += self.interval
                self._look()
            self.now += STEP

    def _second(self, rate: float) -> None:
        for n in range(self.queues):
            share = self.hot if n == 0 and self.hot else (1 - self.hot) / (self.queues - (1 if self.hot else 0))
            self.produced[n] += share * rate * STEP
        self._arrived.append((self.now, sum(self.produced)))
        arrived = [moment for moment in self.coming if moment <= self.now]
        self.coming = [moment for moment in self.coming if moment > self.now]
        self.ready = min(self.ready + len(arrived), self.replicas)
        left = self.downstream * STEP
        for member in range(min(self.ready, self.queues)):
            able = min(self.per_member * STEP, left)
            for n in range(member, self.queues, self.ready):
                took = min(able, self.produced[n] - self.consumed[n])
                self.consumed[n] += took
                able -= took
                left -= took
        if self.now >= self._next_commit:
            self._next_commit += COMMIT
            self.committed = list(self.consumed)
        self.oldest = max(self.oldest, self.age(sum(self.consumed)))

    def age(self, consumed: float) -> float:
        """How long the next message after so many has waited."""
        while self._arrived and self._arrived[0][1] <= min(sum(self.committed), consumed) + 1e-6:
            self._arrived.pop(0)
        for moment, total in self._arrived:
            if total > consumed + 1e-6:
                return self.now - moment
        return 0.0

    def _look(self) -> None:
        seen = sum(int(p) - min(int(p), int(c)) for p, c in zip(self.produced, self.committed, strict=True))
        sample = LoadSample(
            at=self.now,
            lag=None if self.blind else seen,
            seconds=None if self.blind else self.age(sum(self.committed)),
            retry=None if self.blind else self.retry,
            produced=None if self.blind else int(sum(self.produced)),
            consumed=None if self.blind else int(sum(self.committed)),
            replicas=self.replicas,
            ready=self.ready,
            queues=self.queues,
        )
        longest = max(self.policy.in_after, self.policy.zero_after, self.policy.trial + 60)
        self.history = self.history.add(sample, longest)
        decision = decide(self.policy, self.history, self.now)
        self.history = LoadHistory(decision.replicas, self.history.samples, decision.mind)
        if decision.replicas > self.replicas:
            self.coming += [self.now + self.start_seconds] * (decision.replicas - self.replicas)
        self.replicas = decision.replicas
        self.ready = min(self.ready, self.replicas)
        if decision.changes:
            self.decisions.append(decision)

    def path(self) -> list[int]:
        return [decision.replicas for decision in self.decisions]
