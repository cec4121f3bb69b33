"""Moving offsets: nothing leaves its queue, nothing is counted that is not a message, nothing changes unseen."""

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.group.offset_change import (
    Mismatch,
    QueueOffsets,
    drifted,
    plan_change,
    unconfirmed,
    why_not,
)
from rocketfleet.wire.queue import MessageQueue

numbers = st.integers(0, 2**63 - 1)
queues = st.builds(MessageQueue, st.sampled_from(["orders", "bills"]), st.sampled_from(["a", "b"]), st.integers(0, 5))


@st.composite
def offsets(draw: st.DrawFn) -> QueueOffsets:
    first, end = sorted((draw(numbers), draw(numbers)))
    return QueueOffsets(draw(st.none() | numbers), first, end)


found_tables = st.dictionaries(queues, offsets())
asked_tables = st.dictionaries(queues, numbers)


@given(found_tables, asked_tables)
def test_every_queue_is_moved_left_or_absent_and_just_one_of_them(
    found: dict[MessageQueue, QueueOffsets], asked: dict[MessageQueue, int]
) -> None:
    change = plan_change(found, asked)
    named = [*(move.queue for move in change.moves), *change.left, *change.absent]
    assert sorted(named) == sorted(found.keys() | asked.keys())
    assert {move.queue for move in change.moves} == found.keys() & asked.keys()
    assert set(change.absent).isdisjoint(found)


@given(found_tables, asked_tables)
def test_a_move_ends_within_its_queue_as_near_as_can_be(
    found: dict[MessageQueue, QueueOffsets], asked: dict[MessageQueue, int]
) -> None:
    for move in plan_change(found, asked).moves:
        at = found[move.queue]
        assert at.first <= move.to <= at.end
        if at.first <= asked[move.queue] <= at.end:
            assert move.to == asked[move.queue]
            assert not move.clamped
        else:
            assert move.to in (at.first, at.end)
            assert move.clamped
            assert abs(move.to - asked[move.queue]) == min(
                abs(at.first - asked[move.queue]), abs(at.end - asked[move.queue])
            )


@given(found_tables, asked_tables)
def test_the_messages_counted_are_messages_that_are_there(
    found: dict[MessageQueue, QueueOffsets], asked: dict[MessageQueue, int]
) -> None:
    change = plan_change(found, asked)
    for move in change.moves:
        at = found[move.queue]
        if at.committed is None:
            assert move.messages is None
        else:
            assert move.messages is not None
            assert abs(move.messages) <= at.end - at.first
            if at.first <= at.committed <= at.end:
                assert at.committed + move.messages == move.to
    counts = [move.messages or 0 for move in change.moves]
    assert change.skipped - change.repeated == sum(counts)
    assert change.skipped >= 0
    assert change.repeated >= 0


@given(found_tables, asked_tables)
def test_done_twice_there_is_nothing_left_to_do(
    found: dict[MessageQueue, QueueOffsets], asked: dict[MessageQueue, int]
) -> None:
    first = plan_change(found, asked)
    moved = {
        **found,
        **{move.queue: QueueOffsets(move.to, found[move.queue].first, found[move.queue].end) for move in first.moves},
    }
    again = plan_change(moved, asked)
    assert again.to_write == ()
    assert (again.skipped, again.repeated) == (0, 0)


@given(found_tables, asked_tables, st.data())
def test_any_offset_that_changed_since_the_preview_is_seen(
    found: dict[MessageQueue, QueueOffsets], asked: dict[MessageQueue, int], data: st.DataObject
) -> None:
    change = plan_change(found, asked)
    now: dict[MessageQueue, int | None] = {queue: at.committed for queue, at in found.items()}
    assert drifted(change, now) == ()
    if not change.moves:
        return
    victim = data.draw(st.sampled_from(change.moves)).queue
    other = data.draw((st.none() | numbers).filter(lambda value: value != now[victim]))
    assert drifted(change, {**now, victim: other}) == (Mismatch(victim, now[victim], other),)
    # Nothing known is not the same as nothing stored.
    assert [one.queue for one in drifted(change, {q: o for q, o in now.items() if q != victim})] == [victim]


@given(found_tables, asked_tables, st.data())
def test_only_what_is_read_back_is_confirmed(
    found: dict[MessageQueue, QueueOffsets], asked: dict[MessageQueue, int], data: st.DataObject
) -> None:
    change = plan_change(found, asked)
    after: dict[MessageQueue, int | None] = {move.queue: move.to for move in change.to_write}
    assert unconfirmed(change, after) == ()
    if not after:
        return
    victim = data.draw(st.sampled_from(sorted(after)))
    other = data.draw((st.none() | numbers).filter(lambda value: value != after[victim]))
    assert [one.queue for one in unconfirmed(change, {**after, victim: other})] == [victim]
    assert [one.queue for one in unconfirmed(change, {q: o for q, o in after.items() if q != victim})] == [victim]


def test_a_group_with_members_must_not_be_moved() -> None:
    assert why_not("orders", (), broadcasting=False) is None
    assert "1 member at the broker (a)" in str(why_not("orders", ["a"], broadcasting=False))
    many = str(why_not("orders", ["d", "c", "b", "a"], broadcasting=False))
    assert "4 members at the broker (a, b, c, …)" in many


def test_a_broadcasting_group_has_nothing_at_the_broker_to_move() -> None:
    assert "broadcasting" in str(why_not("orders", (), broadcasting=True))


def test_a_mismatch_reads_as_a_sentence() -> None:
    assert str(Mismatch(MessageQueue("orders", "a", 1), None, 5)) == "orders@a/1: 5 instead of none"
