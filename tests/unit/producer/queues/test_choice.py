"""Queue choice: even, away from the broker that failed, away from brokers that rest, and never stuck."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import UNTIMED

from rocketfleet.producer.queues.choice import QueueRing, choose
from rocketfleet.producer.queues.faults import FaultTable
from rocketfleet.wire.queue import MessageQueue


def ring_of(sizes: dict[str, int], start: int = 0) -> QueueRing:
    return QueueRing(
        [MessageQueue("t", broker, i) for broker, size in sorted(sizes.items()) for i in range(size)], start
    )


topologies = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.integers(1, 6), min_size=1)
starts = st.integers(0, 2**31)


@UNTIMED
@given(topologies, starts)
def test_one_round_uses_every_queue_once(sizes: dict[str, int], start: int) -> None:
    ring = ring_of(sizes, start)
    chosen = [choose(ring) for _ in ring.queues]
    assert sorted(filter(None, chosen)) == sorted(ring.queues)


@UNTIMED
@given(topologies, starts, st.booleans())
def test_the_broker_that_failed_is_avoided_if_there_is_another(
    sizes: dict[str, int], start: int, tolerant: bool
) -> None:
    ring = ring_of(sizes, start)
    faults = FaultTable() if tolerant else None
    for avoid in sizes:
        for _ in range(2 * len(ring.queues)):
            queue = choose(ring, avoid, faults)
            assert queue is not None
            if len(sizes) > 1:
                assert queue.broker != avoid
            else:
                assert queue.broker == avoid


@UNTIMED
@given(topologies, starts, st.data())
def test_resting_brokers_are_left_alone_and_the_rest_used_evenly(
    sizes: dict[str, int], start: int, data: st.DataObject
) -> None:
    ring = ring_of(sizes, start)
    faults = FaultTable(lambda: 0.0)
    resting = data.draw(st.sets(st.sampled_from(sorted(sizes)), max_size=len(sizes) - 1))
    for broker in resting:
        faults.answered(broker, 2.0)
    left = [queue for queue in ring.queues if queue.broker not in resting]
    counts = Counter(choose(ring, None, faults) for _ in range(3 * len(left)))
    assert counts == dict.fromkeys(left, 3)


def test_when_all_rest_the_least_bad_of_the_reachable_is_taken() -> None:
    faults = FaultTable(lambda: 0.0)
    faults.answered("a", 5.0)
    faults.answered("b", 0.6)
    faults.failed("c", 0.0, reachable=False)
    ring = ring_of({"a": 2, "b": 2, "c": 2})
    chosen = {choose(ring, None, faults) for _ in range(12)}
    assert chosen == {MessageQueue("t", "b", 0), MessageQueue("t", "b", 1)}
    after_b_failed = choose(ring, "b", faults)
    assert after_b_failed is not None
    assert after_b_failed.broker == "a"


def test_when_none_is_reachable_any_is_tried() -> None:
    faults = FaultTable(lambda: 0.0)
    for broker in "ab":
        faults.failed(broker, 0.0, reachable=False)
    ring = ring_of({"a": 1, "b": 1})
    assert {choose(ring, None, faults) for _ in range(4)} == set(ring.queues)


def test_an_empty_ring_has_no_queue() -> None:
    assert choose(QueueRing([])) is None
    assert choose(QueueRing([]), "a", FaultTable()) is None


def test_a_new_route_goes_on_where_the_old_one_stood() -> None:
    ring = ring_of({"a": 4}, start=2)
    assert choose(ring) == MessageQueue("t", "a", 2)
    following = ring.replaced(ring.queues)
    assert choose(following) == MessageQueue("t", "a", 3)


def test_rings_start_at_random() -> None:
    queues = [MessageQueue("t", "a", i) for i in range(1000)]
    assert len({choose(QueueRing(queues)) for _ in range(20)}) > 1
