"""Identity, durations, restarts, exit codes: small rules with small tests."""

import inspect
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.control import exit_codes
from rocketfleet.control.identity import MADE_UP_VARIABLE, choose_client_id, is_made_up, process_client_id
from rocketfleet.worker.durations import BOUNDS, Durations, HandlerExited, timed
from rocketfleet.worker.processes.restarts import LONGEST_PAUSE, STABLE_SECONDS, Restarts


def test_a_client_id_carries_the_pods_name_and_uid() -> None:
    pod = {"POD_NAME": "orders-0", "POD_UID": "1234"}
    assert choose_client_id(None, pod) == "orders-0@1234"
    assert choose_client_id("mine", pod) == "mine"
    assert choose_client_id("", {"POD_NAME": "orders-0"}) != choose_client_id("", {"POD_NAME": "orders-0"})
    assert process_client_id("a", 0) != process_client_id("a", 1)


def test_a_child_knows_that_its_id_was_made_up_and_tells_nobody() -> None:
    assert is_made_up(None, {})
    assert not is_made_up("mine", {})
    environment = {MADE_UP_VARIABLE: "yes"}
    assert is_made_up("from-the-parent", environment)
    assert environment == {}


@given(st.lists(st.floats(min_value=0, max_value=1000)))
def test_every_duration_is_counted_once_and_below_its_bound(seconds: list[float]) -> None:
    durations = Durations()
    for value in seconds:
        durations.note(value)
    cumulative = durations.cumulative()
    assert cumulative[-1] == ("+Inf", float(len(seconds)))
    for bound, (name, count) in zip(BOUNDS, cumulative, strict=False):
        assert name == str(bound)
        assert count == sum(value <= bound for value in seconds)
    assert durations.total == pytest.approx(sum(seconds))


async def test_a_timed_handler_is_seen_as_what_it_was() -> None:
    durations = Durations()

    def single(message: object) -> object:
        return message

    def batch(messages: list[object]) -> None:
        raise KeyError(messages[0])

    async def later(messages: list[object]) -> int:
        return len(messages)

    class Callable:
        async def __call__(self, message: object) -> object:
            return message

    for handler in (single, batch, later, Callable()):
        before = inspect_handler(handler)
        after = inspect_handler(timed(before, durations))
        assert (after.is_async, after.takes_batch) == (before.is_async, before.takes_batch)
        assert inspect.iscoroutinefunction(after.call) == before.is_async
    assert timed(inspect_handler(single), durations)(5) == 5
    failing = timed(inspect_handler(batch), durations)
    with pytest.raises(KeyError):
        failing([1])
    assert await timed(inspect_handler(later), durations)([1, 2]) == 2
    assert await timed(inspect_handler(Callable()), durations)(7) == 7
    assert sum(durations.counts) == 4
    assert timed(inspect_handler(len), durations)([1]) == 1


async def test_a_handler_cannot_end_the_worker() -> None:
    def leave(_: object) -> None:
        sys.exit("enough")

    async def leave_later(_: object) -> None:
        sys.exit("enough")

    with pytest.raises(HandlerExited, match=r"sys\.exit"):
        timed(inspect_handler(leave), Durations())(1)
    with pytest.raises(HandlerExited):
        await timed(inspect_handler(leave_later), Durations())(1)


def test_restarts_come_less_and_less_often_but_never_stop() -> None:
    restarts = Restarts()
    pauses = [restarts.ended(1.0) for _ in range(2000)]
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[1]
    assert pauses[-1] == LONGEST_PAUSE
    assert (restarts.failures, restarts.too_many) == (2000, True)
    assert restarts.ended(STABLE_SECONDS) == pauses[0]
    assert (restarts.failures, restarts.too_many) == (1, False)
    assert restarts.total == 2001


def test_the_code_of_several_processes() -> None:
    assert exit_codes.combined([]) == 0
    assert exit_codes.combined([0, 0]) == 0
    assert exit_codes.combined([0, -9]) == 1
    assert exit_codes.combined([1, 4, 0]) == 4
    assert exit_codes.combined([3, 2]) == 2
    assert exit_codes.combined([0, 5]) == 5
    assert exit_codes.combined([5, 4]) == 4
    assert exit_codes.combined([5, -9]) == 1, "of one that was killed nobody knows what it had committed"
