"""From an allocation to what has to be done about it."""

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.handover.rebalance import changes, is_settled
from rocketfleet.wire.queue import MessageQueue

queues = st.builds(MessageQueue, st.sampled_from(["t", "u", "v"]), st.sampled_from(["a", "b"]), st.integers(0, 3))
some = st.frozensets(queues)


@given(allocated=some, held=some, unknown=st.sets(st.sampled_from(["t", "u", "v"])))
def test_what_is_held_becomes_what_is_allocated(
    allocated: frozenset[MessageQueue], held: frozenset[MessageQueue], unknown: set[str]
) -> None:
    change = changes(allocated, held, unknown)
    after = (held - change.release) | change.want
    assert not change.want & held
    assert change.release <= held
    assert allocated <= after
    kept = {queue for queue in held if queue.topic in unknown}
    assert after == allocated | kept, "a topic whose route is not known keeps its queues"


@given(allocated=some, held=some, away=some)
def test_what_a_broker_that_is_away_has_is_kept(
    allocated: frozenset[MessageQueue], held: frozenset[MessageQueue], away: frozenset[MessageQueue]
) -> None:
    change = changes(allocated, held, kept=away)
    assert change.want == changes(allocated, held).want, "and is not part of what is shared out"
    assert (held - change.release) | change.want == allocated | (held & away)


@given(allocated=some, held=some)
def test_done_twice_it_is_done(allocated: frozenset[MessageQueue], held: frozenset[MessageQueue]) -> None:
    first = changes(allocated, held)
    second = changes(allocated, (held - first.release) | first.want)
    assert (second.want, second.release) == (frozenset(), frozenset())


@given(allocated=some, owned=some, leaving=some)
def test_settled_is_owning_just_what_was_allocated(
    allocated: frozenset[MessageQueue], owned: frozenset[MessageQueue], leaving: frozenset[MessageQueue]
) -> None:
    held = owned | leaving
    assert is_settled(allocated, owned, held) == (allocated == owned and leaving <= owned)


def test_a_queue_that_is_leaving_is_not_settled() -> None:
    queue, other = MessageQueue("t", "a", 0), MessageQueue("t", "a", 1)
    assert is_settled([queue], [queue], [queue])
    assert not is_settled([queue], [queue], [queue, other])
    assert not is_settled([queue, other], [queue], [queue, other])
