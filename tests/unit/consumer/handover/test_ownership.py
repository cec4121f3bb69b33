"""The ownership tables, walked through completely: a queue's life is a path through them, and every path must keep the
promises.

The walk remembers what a broker and a reader of the code would: whether a window is open, whether it is on hold, how
often the lock was granted since it was last doubted, whether its offset was looked at. There are few such situations,
so all of them are visited.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.handover.ownership import (
    CONFIRM_APART,
    IGNORED,
    LEASE_MARGIN,
    LOCK,
    TABLE,
    Effect,
    ImpossibleEventError,
    Lock,
    News,
    OwnershipState,
    QueueEvent,
    QueueOwnership,
    lease_until,
    nobody_else_had_it,
    step,
)

WITH_A_WINDOW = {OwnershipState.OWNED, OwnershipState.STANDBY, OwnershipState.LEAVING, OwnershipState.SETTLING}
LEAVING = {OwnershipState.LEAVING, OwnershipState.SETTLING, OwnershipState.RELEASING, OwnershipState.GONE}
DOUBTS = {Lock.DOUBTED, Lock.CONFIRMED_ONCE, Lock.CHECKING}
WANTED = QueueOwnership(OwnershipState.WANTED, Lock.NONE)
OWNED = QueueOwnership(OwnershipState.OWNED, Lock.HELD)


# Who looks at the state before it says so; and the end of a task that only one state has.
IMPOSSIBLE = {
    *((state, QueueEvent.NO_MASTER) for state in (OwnershipState.WANTED, OwnershipState.STANDBY)),
    *(
        (state, QueueEvent.MASTER_BACK)
        for state in (OwnershipState.WANTED, OwnershipState.OWNED, OwnershipState.LEAVING, OwnershipState.SETTLING)
    ),
    (OwnershipState.WANTED, QueueEvent.MOVED),
    *(
        (state, QueueEvent.SETTLED)
        for state in (OwnershipState.WANTED, OwnershipState.OWNED, OwnershipState.STANDBY, OwnershipState.SETTLING)
    ),
    *(
        (state, QueueEvent.PERSISTED)
        for state in (OwnershipState.WANTED, OwnershipState.OWNED, OwnershipState.STANDBY, OwnershipState.LEAVING)
    ),
    *(
        (state, QueueEvent.UNLOCKED)
        for state in (
            OwnershipState.WANTED,
            OwnershipState.OWNED,
            OwnershipState.STANDBY,
            OwnershipState.LEAVING,
            OwnershipState.SETTLING,
        )
    ),
}


def possible(now: QueueOwnership, events: Iterable[QueueEvent] = QueueEvent) -> list[QueueEvent]:
    return [event for event in events if (now.state, event) not in IMPOSSIBLE]


@dataclass(frozen=True)
class Life:
    """What has become of a queue so far."""

    now: QueueOwnership = WANTED
    window: bool = False  # a window is open: pulled, delivered, committed
    on_hold: bool = False
    doubted: bool = False  # since the last grant that counted
    grants: int = 0  # since the lock was last doubted, two at most
    checking: bool = False  # the offset is being looked at, since the second of them
    left: bool = False  # asked to leave, and wound down
    unlocked: bool = False


def live(life: Life, event: QueueEvent) -> Life:
    """One step; raises an AssertionError where a promise is broken."""
    before, (now, effects) = life.now, step(life.now, event)
    life = replace(life, now=now)
    if event in (QueueEvent.LAPSED, QueueEvent.INTERRUPTED, QueueEvent.NO_MASTER) and before.lock is not Lock.NONE:
        life = replace(life, doubted=True, grants=0, checking=False)
    elif event is QueueEvent.GRANTED and life.doubted and before.state is not OwnershipState.STANDBY:
        life = replace(life, grants=min(2, life.grants + 1))
    for effect in effects:
        life = carry_out(life, effect, event, before)
    check(life, before, event)
    return life


def carry_out(life: Life, effect: Effect, event: QueueEvent, before: QueueOwnership) -> Life:
    if effect is Effect.START:
        assert event in (QueueEvent.GRANTED, QueueEvent.OVERTAKEN), "a window opens only under the lock"
        assert life.now == OWNED
        assert not life.window
        return replace(life, window=True, on_hold=False, doubted=False, grants=0, checking=False)
    if effect is Effect.EXTEND:
        assert life.window, "there is nothing to extend"
        assert life.now.lock is Lock.HELD
        if event is QueueEvent.GRANTED:
            assert not life.doubted, "a doubt is not settled by one grant"
        return replace(life, on_hold=False, doubted=False, grants=0, checking=False)
    if effect is Effect.RESUME:
        assert life.window
        assert life.on_hold
        assert life.checking, "nothing goes on before the stored offset was looked at"
        assert life.grants == 2, "nor before two grants"
        assert not life.left
        return replace(life, on_hold=False, doubted=False, grants=0, checking=False)
    if effect is Effect.HOLD:
        assert life.window
        return replace(life, on_hold=True)
    if effect is Effect.CHECK:
        assert life.on_hold
        assert life.grants == 2
        assert not life.checking, "one look at a time"
        return replace(life, checking=True)
    if effect is Effect.GO_ON:
        assert event is QueueEvent.NO_MASTER
        assert life.window
        assert not life.left
        return replace(life, on_hold=False)
    if effect is Effect.ABANDON:
        assert life.window, "nothing is abandoned that is not open"
        assert event in (QueueEvent.REFUSED, QueueEvent.OVERTAKEN), "a doubt alone throws nothing away"
        return replace(life, window=False, on_hold=False, checking=False)
    if effect is Effect.RESTART:
        assert event is QueueEvent.MOVED
        assert life.window
        assert not life.left, "who leaves opens no window"
        assert before == OWNED or before.state is OwnershipState.STANDBY, (
            "in doubt it may be somebody else's to restart"
        )
        return replace(life, on_hold=before.state is OwnershipState.STANDBY)
    if effect is Effect.REMEMBER:
        assert event is QueueEvent.MOVED
        assert life.window
        assert life.left or life.on_hold, "what can be done at once is not put off"
        return life
    if effect is Effect.WIND_DOWN:
        assert life.window, "nothing is committed without a START since the last ABANDON"
        assert not life.left
        return replace(life, left=True)
    if effect is Effect.PERSIST:
        assert life.window
        assert life.left
        return life
    assert effect is Effect.UNLOCK
    assert life.now == (OwnershipState.RELEASING, Lock.NONE)
    assert not life.unlocked, "once: the shell tries it until it is answered"
    return replace(life, unlocked=True, window=False, on_hold=False, checking=False)


def check(life: Life, before: QueueOwnership, event: QueueEvent) -> None:
    now = life.now
    assert life.window == (now.state in WITH_A_WINDOW)
    if now.state in (OwnershipState.WANTED, OwnershipState.RELEASING, OwnershipState.GONE):
        assert now.lock is Lock.NONE
    else:
        assert now.lock is not Lock.NONE
    if now.state is OwnershipState.STANDBY:
        assert now.lock in DOUBTS, "without a master there is nobody whose word holds"
    elif now.lock in DOUBTS:
        assert life.on_hold, "a doubtful lock neither begins nor commits"
    elif now.lock is Lock.HELD:
        assert not life.on_hold
        assert not life.doubted
    assert (now.lock is Lock.CHECKING) == life.checking, "who waits for a look has asked for one"
    if now.lock is Lock.HELD and before.lock is not Lock.HELD:
        assert before.lock is Lock.CHECKING or before == WANTED
    if life.left:
        assert now.state in LEAVING
    if now.state is OwnershipState.GONE and before.state is not OwnershipState.GONE:
        assert life.unlocked or event is QueueEvent.REFUSED, "who leaves with the lock gives it back"


def all_lives() -> set[Life]:
    seen, todo = {Life()}, deque([Life()])
    while todo:
        life = todo.popleft()
        for event in possible(life.now):
            following = live(life, event)
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return seen


def reachable() -> set[QueueOwnership]:
    return {life.now for life in all_lives()}


def test_every_path_keeps_the_promises() -> None:
    lives = all_lives()
    assert {life.now.state for life in lives} == set(OwnershipState), "every state can be reached"
    assert {life.now.lock for life in lives} == set(Lock)


@given(st.lists(st.sampled_from(QueueEvent), max_size=60))
def test_random_walks(events: list[QueueEvent]) -> None:
    life = Life()
    for event in events:
        if event in possible(life.now):
            life = live(life, event)


def walk(*events: QueueEvent, start: QueueOwnership = OWNED) -> tuple[QueueOwnership, list[Effect]]:
    now, path = start, list[Effect]()
    for event in events:
        now, effects = step(now, event)
        path.extend(effects)
    return now, path


@pytest.mark.parametrize("lock", Lock)
def test_a_queue_that_is_gone_stays_gone_and_does_nothing(lock: Lock) -> None:
    for event in QueueEvent:
        assert step(QueueOwnership(OwnershipState.GONE, lock), event) == (
            QueueOwnership(OwnershipState.GONE, Lock.NONE),
            (),
        )


def test_from_everywhere_there_is_a_way_out_without_the_brokers_help() -> None:
    """Only with what happens by itself: being told to stop, handlers ending, and time running out."""
    ours = (QueueEvent.STOPPING, QueueEvent.SETTLED, QueueEvent.PERSISTED, QueueEvent.LAPSED, QueueEvent.UNLOCKED)
    for start in reachable():
        seen, todo = {start}, deque([start])
        while todo:
            now = todo.popleft()
            for event in possible(now, ours):
                following, _ = step(now, event)
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        assert OwnershipState.GONE in {now.state for now in seen}, start


def test_from_everywhere_but_without_a_master_being_unallocated_is_a_way_out_too() -> None:
    for start in reachable() - {QueueOwnership(OwnershipState.STANDBY, lock) for lock in DOUBTS}:
        now = start
        for event in (QueueEvent.UNALLOCATED, QueueEvent.SETTLED, QueueEvent.PERSISTED, QueueEvent.UNLOCKED):
            if event in possible(now):
                now, _ = step(now, event)
        assert now.state is OwnershipState.GONE, start


def test_a_refused_lock_ends_delivery_in_every_state_that_has_it() -> None:
    for start in reachable():
        if start.state in WITH_A_WINDOW:
            following, effects = step(start, QueueEvent.REFUSED)
            assert following.state is (OwnershipState.GONE if start.state in LEAVING else OwnershipState.WANTED)
            assert effects == (Effect.ABANDON,)


@pytest.mark.parametrize("event", [QueueEvent.INTERRUPTED, QueueEvent.LAPSED])
def test_a_doubtful_lock_is_trusted_again_only_after_two_grants_and_a_look_at_the_offset(event: QueueEvent) -> None:
    assert walk(event) == (QueueOwnership(OwnershipState.OWNED, Lock.DOUBTED), [Effect.HOLD])
    now, path = walk(event, QueueEvent.GRANTED)
    assert (now.lock, path) == (Lock.CONFIRMED_ONCE, [Effect.HOLD])
    for again in (QueueEvent.INTERRUPTED, QueueEvent.LAPSED):
        assert step(now, again) == (QueueOwnership(OwnershipState.OWNED, Lock.DOUBTED), ()), "the count starts anew"
    now, path = walk(event, QueueEvent.GRANTED, QueueEvent.GRANTED)
    assert (now.lock, path) == (Lock.CHECKING, [Effect.HOLD, Effect.CHECK])
    assert step(now, QueueEvent.GRANTED) == (now, ()), "renewed while the offset is being read"
    assert step(now, QueueEvent.UNCHANGED) == (OWNED, (Effect.RESUME,))
    for again in (QueueEvent.INTERRUPTED, QueueEvent.LAPSED):
        assert step(now, again) == (QueueOwnership(OwnershipState.OWNED, Lock.DOUBTED), ()), "the look came to nothing"


def test_a_queue_that_somebody_else_had_meanwhile_starts_anew() -> None:
    now, path = walk(QueueEvent.LAPSED, QueueEvent.GRANTED, QueueEvent.GRANTED, QueueEvent.OVERTAKEN)
    assert now == OWNED
    assert path == [Effect.HOLD, Effect.CHECK, Effect.ABANDON, Effect.START]


def test_a_look_at_the_offset_that_comes_too_late_says_nothing() -> None:
    for start in reachable():
        if start.lock is not Lock.CHECKING:
            for late in (QueueEvent.UNCHANGED, QueueEvent.OVERTAKEN):
                assert step(start, late) == (start, ())


def test_a_queue_that_is_moved_is_restarted_under_its_lock_and_else_it_is_remembered() -> None:
    assert step(OWNED, QueueEvent.MOVED) == (OWNED, (Effect.RESTART,))
    for now in reachable():
        if now.state in WITH_A_WINDOW - {OwnershipState.STANDBY} and now != OWNED:
            assert step(now, QueueEvent.MOVED) == (now, (Effect.REMEMBER,))


def test_a_queue_that_a_slave_moves_is_restarted_without_a_lease() -> None:
    standby, _ = walk(QueueEvent.NO_MASTER)
    assert step(standby, QueueEvent.MOVED) == (standby, (Effect.RESTART,))


def test_leaving_is_wind_down_then_persist_then_unlock() -> None:
    for event in (QueueEvent.UNALLOCATED, QueueEvent.STOPPING):
        now, path = walk(event, event, QueueEvent.SETTLED, QueueEvent.PERSISTED)
        assert now.state is OwnershipState.RELEASING, "until the broker has answered"
        assert path == [Effect.WIND_DOWN, Effect.PERSIST, Effect.UNLOCK]
        assert step(now, QueueEvent.UNLOCKED) == (QueueOwnership(OwnershipState.GONE, Lock.NONE), ())


def test_a_doubt_while_leaving_is_settled_as_any_other_and_then_persisted() -> None:
    doubtful, path = walk(QueueEvent.UNALLOCATED, QueueEvent.INTERRUPTED, QueueEvent.SETTLED)
    assert doubtful == (OwnershipState.SETTLING, Lock.DOUBTED)
    assert path == [Effect.WIND_DOWN, Effect.HOLD, Effect.PERSIST]
    now, path = walk(QueueEvent.GRANTED, QueueEvent.GRANTED, QueueEvent.UNCHANGED, QueueEvent.PERSISTED, start=doubtful)
    assert now.state is OwnershipState.RELEASING
    assert path == [Effect.CHECK, Effect.EXTEND, Effect.UNLOCK]
    now, path = walk(QueueEvent.GRANTED, QueueEvent.GRANTED, QueueEvent.OVERTAKEN, start=doubtful)
    assert now.state is OwnershipState.RELEASING
    assert path == [Effect.CHECK, Effect.ABANDON, Effect.UNLOCK], "what is somebody else's is not committed"


def test_a_wish_that_is_withdrawn_gives_back_what_may_still_be_granted() -> None:
    for event in (QueueEvent.UNALLOCATED, QueueEvent.STOPPING):
        assert step(WANTED, event) == (QueueOwnership(OwnershipState.RELEASING, Lock.NONE), (Effect.UNLOCK,))


def test_while_a_lock_is_given_back_nothing_about_it_counts() -> None:
    releasing = QueueOwnership(OwnershipState.RELEASING, Lock.NONE)
    for event in set(QueueEvent) - {QueueEvent.UNLOCKED}:
        assert step(releasing, event) == (releasing, ())


def test_without_a_master_the_queue_goes_on_and_is_believed_afterwards_as_after_any_doubt() -> None:
    now, path = walk(QueueEvent.NO_MASTER)
    assert now.state is OwnershipState.STANDBY
    assert path == [Effect.GO_ON]
    assert step(now, QueueEvent.UNALLOCATED) == (now, ()), "nobody else can have it now"
    now, path = walk(QueueEvent.MASTER_BACK, start=now)
    assert now == (OwnershipState.OWNED, Lock.DOUBTED)
    assert path == [Effect.HOLD]
    assert walk(QueueEvent.GRANTED, QueueEvent.GRANTED, QueueEvent.UNCHANGED, start=now)[0] == OWNED


def test_an_answer_of_the_old_master_does_not_count_once_there_is_none() -> None:
    standby, _ = walk(QueueEvent.NO_MASTER)
    assert walk(QueueEvent.GRANTED, QueueEvent.GRANTED, QueueEvent.GRANTED, start=standby) == (standby, [])


def test_without_a_master_who_stops_winds_down_on_hold() -> None:
    now, path = walk(QueueEvent.NO_MASTER, QueueEvent.STOPPING)
    assert now == (OwnershipState.LEAVING, Lock.DOUBTED)
    assert path == [Effect.GO_ON, Effect.HOLD, Effect.WIND_DOWN]


def test_what_is_ignored_changes_nothing() -> None:
    for now in reachable():
        for event in QueueEvent:
            if (now.state, event) in IGNORED:
                assert step(now, event) == (now, ())


def test_an_event_that_cannot_happen_is_an_error() -> None:
    found = set()
    for now in reachable():
        for event in QueueEvent:
            try:
                step(now, event)
            except ImpossibleEventError:
                found.add((now.state, event))
    assert found == IMPOSSIBLE


def test_every_event_is_accounted_for_in_every_state() -> None:
    """A transition, ignored for a reason, or impossible; and not two of these."""
    locks = {state: {now.lock for now in reachable() if now.state is state} for state in OwnershipState}
    for state in OwnershipState:
        for event in QueueEvent:
            believed = any((lock, event) in LOCK for lock in locks[state])
            moves = (state, event) in TABLE or (believed and (state, event) not in IGNORED)
            ignored, impossible = (state, event) in IGNORED, (state, event) in IMPOSSIBLE
            assert [moves, ignored, impossible].count(True) == 1, (state, event)


def test_the_table_says_something_about_every_event_of_a_lock() -> None:
    for lock in Lock:
        for event in (
            *(QueueEvent.GRANTED, QueueEvent.REFUSED, QueueEvent.LAPSED, QueueEvent.INTERRUPTED),
            *(QueueEvent.UNCHANGED, QueueEvent.OVERTAKEN),
        ):
            assert (lock, event) in LOCK


def test_whatever_becomes_of_a_lock_is_seen_to_in_every_state_with_a_window() -> None:
    for state in (OwnershipState.OWNED, OwnershipState.LEAVING, OwnershipState.SETTLING):
        for news in set(News) - {News.NOTHING, News.GAINED}:
            assert (state, news) in TABLE


@given(st.floats(0, 1e9), st.floats(0.1, 1e4))
def test_a_lease_ends_before_the_brokers_lock_does(requested_at: float, lives: float) -> None:
    end = lease_until(requested_at, lives)
    assert requested_at < end < requested_at + lives
    assert end - requested_at >= lives * 0.74


def test_the_usual_lease() -> None:
    assert lease_until(100.0, 60.0) == 160.0 - LEASE_MARGIN
    assert CONFIRM_APART < LEASE_MARGIN


@given(st.integers(0, 1000), st.integers(-1, 1000))
def test_an_offset_is_somebody_elses_only_if_it_is_beyond_all_that_we_sent(stored: int, sent: int) -> None:
    assert nobody_else_had_it(stored, sent) == (stored <= sent)
    assert nobody_else_had_it(None, sent), "forgotten"


@pytest.mark.parametrize("start", [WANTED, OWNED])
def test_asking_to_leave_twice_is_asking_once(start: QueueOwnership) -> None:
    once, _ = step(start, QueueEvent.UNALLOCATED)
    assert step(once, QueueEvent.UNALLOCATED) == (once, ())
    assert step(once, QueueEvent.STOPPING) == (once, ())
