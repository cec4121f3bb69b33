"""The ownership table, walked through completely: a queue's life is a path through it, and every path must keep the
promises.

The walk remembers what a broker and a reader of the code would: whether the lock may be ours, whether a window is
open, whether it was abandoned. There are few such situations, so all of them are visited.
"""

from collections import deque
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.ownership import (
    CONFIRM_APART,
    LEASE_MARGIN,
    TABLE,
    Effect,
    Event,
    State,
    lease_until,
    step,
)

LOCKED_STATES = {State.OWNED, State.SUSPENDED, State.CONFIRMED_ONCE, State.LEAVING, State.SETTLING}


@dataclass(frozen=True)
class Life:
    """What has become of a queue so far."""

    state: State = State.WANTED
    window: bool = False  # a window is open: pulled, delivered, committed
    on_hold: bool = False
    asked_to_leave: bool = False
    unlocked: bool = False


def live(life: Life, event: Event) -> Life:
    """One step; raises an AssertionError where a promise is broken."""
    before = life
    state, effects = step(life.state, event)
    life = replace(life, state=state)
    if event is Event.UNALLOCATED:
        life = replace(life, asked_to_leave=True)
    for effect in effects:
        if effect is Effect.START:
            assert event is Event.LOCKED, "a window opens only under the lock"
            assert not life.window
            assert not life.asked_to_leave
            life = replace(life, window=True, on_hold=False)
        elif effect in (Effect.EXTEND, Effect.RESUME):
            assert event is Event.LOCKED
            assert life.window, "there is nothing to extend"
            assert not life.asked_to_leave or before.state in (State.LEAVING, State.SETTLING)
            life = replace(life, on_hold=False)
        elif effect is Effect.HOLD:
            assert life.window
            life = replace(life, on_hold=True)
        elif effect is Effect.ABANDON:
            assert life.window, "nothing is abandoned that is not open"
            life = replace(life, window=False)
        elif effect in (Effect.WIND_DOWN, Effect.PERSIST):
            assert life.window, "nothing is committed without a START since the last ABANDON"
        elif effect is Effect.UNLOCK:
            life = replace(life, unlocked=True)
    assert life.window == (state in LOCKED_STATES) or state is State.GONE
    if state in (State.SUSPENDED, State.CONFIRMED_ONCE):
        assert life.on_hold, "a doubtful lease neither begins nor commits"
    if state is State.OWNED:
        assert not life.on_hold
    if state is State.GONE and before.state is not State.GONE:
        lost = event in (Event.REFUSED, Event.LAPSED)
        assert life.unlocked or lost, "who leaves with the lock gives it back"
        assert not life.window or Effect.UNLOCK in effects
    return life


def all_lives() -> set[Life]:
    seen, todo = {Life()}, deque([Life()])
    while todo:
        life = todo.popleft()
        for event in Event:
            following = live(life, event)
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return seen


def test_every_path_keeps_the_promises() -> None:
    states = {life.state for life in all_lives()}
    assert states == set(State), "every state can be reached"


def test_a_queue_that_is_gone_stays_gone_and_does_nothing() -> None:
    for event in Event:
        assert step(State.GONE, event) == (State.GONE, ())


def test_from_everywhere_there_is_a_way_out_without_the_brokers_help() -> None:
    """Only with what happens by itself: being told to leave, handlers ending, the lease running out."""
    ours = (Event.UNALLOCATED, Event.SETTLED, Event.PERSISTED, Event.LAPSED)
    for start in State:
        seen, todo = {start}, deque([start])
        while todo:
            state = todo.popleft()
            for event in ours:
                following, _ = step(state, event)
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        assert State.GONE in seen, start


def test_a_lost_lock_ends_delivery_in_every_state_that_has_it() -> None:
    for state in LOCKED_STATES:
        for event in (Event.REFUSED, Event.LAPSED):
            following, effects = step(state, event)
            assert following in (State.WANTED, State.GONE)
            assert effects == (Effect.ABANDON,)


def test_a_broken_connection_is_trusted_again_only_after_two_confirmations() -> None:
    state, effects = step(State.OWNED, Event.DISCONNECTED)
    assert (state, effects) == (State.SUSPENDED, (Effect.HOLD,))
    state, effects = step(state, Event.LOCKED)
    assert effects == ()
    again, _ = step(state, Event.DISCONNECTED)
    assert again is State.SUSPENDED, "broken again: the count starts anew"
    state, effects = step(state, Event.LOCKED)
    assert (state, effects) == (State.OWNED, (Effect.RESUME,))


def test_leaving_is_wind_down_then_persist_then_unlock() -> None:
    state, path = State.OWNED, list[Effect]()
    for event in (Event.UNALLOCATED, Event.UNALLOCATED, Event.SETTLED, Event.PERSISTED):
        state, effects = step(state, event)
        path.extend(effects)
    assert state is State.GONE
    assert path == [Effect.WIND_DOWN, Effect.PERSIST, Effect.UNLOCK]


def test_a_doubtful_queue_is_left_without_a_commit() -> None:
    for state in (State.SUSPENDED, State.CONFIRMED_ONCE):
        assert step(state, Event.UNALLOCATED) == (State.GONE, (Effect.ABANDON, Effect.UNLOCK))


@given(st.lists(st.sampled_from(Event), max_size=40))
def test_random_walks(events: list[Event]) -> None:
    life = Life()
    for event in events:
        life = live(life, event)


@given(st.sampled_from(State), st.sampled_from(Event))
def test_what_the_table_does_not_name_changes_nothing(state: State, event: Event) -> None:
    if (state, event) not in TABLE:
        assert step(state, event) == (state, ())


def test_the_table_says_something_about_every_event_of_a_lock_in_every_living_state() -> None:
    for state in set(State) - {State.GONE}:
        for event in (Event.LOCKED, Event.REFUSED, Event.LAPSED, Event.DISCONNECTED):
            assert (state, event) in TABLE


@given(st.floats(0, 1e9), st.floats(0.1, 1e4))
def test_a_lease_ends_before_the_brokers_lock_does(requested_at: float, lives: float) -> None:
    end = lease_until(requested_at, lives)
    assert requested_at < end < requested_at + lives
    assert end - requested_at >= lives * 0.74


def test_the_usual_lease() -> None:
    assert lease_until(100.0, 60.0) == 160.0 - LEASE_MARGIN
    assert CONFIRM_APART < LEASE_MARGIN


@pytest.mark.parametrize("state", [State.WANTED, State.OWNED])
def test_asking_to_leave_twice_is_asking_once(state: State) -> None:
    once, _ = step(state, Event.UNALLOCATED)
    assert step(once, Event.UNALLOCATED) == (once, ())
