"""What the manifest says about a group's size, as plain numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """Targets, limits and the times that keep a group from swinging. Times are in seconds."""

    least: int
    most: int
    target_lag: int | None = None  # messages for each member
    target_seconds: float | None = None  # that the oldest message may have waited
    out_after: float = 10.0  # more replicas only when they were called for during all of this time
    in_after: float = 300.0  # fewer likewise
    zero_after: float = 300.0  # none, when there was nothing to do during all of this time
    trial: float = 60.0  # a scale-out that has not raised the throughput in this time is taken back
    remember: float = 900.0  # and not tried again for this time
    fresh: float = 60.0  # figures older than this are as good as none
    rate_span: float = 10.0  # rates are measured over at least this: offsets are committed every five seconds
    members_per_pod: int = 1
    idle_members: bool = False  # more members than queues are allowed
    recommended: int | None = None  # by whoever knows the hour of the day: a floor within the limits

    @property
    def floor(self) -> int:
        """Never fewer than this."""
        return self.least if self.recommended is None else min(max(self.recommended, self.least), self.most)

    def limit(self, queues: int | None) -> int:
        """Never more than this: a member without a queue would idle."""
        if queues is None or self.idle_members:
            return self.most
        return max(self.floor, min(self.most, -(-queues // self.members_per_pod)))

    def within(self, replicas: int) -> int:
        """The nearest number that the manifest allows."""
        return min(max(replicas, self.floor), self.most)
