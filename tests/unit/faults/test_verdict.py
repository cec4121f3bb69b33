"""What a run of the fault harness is held against."""

import pytest
from tests.faults.modes import read_mode
from tests.faults.schedule import FaultSchedule, Stage
from tests.faults.verdict import expected, promises_of, succeeded

from rocketfleet.testing.history import ChangeName, EventHistory, EventKind, HandlingOutcome, HistoryEvent


def schedule_of(mode: str, **stage: object) -> FaultSchedule:
    return FaultSchedule(1, read_mode(mode), 10.0, Stage(**stage), ())  # type: ignore[arg-type]  # as JSON has them


@pytest.mark.parametrize(
    ("mode", "exclusive"),
    [("Concurrent", True), ("Concurrent,Eager", False), ("Orderly", True), ("Orderly,Eager", True)],
)
def test_only_concurrent_eager_groups_may_repeat(mode: str, exclusive: bool) -> None:
    promises = promises_of(schedule_of(mode))
    assert (promises.exclusive, promises.repeats) == (exclusive, not exclusive)
    assert promises.orderly == mode.startswith("Orderly")


def test_promises_go_by_the_locks_of_the_stage() -> None:
    promises = promises_of(schedule_of("Orderly", lock_seconds=15.0, from_last_offset=True))
    assert (promises.lock_seconds, promises.renewal_seconds, promises.shortest_lease) == (15.0, 5.0, 10.0)
    assert not promises.from_beginning


def test_a_last_offset_group_need_not_handle_what_was_sent_before_it_began() -> None:
    before = HistoryEvent(1.0, EventKind.SENT, "harness", "n1", "t@b/0", 0)
    after = HistoryEvent(3.0, EventKind.SENT, "harness", "n2", "t@b/0", 1)
    began = HistoryEvent(2.0, EventKind.CHANGE, "harness", details={"what": ChangeName.GROUP_BEGAN})
    assert expected(EventHistory.of([before, after])) == {"n1", "n2"}
    assert expected(EventHistory.of([before, began, after])) == {"n2"}


def test_only_a_success_counts_as_handled() -> None:
    ends = [
        HistoryEvent(float(number), EventKind.END, "m1", f"n{number}", details={"outcome": outcome.value})
        for number, outcome in enumerate(HandlingOutcome)
    ]
    assert succeeded(EventHistory.of(ends)) == {"n0"}
