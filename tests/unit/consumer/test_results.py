"""What a handler's answer means."""

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
