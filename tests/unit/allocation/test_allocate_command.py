"""`rocketfleet allocate`: a line in, a line out, and nothing in a line that stops it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.allocation.views import UNTIMED

from rocketfleet.cli.commands.allocate import allocate, answer

QUEUES = [["t", "broker-a", number] for number in range(3)]
REQUEST: dict[str, Any] = {
    "strategy": "AVG",
    "group": "orders",
    "currentCID": "b",
    "cidAll": ["b", "a"],
    "mqAll": QUEUES[::-1],
    "params": None,
    "sort": True,
}


def ask(**changes: Any) -> dict[str, Any]:
    answered = json.loads(answer(json.dumps({**REQUEST, **changes}).encode(), 1))
    assert isinstance(answered, dict)
    return answered


def test_a_request_comes_back_with_its_result() -> None:
    assert ask() == {**REQUEST, "result": [["t", "broker-a", 2]]}


def test_unsorted_lists_are_used_as_they_are() -> None:
    assert ask(sort=False)["result"] == [["t", "broker-a", 2], ["t", "broker-a", 1]]


def test_an_error_comes_back_in_place_of_a_result() -> None:
    assert ask(currentCID="", result="stale") == {**REQUEST, "currentCID": "", "error": "currentCID is empty"}


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        ({"strategy": "AVG_BY_CIRCLE"}, [QUEUES[1]]),
        ({"strategy": "AveragelyByCircle"}, [QUEUES[1]]),
        ({"strategy": "CONSISTENT_HASH", "params": {"virtualNodeCnt": 0}}, []),
        ({"strategy": "CONFIG", "params": {"messageQueueList": [["x", "y", 7]]}}, [["x", "y", 7]]),
        ({"strategy": "CONFIG"}, None),
        ({"strategy": "MACHINE_ROOM", "params": {"consumeridcs": ["r"]}, "mqAll": [["t", "r@b", 0]]}, []),
        (
            {
                "strategy": "MACHINE_ROOM_NEARBY",
                "params": {"inner": "AVG", "separator": "-"},
                "cidAll": ["b", "broker"],
                "currentCID": "broker",
            },
            QUEUES,
        ),
        ({"strategy": "BALANCED"}, [QUEUES[2]]),
        ({"strategy": "BALANCED", "params": {"owners": [[*queue, "b"] for queue in QUEUES]}}, QUEUES[:2]),
        (
            {
                "strategy": "MACHINE_ROOM_NEARBY",
                "params": {
                    "inner": "BALANCED",
                    "innerParams": {"owners": [[*QUEUES[0], "b"]]},
                    "separator": "-",
                },
            },
            [QUEUES[0]],
        ),
    ],
)
def test_every_strategy_takes_its_parameters(changes: dict[str, Any], result: object) -> None:
    answered = ask(**changes)
    assert answered.get("error") is None
    assert answered["result"] == result


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"strategy": "AVERAGE"}, "there is no strategy 'AVERAGE'; there are AVG, "),
        ({"strategy": None}, "strategy must be the name of a strategy, not null"),
        ({"params": [1]}, "params must be an object or null, not a list"),
        ({"sort": 1}, "sort must be true or false, not a number"),
        ({"group": {}}, "group must be a string or null, not an object"),
        ({"cidAll": "b"}, "cidAll must be a list or null, not a string"),
        ({"cidAll": ["b", True]}, "cidAll must hold strings, not a boolean"),
        ({"mqAll": [["t", "b"]]}, 'mqAll must hold [topic, broker, queueId], not ["t", "b"]'),
        ({"mqAll": [["t", "b", True]]}, "mqAll must hold [topic, broker, queueId]"),
        ({"params": {"virtualNodeCnt": "10"}}, "virtualNodeCnt must be a whole number, not a string"),
        ({"params": {"virtualNodeCnt": 10**9}}, "virtualNodeCnt is 1000000000; this command builds rings of at most"),
        ({"params": {"owners": [["t", "b", 1]]}}, "owners must hold [topic, broker, queueId, member], not "),
        ({"strategy": "MACHINE_ROOM_NEARBY"}, "allocateMessageQueueStrategy is null"),
        ({"strategy": "MACHINE_ROOM_NEARBY", "params": {"inner": "AVG"}}, "machineRoomResolver is null"),
        (
            {"strategy": "MACHINE_ROOM_NEARBY", "params": {"inner": "CONFIG", "separator": "-"}},
            "messageQueueList is null: list the queues of the inner strategy CONFIG",
        ),
    ],
)
def test_what_is_wrong_with_a_line_is_said_in_its_answer(changes: dict[str, Any], error: str) -> None:
    answered = ask(**changes)
    assert answered["error"].startswith(error)
    assert "result" not in answered


def run(stdin: bytes, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    ran = CliRunner().invoke(allocate, arguments, input=stdin)
    return ran.exit_code, [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_bad_line_does_not_stop_the_ones_after_it() -> None:
    good = json.dumps(REQUEST).encode()
    bad = [b"{", b"", b"[1]", b"\xff", b'{"a": NaN}', b"[" * 100_000]
    code, answers = run(b"\n".join([*bad, good]) + b"\n")
    assert code == 0
    assert [sorted(answered) for answered in answers[:-1]] == [["error"]] * len(bad)
    assert all(f"line {number} " in answered["error"] for number, answered in enumerate(answers[:-1], start=1))
    assert answers[-1]["result"] == [["t", "broker-a", 2]]


def test_parameters_nested_too_deeply_are_an_error_as_well() -> None:
    inner: dict[str, Any] = {"inner": "AVG"}
    text = json.dumps(inner)
    for _ in range(480):
        text = '{"inner": "MACHINE_ROOM_NEARBY", "separator": "-", "innerParams": ' + text + "}"
    line = '{"strategy": "MACHINE_ROOM_NEARBY", "params": ' + text + "}"
    code, answers = run(line.encode() + b"\n" + json.dumps(REQUEST).encode() + b"\n")
    assert code == 0
    assert "error" in answers[0]
    assert "result" in answers[1]


def test_half_a_surrogate_pair_survives() -> None:
    assert ask(currentCID="\ud83d", cidAll=["\ud83d"])["currentCID"] == "\ud83d"


def test_a_file_is_read_and_a_missing_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "requests").write_text(json.dumps(REQUEST))
    code, answers = run(b"", str(tmp_path / "requests"))
    assert (code, len(answers)) == (0, 1)
    assert run(b"", str(tmp_path / "none"))[0] != 0


def test_help_shows_an_example_that_works() -> None:
    text = CliRunner().invoke(allocate, ["--help"]).stdout
    example = text[text.index('{"strategy"') : text.index("answers the same with")]
    expected = text[text.index('"result": [') :]
    assert (
        json.loads(answer(" ".join(example.split()).encode(), 1))["result"]
        == json.loads("{" + expected + "}")["result"]
    )


@UNTIMED
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_whatever_a_line_holds_there_is_one_answer(line: bytes) -> None:
    assert "error" in json.loads(answer(line, 1))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@UNTIMED
@given(st.sampled_from(sorted(REQUEST)), json_values, st.sampled_from(["AVG", "CONSISTENT_HASH", "BALANCED", "CONFIG"]))
def test_whatever_a_field_holds_there_is_one_answer(field: str, value: object, strategy: str) -> None:
    answered = ask(**{"strategy": strategy, field: value})
    assert ("error" in answered) != ("result" in answered)
