"""The limits on what may be in memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.delivery.flow import MIB, QueueLimits, TopicLimits, divided, reason_to_wait

LIMITS = QueueLimits(count=10, size_mib=2, span=20)


@pytest.mark.parametrize(
    ("count", "size", "span", "words"),
    [
        (10, 2 * MIB, 20, None),  # at the limit one pulls on, as in Java
        (11, 0, 0, "11 messages"),
        (0, 2 * MIB + 1, 0, "2.0 MiB"),
        (0, 0, 21, "span 21"),
        (10, 2 * MIB, None, None),
        (11, 3 * MIB, 21, "11 messages"),
    ],
)
def test_beyond_a_limit_there_is_a_reason_to_wait(count: int, size: int, span: int | None, words: str | None) -> None:
    reason = reason_to_wait(LIMITS, count=count, size=size, span=span)
    if words is None:
        assert reason is None
    else:
        assert reason is not None
        assert words in reason
        assert "limit is" in reason


@pytest.mark.parametrize(
    ("count", "size", "uncommitted", "words"),
    [
        (90, 0, (80, 0), None),
        (91, 0, (80, 0), "11 messages in memory"),
        (100, 0, (100, 0), None),
        (101, 0, (101, 0), "101 messages are handled and the handler has not said COMMIT"),
        (1, 20 * MIB, (1, 20 * MIB), None),
        (1, 20 * MIB + 1, (1, 20 * MIB + 1), "has not said COMMIT"),
        (2, 12 * MIB, (1, 9 * MIB), "3.0 MiB in memory"),
    ],
)
def test_what_only_waits_for_a_commit_counts_ten_times_less(
    count: int, size: int, uncommitted: tuple[int, int], words: str | None
) -> None:
    reason = reason_to_wait(LIMITS, count=count, size=size, span=None, uncommitted=uncommitted)
    assert reason is None if words is None else reason is not None and words in reason


@given(st.integers(1, 65535), st.integers(1, 1024), st.integers(1, 500))
def test_a_topics_limits_are_shared_out_and_never_to_nothing(count: int, size: int, queues: int) -> None:
    limits = divided(QueueLimits(), TopicLimits(count, size), queues)
    assert limits.count >= 1
    assert limits.size_mib >= 1
    assert limits.count * queues <= max(count, queues)
    assert limits.size_mib * queues <= max(size, queues)
    assert limits.span == QueueLimits().span


def test_where_a_topic_has_no_limits_the_queues_keep_theirs() -> None:
    assert divided(LIMITS, TopicLimits(), 7) == LIMITS
    assert divided(LIMITS, TopicLimits(count=70), 7) == QueueLimits(count=10, size_mib=2, span=20)
    assert divided(LIMITS, TopicLimits(size_mib=70), 7) == QueueLimits(count=10, size_mib=10, span=20)


def test_without_queues_there_is_nothing_to_divide() -> None:
    assert divided(LIMITS, TopicLimits(5, 5), 0) == LIMITS
