"""What a handler's answer means."""

from dataclasses import FrozenInstanceError
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from rocketfleet.consumer.results import COMMIT, RETRY, ROLLBACK, SUCCESS, SUSPEND, ConsumeResult, Retry, judge


@pytest.mark.parametrize("answer", [None, True, SUCCESS])
def test_success(answer: object) -> None:
    assert judge(answer) == (ConsumeResult.SUCCESS, Retry())


@pytest.mark.parametrize("answer", [False, RETRY])
def test_come_again(answer: object) -> None:
    assert judge(answer) == (ConsumeResult.RETRY, Retry(level=0))


def test_come_again_as_the_handler_says() -> None:
    assert judge(Retry(level=5)) == (ConsumeResult.RETRY, Retry(level=5))
    assert judge(Retry(seconds=2.5)) == (ConsumeResult.RETRY, Retry(seconds=2.5))


@pytest.mark.parametrize("answer", [SUSPEND, COMMIT, ROLLBACK])
def test_what_only_orderly_handlers_say(answer: ConsumeResult) -> None:
    assert judge(answer) == (answer, Retry())


@pytest.mark.parametrize("answer", [1, 0, "SUCCESS", [SUCCESS], object, 0.0])
def test_nonsense_is_named(answer: object) -> None:
    with pytest.raises(TypeError, match=f"returned {type(answer).__name__}: return nothing or SUCCESS"):
        judge(answer)


async def _coroutine() -> None: ...


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (_coroutine(), "returned coroutine: nobody awaits it; write the handler with `async def`"),
        ((number for number in range(3)), "returned generator: nobody runs it"),
    ],
)
def test_what_nobody_would_run_is_told_apart(answer: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        judge(answer)
    answer.close()


@pytest.mark.parametrize("level", [-1, 0, 1, 18, (1 << 31) - 1])
def test_levels(level: int) -> None:
    assert Retry(level).level == level


@pytest.mark.parametrize(("seconds", "number"), [(0, 0.0), (3, 3.0), (0.5, 0.5), (Fraction(1, 4), 0.25), (None, None)])
def test_seconds(seconds: Any, number: float | None) -> None:
    assert Retry(seconds=seconds).seconds == number
    assert number is None or type(Retry(seconds=seconds).seconds) is float


@pytest.mark.parametrize("level", [True, "3", 2.0, None, timedelta(seconds=1)])
def test_a_level_that_is_no_whole_number_is_refused_when_it_is_made(level: Any) -> None:
    with pytest.raises(TypeError, match=f"takes a whole number, not {type(level).__name__}"):
        Retry(level)


@pytest.mark.parametrize("level", [-2, 1 << 31, 10**30])
def test_a_level_that_no_request_can_carry_is_refused_when_it_is_made(level: int) -> None:
    with pytest.raises(ValueError, match="must not be less than -1"):
        Retry(level)


@pytest.mark.parametrize("seconds", [timedelta(seconds=1), "1", True, Decimal(1), 1j, [1]])
def test_seconds_that_are_no_number_are_refused_when_they_are_made(seconds: Any) -> None:
    with pytest.raises(TypeError, match=f"takes a number of seconds, not {type(seconds).__name__}"):
        Retry(seconds=seconds)


def test_whoever_gives_a_timedelta_is_told_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"use its total_seconds\(\)"):
        Retry(seconds=timedelta(seconds=1))  # type: ignore[arg-type]  # that is what is tested


@pytest.mark.parametrize("seconds", [-0.1, float("nan"), float("inf"), -float("inf"), 10**400])
def test_seconds_that_nobody_can_wait_are_refused_when_they_are_made(seconds: float) -> None:
    with pytest.raises(ValueError, match="zero or more and finite"):
        Retry(seconds=seconds)


def test_a_retry_that_got_around_the_check_is_nonsense_as_well() -> None:
    odd = Retry()
    with pytest.raises(FrozenInstanceError):
        odd.level = 3  # type: ignore[misc]  # that is what is tested
    object.__setattr__(odd, "seconds", timedelta(seconds=1))
    with pytest.raises(TypeError, match="number of seconds"):
        judge(odd)


class Liar:
    __class__ = Retry  # type: ignore[assignment]  # that is what is tested


def test_a_class_is_what_it_is_and_not_what_it_says() -> None:
    assert isinstance(Liar(), Retry)
    with pytest.raises(TypeError, match="returned Liar"):
        judge(Liar())
