"""Stopping: every way to the end passes through the same phases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.shutdown import IGNORED, TABLE, ImpossibleSignalError, Signal, StopPhase, StopStep, advance

ORDER = list(StopPhase)
IMPOSSIBLE = {
    *((phase, Signal.ALL_GONE) for phase in StopPhase if phase is not StopPhase.DRAINING),
    *((phase, Signal.OUT_OF_TIME) for phase in StopPhase if phase is not StopPhase.DRAINING),
    *((phase, Signal.UNREGISTERED) for phase in StopPhase if phase is not StopPhase.UNREGISTERING),
    (StopPhase.CLOSED, Signal.FAILED),
}


def test_every_step_is_carried_out_by_a_method() -> None:
    assert set(Consumer.STEPS) == set(StopStep)


@pytest.mark.parametrize("phase", StopPhase)
def test_every_signal_is_accounted_for_in_every_phase(phase: StopPhase) -> None:
    for signal in Signal:
        assert [(phase, signal) in one for one in (TABLE, IGNORED, IMPOSSIBLE)].count(True) == 1, signal
        if (phase, signal) in IMPOSSIBLE:
            with pytest.raises(ImpossibleSignalError, match=signal.name):
                advance(phase, signal)


def test_a_drain_that_succeeds() -> None:
    phase, steps = advance(StopPhase.RUNNING, Signal.STOP)
    assert (phase, steps) == (StopPhase.DRAINING, (StopStep.DRAIN,))
    phase, steps = advance(phase, Signal.ALL_GONE)
    assert (phase, steps) == (StopPhase.UNREGISTERING, (StopStep.UNREGISTER, StopStep.SIGN_OFF))
    phase, steps = advance(phase, Signal.UNREGISTERED)
    assert (phase, steps) == (StopPhase.CLOSED, (StopStep.CLOSE,))


def test_a_drain_that_runs_out_of_time_abandons_what_is_left() -> None:
    phase, steps = advance(StopPhase.DRAINING, Signal.OUT_OF_TIME)
    assert (phase, steps) == (StopPhase.UNREGISTERING, (StopStep.ABANDON, StopStep.UNREGISTER))


def test_asked_again_it_hurries_and_never_drains_twice() -> None:
    assert advance(StopPhase.DRAINING, Signal.STOP) == (StopPhase.DRAINING, (StopStep.HURRY,))
    for phase in (StopPhase.UNREGISTERING, StopPhase.CLOSED):
        assert advance(phase, Signal.STOP) == (phase, ())


@given(st.lists(st.sampled_from(Signal)))
def test_phases_never_go_back_and_what_must_happen_once_happens_once(signals: list[Signal]) -> None:
    phase, done = StopPhase.RUNNING, list[StopStep]()
    for signal in signals:
        if (phase, signal) in IMPOSSIBLE:
            continue
        following, steps = advance(phase, signal)
        assert ORDER.index(following) >= ORDER.index(phase)
        phase = following
        done.extend(steps)
    assert all(done.count(step) <= 1 for step in StopStep if step is not StopStep.HURRY)
    assert (phase is StopPhase.CLOSED) == (StopStep.CLOSE in done)
    if StopStep.UNREGISTER in done:
        assert done.index(StopStep.DRAIN) < done.index(StopStep.UNREGISTER)


@given(st.sampled_from(StopPhase))
def test_from_every_phase_the_end_can_be_reached(phase: StopPhase) -> None:
    for signal in (Signal.STOP, Signal.ALL_GONE, Signal.UNREGISTERED):
        if (phase, signal) not in IMPOSSIBLE:
            phase, _ = advance(phase, signal)
    assert phase is StopPhase.CLOSED


@pytest.mark.parametrize("phase", [StopPhase.RUNNING, StopPhase.DRAINING, StopPhase.UNREGISTERING])
def test_whatever_fails_it_is_closed(phase: StopPhase) -> None:
    assert advance(phase, Signal.FAILED) == (StopPhase.CLOSED, (StopStep.CLOSE,))
