"""Stopping: every way to the end passes through the same phases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.shutdown import IGNORED, TABLE, ImpossibleSignalError, Phase, Signal, Step, advance

ORDER = list(Phase)
IMPOSSIBLE = {
    *((phase, Signal.ALL_GONE) for phase in Phase if phase is not Phase.DRAINING),
    *((phase, Signal.OUT_OF_TIME) for phase in Phase if phase is not Phase.DRAINING),
    *((phase, Signal.UNREGISTERED) for phase in Phase if phase is not Phase.UNREGISTERING),
    (Phase.CLOSED, Signal.FAILED),
}


def test_every_step_is_carried_out_by_a_method() -> None:
    assert set(Consumer.STEPS) == set(Step)


@pytest.mark.parametrize("phase", Phase)
def test_every_signal_is_accounted_for_in_every_phase(phase: Phase) -> None:
    for signal in Signal:
        assert [(phase, signal) in one for one in (TABLE, IGNORED, IMPOSSIBLE)].count(True) == 1, signal
        if (phase, signal) in IMPOSSIBLE:
            with pytest.raises(ImpossibleSignalError, match=signal.name):
                advance(phase, signal)


def test_a_drain_that_succeeds() -> None:
    phase, steps = advance(Phase.RUNNING, Signal.STOP)
    assert (phase, steps) == (Phase.DRAINING, (Step.DRAIN,))
    phase, steps = advance(phase, Signal.ALL_GONE)
    assert (phase, steps) == (Phase.UNREGISTERING, (Step.UNREGISTER, Step.SIGN_OFF))
    phase, steps = advance(phase, Signal.UNREGISTERED)
    assert (phase, steps) == (Phase.CLOSED, (Step.CLOSE,))


def test_a_drain_that_runs_out_of_time_abandons_what_is_left() -> None:
    phase, steps = advance(Phase.DRAINING, Signal.OUT_OF_TIME)
    assert (phase, steps) == (Phase.UNREGISTERING, (Step.ABANDON, Step.UNREGISTER))


def test_asked_again_it_hurries_and_never_drains_twice() -> None:
    assert advance(Phase.DRAINING, Signal.STOP) == (Phase.DRAINING, (Step.HURRY,))
    for phase in (Phase.UNREGISTERING, Phase.CLOSED):
        assert advance(phase, Signal.STOP) == (phase, ())


@given(st.lists(st.sampled_from(Signal)))
def test_phases_never_go_back_and_what_must_happen_once_happens_once(signals: list[Signal]) -> None:
    phase, done = Phase.RUNNING, list[Step]()
    for signal in signals:
        if (phase, signal) in IMPOSSIBLE:
            continue
        following, steps = advance(phase, signal)
        assert ORDER.index(following) >= ORDER.index(phase)
        phase = following
        done.extend(steps)
    assert all(done.count(step) <= 1 for step in Step if step is not Step.HURRY)
    assert (phase is Phase.CLOSED) == (Step.CLOSE in done)
    if Step.UNREGISTER in done:
        assert done.index(Step.DRAIN) < done.index(Step.UNREGISTER)


@given(st.sampled_from(Phase))
def test_from_every_phase_the_end_can_be_reached(phase: Phase) -> None:
    for signal in (Signal.STOP, Signal.ALL_GONE, Signal.UNREGISTERED):
        if (phase, signal) not in IMPOSSIBLE:
            phase, _ = advance(phase, signal)
    assert phase is Phase.CLOSED


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.DRAINING, Phase.UNREGISTERING])
def test_whatever_fails_it_is_closed(phase: Phase) -> None:
    assert advance(phase, Signal.FAILED) == (Phase.CLOSED, (Step.CLOSE,))
