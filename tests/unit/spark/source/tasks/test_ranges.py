"""Ranges of queues: cut without loss, and admitted fairly."""

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.spark.source.tasks.ranges import QueueRange, admit, between, share, split
from rocketfleet.wire.queue import MessageQueue

queues = st.builds(MessageQueue, st.sampled_from(["a", "b"]), st.just("broker"), st.integers(0, 9))
positions = st.dictionaries(queues, st.integers(0, 10_000))


def queue(number: int) -> MessageQueue:
    return MessageQueue("topic", "broker", number)


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), max_size=8), st.integers(1, 50))
def test_cutting_loses_and_repeats_nothing(edges: list[tuple[int, int]], parts: int) -> None:
    ranges = [QueueRange(queue(number), low, low + size) for number, (low, size) in enumerate(edges)]
    pieces = split(ranges, parts)
    before = [(one.queue, offset) for one in ranges for offset in range(one.start, one.end)]
    after = [(one.queue, offset) for one in pieces for offset in range(one.start, one.end)]
    assert after == before
    assert all(one.size > 0 for one in pieces)
    assert len(pieces) >= min(parts, len(before))


def test_a_long_queue_is_cut_more_often_than_a_short_one() -> None:
    pieces = split([QueueRange(queue(0), 0, 900), QueueRange(queue(1), 0, 100)], 10)
    assert [one.queue.queue_id for one in pieces] == [0] * 8 + [1] * 2


def test_nothing_is_cut_unless_asked_for() -> None:
    assert split([QueueRange(queue(0), 0, 900), QueueRange(queue(1), 5, 5)], None) == [QueueRange(queue(0), 0, 900)]


@given(st.dictionaries(st.integers(0, 30), st.integers(0, 1 << 50)), st.integers(1, 1 << 40))
def test_a_limit_is_used_up_and_never_exceeded(sizes: dict[int, int], limit: int) -> None:
    shares = share(sizes, limit)
    assert shares.keys() == sizes.keys()
    assert all(0 <= shares[key] <= sizes[key] for key in sizes)
    assert sum(shares.values()) == min(limit, sum(sizes.values()))
    wanting = [key for key, size in sizes.items() if size]
    if limit >= len(wanting):
        assert all(shares[key] for key in wanting), "nobody waits for ever behind a longer queue"


@given(positions, positions, st.none() | st.integers(1, 5000))
def test_a_batch_goes_forward_only_and_as_far_as_admitted(
    start: dict[MessageQueue, int], latest: dict[MessageQueue, int], limit: int | None
) -> None:
    end = admit(start, latest, limit)
    assert end.keys() == start.keys() | latest.keys()
    for one, offset in start.items():
        assert offset <= end[one] <= max(offset, latest.get(one, 0))
    for new in latest.keys() - start.keys():
        assert end[new] == latest[new]
    read = sum(one.size for one in between(start, end))
    backlog = sum(max(0, latest[one] - start[one]) for one in start.keys() & latest.keys())
    assert read == (backlog if limit is None else min(limit, backlog))


@given(positions, positions)
def test_batches_one_after_the_other_read_everything_once(
    start: dict[MessageQueue, int], latest: dict[MessageQueue, int]
) -> None:
    seen: list[tuple[MessageQueue, int]] = []
    at = dict(start)
    while True:
        end = admit(at, latest, 700)
        ranges = between(at, end)
        seen += [(one.queue, offset) for one in ranges for offset in range(one.start, one.end)]
        if end == at:
            break
        at = end
    wanted = [(one, offset) for one in start.keys() & latest.keys() for offset in range(start[one], latest[one])]
    assert sorted(seen) == sorted(wanted)
