"""Groups under test on a real broker: what is done to them is written down, and judged."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.broker.testing import sample_handlers

from rocketfleet.testing import EventKind, FaultName, WorkerEndedError, WorkerGroup

Make = Callable[..., WorkerGroup]


def test_a_group_that_grows_and_shrinks_repeats_nothing(make_workers: Make) -> None:
    group = make_workers(sample_handlers.slowly, orderly=True)
    [first] = group.start()
    group.begin_traffic(rate=60)
    group.until_handled(30)
    group.start()
    group.until_handled(90)
    group.leave(first)
    group.until_handled(150)
    verdict = group.verdict()
    assert verdict.ok, str(verdict)
    assert verdict.sent == verdict.handled >= 150
    assert not verdict.excused
    history = group.history
    [left] = history.kind(EventKind.LEFT)
    assert left.by == first.name
    assert left.details["confirmed"] is True
    owners = {event.by for event in history.kind(EventKind.OWNS) if event.details["queues"]}
    assert owners == {worker.name for worker in group.workers}
    assert history.kind(EventKind.COMMITTED)


def test_a_worker_that_is_killed_inside_its_handler_leaves_an_open_handling(
    make_workers: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    monkeypatch.setenv("WORK", str(work))
    group = make_workers("tests.broker.testing.sample_handlers:counting", path=Path.cwd(), orderly=True)
    group.start(2)
    group.begin_traffic(rate=80)
    group.until_handled(60)
    killed = group.kill_inside_handler()
    group.until_handled(160)
    verdict = group.verdict()
    assert verdict.ok, str(verdict)
    history = group.history
    begun, ended = (history.kind(kind) for kind in (EventKind.BEGIN, EventKind.END))
    open_ones = {event.details["handling"] for event in begun} - {event.details["handling"] for event in ended}
    cut = {event.message for event in begun if event.details["handling"] in open_ones}
    assert cut
    assert {event.by for event in begun if event.details["handling"] in open_ones} == {killed.name}
    again = {message for message, times in Counter(event.message for event in begun).items() if times > 1}
    assert cut <= again
    # What was done twice: at most what came again, and nothing that did not.
    times = Counter(work.read_text().splitlines())
    assert set(times) == {str(number) for number in range(verdict.sent)}
    assert sum(count - 1 for count in times.values()) <= len(again) + sum(verdict.excused.values())


def test_a_short_freeze_repeats_nothing_and_batches_are_recorded(make_workers: Make) -> None:
    group = make_workers(sample_handlers.later, arguments=["--batch-size", "8"])
    first, _ = group.start(2)
    group.begin_traffic(rate=100)
    group.until_handled(50)
    group.freeze(first)
    before = group.handled
    group.until_handled(before + 50)
    first.thaw()
    group.until_handled(before + 150)
    verdict = group.verdict()
    assert verdict.ok, str(verdict)
    assert not verdict.excused
    assert any("call" in event.details for event in group.history.kind(EventKind.BEGIN))


def test_a_worker_that_cannot_start_says_why(make_workers: Make, tmp_path: Path) -> None:
    group = make_workers("no_such_module:handle", path=tmp_path)
    with pytest.raises(WorkerEndedError, match="there is no module 'no_such_module'"):
        group.start()


def test_a_worker_that_ends_by_itself_fails_the_test(make_workers: Make) -> None:
    group = make_workers(sample_handlers.ending)
    group.start()
    group.send(["the last"])
    with pytest.raises(WorkerEndedError, match="ended by itself with 9"):
        group.until_handled(1)


def test_what_nobody_handles_is_a_finding(make_workers: Make) -> None:
    group = make_workers(sample_handlers.slowly)
    group.send(["one", "two"])
    verdict = group.verdict()
    assert [str(finding.family) for finding in verdict.findings] == ["unseen", "unseen"]


def test_a_fault_of_the_tests_own_is_written_down(broker: Cluster, make_workers: Make) -> None:
    group = make_workers(sample_handlers.slowly)
    group.start(2)
    group.begin_traffic(rate=60)
    group.until_handled(60)
    with group.fault(FaultName.BROKER_KILLED, "broker-a"):
        broker.kill("broker-a")
        broker.mend()
    group.until_handled(group.handled + 60)
    verdict = group.verdict()
    assert verdict.ok, str(verdict)
    fault, healed = group.history.kind(EventKind.FAULT, EventKind.HEALED)
    assert fault.details == healed.details == {"name": "broker_killed", "target": "broker-a"}
    assert max(event.at for event in group.history.kind(EventKind.COMMITTED)) > healed.at
