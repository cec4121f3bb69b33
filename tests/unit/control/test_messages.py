"""The control port's messages: what one version writes, another reads."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer.handover.ownership import OwnershipState
from rocketfleet.control.messages import (
    IN_VAIN,
    OWNING,
    VERSION,
    Assignment,
    ControlMessageError,
    DrainOutcome,
    DrainReport,
    FinalOffsetReport,
    ProcessReport,
    QueryProgress,
    QueueReport,
    QueueState,
    WorkerPhase,
    WorkReport,
)
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker import snapshot

NAMES = st.text("abcü-%_0", min_size=1, max_size=12)
COUNTS = st.integers(0, 1 << 62)
TENTHS = st.integers(0, 1 << 30).map(lambda tenths: tenths / 10)  # leases are told to a tenth of a second
SECONDS = st.floats(0, 1e9)
QUEUES = st.builds(MessageQueue, NAMES, NAMES, st.integers(0, 1000))
STATES = st.sampled_from([*QueueState, "NewlyInvented"])
PHASES = st.sampled_from([*WorkerPhase, "NewlyInvented"])
QUEUE_REPORTS = st.builds(
    QueueReport, QUEUES, NAMES, STATES, st.none() | COUNTS, st.none() | COUNTS, st.none() | TENTHS, COUNTS, COUNTS
)
PROGRESS = st.builds(
    QueryProgress,
    st.none() | COUNTS,
    st.none() | COUNTS,
    st.none() | SECONDS,
    st.none() | SECONDS,
    st.none() | NAMES,
    st.none() | COUNTS,
    st.none() | COUNTS,
)
NUMBERS = st.integers(0, 9)
FAILED = st.builds(ProcessReport, NUMBERS, error=st.text(max_size=5))
ASSIGNED = st.builds(ProcessReport, NUMBERS, client_id=NAMES, phase=PHASES, ready=st.booleans(), settled=st.booleans())
DRAINED = st.builds(
    ProcessReport, NUMBERS, client_id=NAMES, phase=PHASES, confirmed=st.booleans(), exit_code=st.integers(0, 5)
)


def several(one: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(one, min_size=least, max_size=3).map(tuple)


ASSIGNMENTS = st.builds(
    Assignment,
    client_ids=several(NAMES),
    phase=PHASES,
    ready=st.booleans(),
    settled=st.booleans(),
    members=several(NAMES),
    queues=several(QUEUE_REPORTS),
    work=several(st.builds(WorkReport, NAMES, COUNTS, COUNTS, COUNTS)),
    progress=st.none() | PROGRESS,
    group=st.none() | NAMES,
    strategy=st.none() | NAMES,
    handover=st.none() | NAMES,
    processes=several(FAILED | ASSIGNED),
    version=st.integers(0, 9),
)
DRAINS = st.builds(
    DrainReport,
    confirmed=st.booleans(),
    queues=several(st.builds(FinalOffsetReport, QUEUES, COUNTS, NAMES, st.booleans(), COUNTS)),
    unfinished=COUNTS,
    exit_code=st.none() | st.integers(0, 5),
    seconds=st.none() | SECONDS,
    phase=PHASES,
    group=st.none() | NAMES,
    client_ids=several(NAMES),
    processes=several(FAILED | DRAINED),
    version=st.integers(0, 9),
)
OUTCOMES = st.builds(
    DrainOutcome,
    confirmed=st.booleans(),
    offsets=st.none() | st.dictionaries(QUEUES, COUNTS, max_size=5),
    unfinished=COUNTS,
)
MESSAGES = ASSIGNMENTS | DRAINS | OUTCOMES
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def through_the_wire(content: object) -> Any:
    return json.loads(json.dumps(content))


def with_news(content: Any, news: object) -> Any:
    """The same with a key in every object that nobody knows."""
    if isinstance(content, dict):
        return {**{key: with_news(value, news) for key, value in content.items()}, "newerThanUs": news}
    return [with_news(one, news) for one in content] if isinstance(content, list) else content


@given(MESSAGES)
def test_what_is_written_is_read_again(message: Assignment | DrainReport | DrainOutcome) -> None:
    assert type(message).from_json(through_the_wire(message.to_json())) == message


@given(MESSAGES, JSON)
def test_what_is_not_known_is_passed_over(message: Assignment | DrainReport | DrainOutcome, news: object) -> None:
    assert type(message).from_json(with_news(through_the_wire(message.to_json()), news)) == message


@given(st.sampled_from([Assignment, DrainReport, DrainOutcome]), JSON)
def test_anything_else_is_refused_with_a_sentence(
    kind: type[Assignment] | type[DrainReport] | type[DrainOutcome], content: object
) -> None:
    with pytest.raises(ControlMessageError):
        kind.from_json(content)


@given(MESSAGES, st.data())
def test_one_wrong_value_is_refused_or_passed_over(
    message: Assignment | DrainReport | DrainOutcome, data: st.DataObject
) -> None:
    """Whatever comes back is a message: nobody who reads it has to expect another type in one of its fields."""
    content = through_the_wire(message.to_json())
    content[data.draw(st.sampled_from(sorted(content)))] = data.draw(JSON)
    try:
        read = type(message).from_json(content)
    except ControlMessageError:
        return
    assert type(message).from_json(through_the_wire(read.to_json())) == read


# -- the names on the wire --------------------------------------------------------------------------------------------


def test_the_names_on_the_wire_are_these_whatever_enums_are_called() -> None:
    """Versions on either side of an upgrade spell them so. A name may be added here, none may be changed."""
    assert VERSION == 1
    assert [*map(str, WorkerPhase)] == ["Joining", "Running", "Draining", "Closed"]
    assert {*map(str, QueueState)} == {
        "Wanted",
        "Starting",
        "Owned",
        "Suspended",
        "ConfirmedOnce",
        "Standby",
        "Leaving",
        "Settling",
        "Releasing",
        "Gone",
    }
    assert {"Owned", "Suspended", "ConfirmedOnce", "Standby"} == OWNING
    assert {"Wanted", "Suspended", "ConfirmedOnce"} == IN_VAIN


def test_every_state_of_the_consumer_has_a_name_on_the_wire() -> None:
    assert set(snapshot._STATES) == set(OwnershipState)
    assert [snapshot._STATES[state] for state in OwnershipState] == [
        "Wanted",
        "Owned",
        "Standby",
        "Leaving",
        "Settling",
        "Releasing",
        "Gone",
    ]


QUEUE = MessageQueue("orders", "broker-a", 0)


def test_an_assignment_on_the_wire() -> None:
    queue = QueueReport(QUEUE, "me", QueueState.OWNED, 1200, 1232, 48.21, 32, 32768)
    one = Assignment(
        ("me",), WorkerPhase.RUNNING, True, True, ("me", "you"), (queue,), (WorkReport("me", 9, 2, 1),),
        group="orders", strategy="AVG", handover="Exclusive",
    )  # fmt: skip
    assert json.loads(json.dumps(one.to_json())) == {
        "version": 1,
        "group": "orders",
        "clientId": "me",
        "clientIds": ["me"],
        "phase": "Running",
        "ready": True,
        "settled": True,
        "strategy": "AVG",
        "handover": "Exclusive",
        "members": ["me", "you"],
        "queues": [
            {
                "topic": "orders",
                "broker": "broker-a",
                "queueId": 0,
                "clientId": "me",
                "state": "Owned",
                "offset": 1200,
                "nextOffset": 1232,
                "leaseSeconds": 48.2,
                "messages": 32,
                "bytes": 32768,
            }
        ],
        "work": [{"clientId": "me", "tried": 9, "failed": 2, "sentBack": 1}],
    }
    assert one.owners == {QUEUE: {"me"}}
    driver = Assignment(("me",), progress=QueryProgress(7, 100, 50.0, 2.0, "2026-01-31T08:00:00Z", 0, 3))
    assert driver.to_json()["progress"] == {
        "batch": 7,
        "messages": 100,
        "messagesPerSecond": 50.0,
        "seconds": 2.0,
        "completedAt": "2026-01-31T08:00:00Z",
        "lost": 0,
        "executors": 3,
    }


def test_a_drain_on_the_wire() -> None:
    one = DrainReport(True, (FinalOffsetReport(QUEUE, 1232, "me", True, 0),), 0, 0, 0.21, "Closed", "orders", ("me",))
    assert json.loads(json.dumps(one.to_json())) == {
        "version": 1,
        "group": "orders",
        "clientId": "me",
        "clientIds": ["me"],
        "phase": "Closed",
        "confirmed": True,
        "unfinished": 0,
        "exitCode": 0,
        "seconds": 0.21,
        "queues": [
            {
                "topic": "orders",
                "broker": "broker-a",
                "queueId": 0,
                "clientId": "me",
                "offset": 1232,
                "confirmed": True,
                "unfinished": 0,
            }
        ],
    }
    assert one.outcome.to_json() == {
        "confirmed": True,
        "unfinished": 0,
        "queues": [["orders", "broker-a", 0, 1232]],
    }


def test_several_processes_on_the_wire() -> None:
    parts = (
        ProcessReport(0, client_id="me#0", phase="Running", ready=True, settled=False),
        ProcessReport(1, "it is off"),
    )
    content = Assignment(("me#0",), processes=parts).to_json()
    assert "clientId" not in content
    assert content["processes"] == [
        {"process": 0, "clientId": "me#0", "phase": "Running", "ready": True, "settled": False},
        {"process": 1, "error": "it is off"},
    ]
    drained = ProcessReport(0, client_id="me#0", phase="Closed", confirmed=True, exit_code=0)
    assert drained.to_json() == {
        "process": 0,
        "clientId": "me#0",
        "phase": "Closed",
        "confirmed": True,
        "exitCode": 0,
    }


# -- what other versions wrote ----------------------------------------------------------------------------------------


def test_the_first_workers_answers_are_read() -> None:
    """They had no version, no work and nothing unfinished, and called a state so that there no longer is."""
    queue = {"topic": "orders", "broker": "broker-a", "queueId": 0, "clientId": "me", "state": "ConfirmedOnce"}
    found = Assignment.from_json({"clientIds": ["me"], "phase": "Running", "ready": True, "queues": [queue]})
    assert (found.version, found.joined, found.settled, found.members, found.work) == (0, True, False, (), ())
    assert found.owners == {QUEUE: {"me"}}
    report = DrainReport.from_json(
        {"confirmed": True, "exitCode": 0, "seconds": 2, "queues": [{**queue, "offset": 7, "confirmed": True}]}
    )
    assert report.outcome == DrainOutcome(True, {QUEUE: 7}, 2.0)
    assert DrainOutcome.from_json({"confirmed": True, "queues": [["orders", "broker-a", 0, 7]]}).offsets == {QUEUE: 7}


def test_a_phase_and_a_state_that_are_not_known_are_kept_and_mean_nothing() -> None:
    queue = {"topic": "orders", "broker": "broker-a", "queueId": 0, "clientId": "me", "state": "NewlyInvented"}
    found = Assignment.from_json({"clientIds": ["me"], "phase": "Dreaming", "queues": [queue]})
    assert (found.phase, found.joined) == ("Dreaming", False)
    assert found.states == {QUEUE: {"NewlyInvented"}}
    assert found.owners == {}


def test_the_documented_answers_are_read() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "worker.md").read_text()
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    (assignment,) = (block for block in blocks if "settled" in block)
    (drain,) = (block for block in blocks if "exitCode" in block)
    assert assignment.items() <= Assignment.from_json(assignment).to_json().items()
    assert drain.items() <= DrainReport.from_json(drain).to_json().items()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ([], "it is not an object"),
        ({"queues": []}, "confirmed is missing"),
        ({"confirmed": 1, "queues": []}, "confirmed: it is neither true nor false"),
        ({"confirmed": True}, "queues is missing"),
        ({"confirmed": True, "queues": 5}, "queues: it is not a list"),
        ({"confirmed": True, "queues": [{"topic": 5}]}, "queues: topic: it is not text"),
    ],
)
def test_a_refusal_says_where_it_is_wrong(content: object, why: str) -> None:
    with pytest.raises(ControlMessageError, match=f"^{why}$"):
        DrainReport.from_json(content)
