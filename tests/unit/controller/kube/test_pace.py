"""Calls to the API server: so many a second, and none while it asks us to wait."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.clock import Clock
from tests.unit.controller.kube_server import Fault, KubeServer, running

from rocketfleet.controller.kube.api import KubeApi, KubeError
from rocketfleet.controller.kube.pace import LONGEST_HOLD, CallRate


def taken(pace: CallRate) -> float:
    wait = pace.reserve(1e9)
    assert wait is not None
    return wait


def test_a_burst_is_free_and_then_calls_are_spread() -> None:
    pace = CallRate(10.0, 5, Clock(100.0))
    waits = [round(taken(pace), 6) for _ in range(8)]
    assert waits == [0.0] * 5 + [0.1, 0.2, 0.3]


@given(st.lists(st.floats(0.0, 3.0), max_size=200))
def test_no_second_has_more_calls_than_a_burst_and_the_rate(pauses: list[float]) -> None:
    clock, times = Clock(100.0), []
    pace = CallRate(10.0, 5, clock)
    for pause in pauses:
        clock.now += pause
        times.append(clock.now + taken(pace))
    for start in times:
        assert sum(start <= moment < start + 1.0 for moment in times) <= 5 + 10 + 1


@pytest.mark.parametrize(
    ("asked", "seconds"), [("7", 7.0), (None, 1.0), ("0", 1.0), ("soon", 1.0), ("99999", LONGEST_HOLD)]
)
def test_the_server_is_left_alone_for_as_long_as_it_asks(asked: str | None, seconds: float) -> None:
    clock = Clock(100.0)
    pace = CallRate(1000.0, 1000, clock)
    pace.hold(asked)
    assert taken(pace) == pytest.approx(seconds)
    clock.now += seconds
    assert taken(pace) == pytest.approx(0.001), "one after the other"
    clock.now += 2.0
    assert taken(pace) == 0.0


def test_calls_that_give_up_take_nobodys_place() -> None:
    """Else a storm of them, each retried at once, would let no call through at all."""
    clock, passed = Clock(100.0), 0
    pace = CallRate(10.0, 5, clock)
    for _ in range(10_000):  # a hundred a second, for as many seconds
        clock.now += 0.01
        passed += pace.reserve(1.0) is not None
    assert passed == pytest.approx(1000, abs=20)


async def test_who_waits_for_its_turn_waits_for_a_hold_that_comes_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(100.0)
    pace = CallRate(1.0, 1, clock)
    slept = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.now += seconds
        if len(slept) == 1:
            pace.hold("7")

    monkeypatch.setattr("rocketfleet.controller.kube.pace.asyncio.sleep", sleep)
    assert await pace.turn(100.0) == 100.0
    assert await pace.turn(100.0) == pytest.approx(92.0)
    assert slept == [pytest.approx(1.0), pytest.approx(7.0)]


@pytest.fixture
async def server() -> AsyncIterator[KubeServer]:
    async with running() as made:
        yield made


async def test_after_429_nothing_is_called_until_it_may_be(server: KubeServer) -> None:
    clock = Clock(100.0)
    api = KubeApi(server.client(), pace=CallRate(1000.0, 1000, clock))
    server.faults = [Fault("GET", "pods", 429, "TooManyRequests", retry_after="30")]
    with pytest.raises(KubeError, match="429"):
        await api.get("/api/v1/pods")
    calls = len(server.calls)
    with pytest.raises(KubeError, match="asked us to wait") as told:
        await api.get("/api/v1/pods", timeout=5.0)
    assert (told.value.status, len(server.calls)) == (429, calls)
    clock.now += 30.0
    await api.get("/api/v1/pods")
    assert len(server.calls) == calls + 1
    await api.close()
