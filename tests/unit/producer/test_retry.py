"""Which failures are tried again, and for how long: the list is Java's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import UNTIMED

from rocketfleet.client.errors import (
    BackingOff,
    ConnectError,
    ConnectionLost,
    NoBroker,
    ProtocolError,
    RequestTimeout,
    RocketMQError,
    response_error,
)
from rocketfleet.producer.retry import RETRY_CODES, Blame, RetryPolicy, blame
from rocketfleet.wire.codes import ResponseCode

RETRIED = {
    ResponseCode.TOPIC_NOT_EXIST,
    ResponseCode.SERVICE_NOT_AVAILABLE,
    ResponseCode.SYSTEM_ERROR,
    ResponseCode.SYSTEM_BUSY,
    ResponseCode.NO_PERMISSION,
    ResponseCode.NO_BUYER_ID,
    ResponseCode.NOT_IN_CURRENT_UNIT,
    ResponseCode.GO_AWAY,
}


@pytest.mark.parametrize("code", list(ResponseCode))
def test_an_answer_is_final_unless_another_broker_may_do_better(code: ResponseCode) -> None:
    error = response_error(code, "no", "broker:1", 310)
    assert RetryPolicy().is_retried(error) is (code in RETRIED)
    assert blame(error) is (Blame.REFUSED if code in RETRIED else Blame.NOTHING)
    assert RETRIED == RETRY_CODES


@pytest.mark.parametrize(
    "error",
    [
        ConnectError("broker:1", "refused"),
        BackingOff("broker:1", "refused", 1.0, 3),
        ConnectionLost("broker:1", "reset", 310),
        RequestTimeout("broker:1", 310, 3.0),
        ProtocolError("broker:1", "nonsense", 310),
    ],
)
def test_what_goes_wrong_on_the_way_is_tried_again(error: RocketMQError) -> None:
    assert RetryPolicy().is_retried(error)
    assert blame(error) is Blame.UNREACHABLE


def test_a_broker_without_an_address_is_left_but_not_blamed() -> None:
    error = NoBroker("a", "gone")
    assert RetryPolicy().is_retried(error)
    assert blame(error) is Blame.NOTHING


def test_other_codes_can_be_asked_for() -> None:
    error = response_error(ResponseCode.MESSAGE_ILLEGAL, None, "broker:1", 310)
    policy = RetryPolicy(codes=frozenset({ResponseCode.MESSAGE_ILLEGAL}))
    assert policy.is_retried(error)
    assert not policy.is_retried(response_error(ResponseCode.SYSTEM_BUSY, None, "broker:1", 310))


@UNTIMED
@given(
    st.integers(0, 5), st.integers(0, 8), st.floats(-5, 5), st.one_of(st.none(), st.floats(0.01, 5, exclude_min=True))
)
def test_attempts_and_time_are_bounded(retries: int, made: int, left: float, each: float | None) -> None:
    given_time = RetryPolicy(retries, each).time_for_attempt(made, left)
    if made > retries or left <= 0:
        assert given_time is None
    else:
        assert given_time is not None
        assert 0 < given_time <= left
        if each is None or made == retries:
            assert given_time == left, "the last attempt may use all that is left"
        else:
            assert given_time <= each


@UNTIMED
@given(st.integers(1, 2000), st.floats(-1, 100), st.floats(0, 10))
def test_pauses_grow_and_leave_time_to_try(made: int, left: float, first: float) -> None:
    policy = RetryPolicy(same_broker_pause=first)
    pause = policy.pause(made, left)
    assert 0 <= pause <= max(0, left / 2)
    assert pause <= policy.pause(made + 1, left)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        RetryPolicy(retries=-1)
    with pytest.raises(ValueError, match="attempt_timeout"):
        RetryPolicy(attempt_timeout=0)
    with pytest.raises(ValueError, match="same_broker_pause"):
        RetryPolicy(same_broker_pause=-1)
