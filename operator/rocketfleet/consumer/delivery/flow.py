"""When to pull on and when to wait: the limits on what one queue, and all queues of one topic, may hold in memory.

The limits are those of Java's DefaultMQPushConsumer. Its limits per topic are divided by the number of queues that
this member owns, and divided anew when that number changes.

A handler that commits by itself may want more messages than the limit before it does. So what is handled and only
waits for the handler's COMMIT does not count, up to ten times the limit: memory is finite all the same.
"""

from dataclasses import dataclass, replace

MIB = 1 << 20
UNCOMMITTED_FACTOR = 10  # so many times the limit may be in memory where most of it only waits for a COMMIT


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """How much one queue may hold before pulling waits. Values are inclusive, as Java's are: at the limit, pull on."""

    count: int = 1000
    size_mib: int = 100
    span: int = 2000  # concurrent consumption only: orderly consumption cannot spread out


@dataclass(frozen=True, slots=True)
class TopicLimits:
    """How much all queues of a topic may hold on this member together. None: no such limit."""

    count: int | None = None
    size_mib: int | None = None


def divided(limits: QueueLimits, topic_limits: TopicLimits, queues_owned: int) -> QueueLimits:
    """The limits of each queue, when a topic's limits are shared out over the queues owned of it."""
    if queues_owned < 1:
        return limits
    result = limits
    if topic_limits.count is not None:
        result = replace(result, count=max(1, topic_limits.count // queues_owned))
    if topic_limits.size_mib is not None:
        result = replace(result, size_mib=max(1, topic_limits.size_mib // queues_owned))
    return result


def reason_to_wait(
    limits: QueueLimits, *, count: int, size: int, span: int | None, uncommitted: tuple[int, int] = (0, 0)
) -> str | None:
    """Why not to pull now, or None. `span` is None where it does not apply.

    `uncommitted`: how many of the messages, and of the bytes, are handled and only wait for the handler's COMMIT.
    """
    waiting_count, waiting_size = count - uncommitted[0], size - uncommitted[1]
    if waiting_count > limits.count:
        return f"{waiting_count} messages in memory, the limit is {limits.count}"
    if waiting_size > limits.size_mib * MIB:
        return f"{waiting_size / MIB:.1f} MiB in memory, the limit is {limits.size_mib} MiB"
    if count > limits.count * UNCOMMITTED_FACTOR or size > limits.size_mib * MIB * UNCOMMITTED_FACTOR:
        return f"{uncommitted[0]} messages are handled and the handler has not said COMMIT"
    if span is not None and span > limits.span:
        return f"offsets in flight span {span}, the limit is {limits.span}"
    return None
