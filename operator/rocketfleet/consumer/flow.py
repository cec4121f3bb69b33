"""When to pull on and when to wait: the limits on what one queue, and all queues of one topic, may hold in memory.

The limits are those of Java's DefaultMQPushConsumer. Its limits per topic are divided by the number of queues that
this member owns, and divided anew when that number changes.
"""

from dataclasses import dataclass, replace

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one queue may hold before pulling waits. Values are inclusive, as Java's are: at the limit, pull on."""

    count: int = 1000
    size_mib: int = 100
    span: int = 2000  # concurrent consumption only: orderly consumption cannot spread out


@dataclass(frozen=True, slots=True)
class TopicLimits:
    """How much all queues of a topic may hold on this member together. None: no such limit."""

    count: int | None = None
    size_mib: int | None = None


def divided(limits: Limits, topic_limits: TopicLimits, queues_owned: int) -> Limits:
    """The limits of each queue, when a topic's limits are shared out over the queues owned of it."""
    if queues_owned < 1:
        return limits
    result = limits
    if topic_limits.count is not None:
        result = replace(result, count=max(1, topic_limits.count // queues_owned))
    if topic_limits.size_mib is not None:
        result = replace(result, size_mib=max(1, topic_limits.size_mib // queues_owned))
    return result


def reason_to_wait(limits: Limits, *, count: int, size: int, span: int | None) -> str | None:
    """Why not to pull now, or None. `span` is None where it does not apply."""
    if count > limits.count:
        return f"{count} messages in memory, the limit is {limits.count}"
    if size > limits.size_mib * MIB:
        return f"{size / MIB:.1f} MiB in memory, the limit is {limits.size_mib} MiB"
    if span is not None and span > limits.span:
        return f"offsets in flight span {span}, the limit is {limits.span}"
    return None
