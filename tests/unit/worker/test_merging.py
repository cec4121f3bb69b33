"""Several processes' answers as one."""

from typing import Any

from rocketfleet.worker.merging import Part, merged_assignment, merged_drain


def assignment(number: int, *, phase: str = "Running", ready: bool = True) -> dict[str, Any]:
    me = f"me#{number}"
    return {
        "group": "g",
        "clientId": me,
        "clientIds": [me],
        "phase": phase,
        "ready": ready,
        "settled": True,
        "strategy": "AVG",
        "handover": "Exclusive",
        "members": ["me#0", "other"],
        "queues": [{"topic": "t", "broker": "b", "queueId": 9 - number, "clientId": me}],
    }


def drain(number: int, *, confirmed: bool = True) -> dict[str, Any]:
    me = f"me#{number}"
    return {
        "group": "g",
        "clientId": me,
        "clientIds": [me],
        "phase": "Closed",
        "confirmed": confirmed,
        "exitCode": 0 if confirmed else 4,
        "seconds": float(number),
        "queues": [{"topic": "t", "broker": "b", "queueId": number, "clientId": me, "offset": 5}],
    }


def test_assignments() -> None:
    merged = merged_assignment([Part(0, assignment(0)), Part(1, assignment(1))])
    assert merged["group"] == "g"
    assert merged["clientIds"] == ["me#0", "me#1"]
    assert (merged["phase"], merged["ready"], merged["settled"]) == ("Running", True, True)
    assert [queue["queueId"] for queue in merged["queues"]] == [8, 9]
    assert merged["members"] == ["me#0", "other"]
    assert [process["clientId"] for process in merged["processes"]] == ["me#0", "me#1"]


def test_the_phase_is_that_of_the_one_least_far() -> None:
    merged = merged_assignment([Part(0, assignment(0)), Part(1, assignment(1, phase="Joining", ready=False))])
    assert (merged["phase"], merged["ready"]) == ("Joining", False)


def test_a_process_without_an_answer_is_named() -> None:
    merged = merged_assignment([Part(0, assignment(0)), Part(1, error="it is starting")])
    assert merged["ready"] is False
    assert merged["processes"][1] == {"process": 1, "error": "it is starting"}
    assert merged_assignment([Part(0, error="x")])["phase"] == "Joining"


def test_a_drain_is_confirmed_only_if_all_of_it_is() -> None:
    assert merged_drain([Part(0, drain(0)), Part(1, drain(1))])["confirmed"] is True
    assert merged_drain([Part(0, drain(0)), Part(1, drain(1, confirmed=False))])["confirmed"] is False
    partly = merged_drain([Part(0, drain(0)), Part(1, error="it is not running")])
    assert partly["confirmed"] is False
    assert [queue["queueId"] for queue in partly["queues"]] == [0]
    assert merged_drain([Part(0, error="x")])["confirmed"] is False


def test_the_exit_code_of_a_drain_is_what_matters_most() -> None:
    assert merged_drain([Part(0, drain(0)), Part(1, drain(1))])["exitCode"] == 0
    assert merged_drain([Part(0, drain(0)), Part(1, drain(1, confirmed=False))])["exitCode"] == 4
    assert merged_drain([Part(0, drain(0)), Part(1, error="x")])["exitCode"] == 1
