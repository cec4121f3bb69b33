"""How the user's handler gets into a process of its own."""

import os
from pathlib import Path

import pytest

from rocketfleet.testing.group.handler_place import HandlerPlace
from rocketfleet.wire.message import ReceivedMessage

ROOT = Path(__file__).resolve().parents[3]


def handle(message: ReceivedMessage) -> None: ...


def test_a_reference_is_taken_as_it_is(tmp_path: Path) -> None:
    assert HandlerPlace.of("orders:handle", tmp_path) == HandlerPlace("orders:handle", tmp_path)
    assert HandlerPlace.of("orders:handle") == HandlerPlace("orders:handle")


def test_a_function_is_found_by_its_module_and_the_directory_that_counts_from() -> None:
    place = HandlerPlace.of(handle)
    assert place == HandlerPlace("tests.unit.testing.test_handler_place:handle", ROOT)


def test_a_function_that_no_other_process_can_import_is_refused() -> None:
    def inner(message: ReceivedMessage) -> None: ...

    for one in (inner, lambda message: None):
        with pytest.raises(ValueError, match="cannot be imported by another process: give a function of a module"):
            HandlerPlace.of(one)


def test_what_a_test_can_import_a_worker_can() -> None:
    variables = HandlerPlace("orders:handle", Path("/handlers")).variables(Path("/records/w1.jsonl"), "w1")
    assert str(ROOT) in variables["PYTHONPATH"].split(os.pathsep)
    assert {value for name, value in variables.items() if name != "PYTHONPATH"} == {
        "orders:handle",
        "/handlers",
        "/records/w1.jsonl",
        "w1",
    }
