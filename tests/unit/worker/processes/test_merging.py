"""Several processes' answers as one."""

from dataclasses import replace

from rocketfleet.control.messages import Assignment, DrainReport
from rocketfleet.worker.processes.merging import Part, merged_assignment, merged_drain


def assignment(number: int, *, phase: str = "Running", ready: bool = True) -> Assignment:
    me = f"me#{number}"
    content = {
        "group": "g",
        "clientId": me,
        "clientIds": [me],
        "phase": phase,
        "ready": ready,
        "settled": True,
        "strategy": "AVG",
        "handover": "Exclusive",
        "members": ["me#0", "other"],
        "queues": [{"topic": "t", "broker": "b", "queueId": 9 - number, "clientId": me, "state": "Owned"}],
    }
    return Assignment.from_json(content)


def drain(number: int, *, confirmed: bool = True) -> DrainReport:
    me = f"me#{number}"
    content = {
        "group": "g",
        "clientId": me,
        "clientIds": [me],
        "phase": "Closed",
        "confirmed": confirmed,
        "exitCode": 0 if confirmed else 4,
        "seconds": float(number),
        "queues": [{"topic": "t", "broker": "b", "queueId": number, "clientId": me, "offset": 5}],
    }
    return DrainReport.from_json(content)


def test_assignments() -> None:
    merged = merged_assignment([Part(0, assignment(0)), Part(1, assignment(1))]).to_json()
    assert merged["group"] == "g"
    assert merged["clientIds"] == ["me#0", "me#1"]
    assert (merged["phase"], merged["ready"], merged["settled"]) == ("Running", True, True)
    assert [queue["queueId"] for queue in merged["queues"]] == [8, 9]
    assert merged["members"] == ["me#0", "other"]
    assert [process["clientId"] for process in merged["processes"]] == ["me#0", "me#1"]


def test_the_phase_is_that_of_the_one_least_far() -> None:
    merged = merged_assignment([Part(0, assignment(0)), Part(1, assignment(1, phase="Joining", ready=False))]).to_json()
    assert (merged["phase"], merged["ready"]) == ("Joining", False)


def test_a_process_without_an_answer_is_named() -> None:
    merged = merged_assignment([Part(0, assignment(0)), Part(1, error="it is starting")]).to_json()
    assert merged["ready"] is False
    assert merged["processes"][1] == {"process": 1, "error": "it is starting"}
    assert merged_assignment([Part(0, error="x")]).to_json()["phase"] == "Joining"


def test_a_drain_is_confirmed_only_if_all_of_it_is() -> None:
    assert merged_drain([Part(0, drain(0)), Part(1, drain(1))]).to_json()["confirmed"] is True
    assert merged_drain([Part(0, drain(0)), Part(1, drain(1, confirmed=False))]).to_json()["confirmed"] is False
    partly = merged_drain([Part(0, drain(0)), Part(1, error="it is not running")]).to_json()
    assert partly["confirmed"] is False
    assert [queue["queueId"] for queue in partly["queues"]] == [0]
    assert merged_drain([Part(0, error="x")]).to_json()["confirmed"] is False


def test_what_was_cut_short_is_added_up_and_older_workers_are_understood() -> None:
    cut = replace(drain(1), unfinished=2, exit_code=5)
    merged = merged_drain(
        [Part(0, drain(0)), Part(1, cut), Part(2, replace(drain(2), unfinished=1, exit_code=5))]
    ).to_json()
    assert (merged["confirmed"], merged["unfinished"], merged["exitCode"]) == (True, 3, 5)
    assert merged_drain([Part(0, drain(0)), Part(1, drain(1))]).to_json()["unfinished"] == 0


def test_the_exit_code_of_a_drain_is_what_matters_most() -> None:
    assert merged_drain([Part(0, drain(0)), Part(1, drain(1))]).to_json()["exitCode"] == 0
    assert merged_drain([Part(0, drain(0)), Part(1, drain(1, confirmed=False))]).to_json()["exitCode"] == 4
    assert merged_drain([Part(0, drain(0)), Part(1, error="x")]).to_json()["exitCode"] == 1
