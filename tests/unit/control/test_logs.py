"""Log lines."""

import ast
import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rocketfleet
from rocketfleet.control import logs
from rocketfleet.wire.queue import MessageQueue

QUEUE = MessageQueue("orders", "broker-a", 3)


def record(message: str, *arguments: object, **more: Any) -> logging.LogRecord:
    return logging.LogRecord("a.b", logging.WARNING, "f.py", 1, message, arguments, more.get("exc_info"))


def line(message: str, *arguments: object) -> dict[str, Any]:
    text = logs.JsonFormatter().format(record(message, *arguments))
    assert "\n" not in text
    content: dict[str, Any] = json.loads(text)
    return content


def test_an_object_a_line() -> None:
    content = line("hello\n%s", "ä")
    assert content["level"] == "WARNING"
    assert content["logger"] == "a.b"
    assert content["message"] == "hello\nä"
    assert content["time"].endswith("Z")
    assert len(content["time"]) == len("2026-01-31T08:00:00.000Z")
    assert content.keys() == {"time", "level", "logger", "message"}


def test_the_queue_where_the_message_has_one() -> None:
    assert line("%s: gone", QUEUE)["queue"] == "orders@broker-a/3"
    assert line("%d%% of %s: %d left", 50, QUEUE, 9)["queue"] == "orders@broker-a/3"
    assert "queue" not in line("%d left", 9)


def test_every_message_that_speaks_of_an_offset_has_it_as_a_field() -> None:
    speaking = list[str]()
    for path in Path(rocketfleet.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("_log."):
                text = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                if text and re.search(r"\boffset %", text[0]):
                    speaking.append(text[0])
                    assert "extra={'offset': " in ast.unparse(call), f"{path}:{call.lineno}"
    assert "%s: owned, from offset %d" in speaking


def test_what_was_passed_as_extra_is_there() -> None:
    extra = {"control": "a:1", "offset": 12}
    made = logging.getLogger("x").makeRecord("x", logging.INFO, "f", 1, "m", (), None, extra=extra)
    assert json.loads(logs.JsonFormatter().format(made))["offset"] == 12
    assert json.loads(logs.JsonFormatter(process=2).format(made))["control"] == "a:1"
    assert json.loads(logs.JsonFormatter(process=2).format(made))["process"] == 2


def test_a_traceback_is_in_the_line() -> None:
    text = ""
    try:
        int("boom")
    except ValueError:
        text = logs.JsonFormatter().format(record("failed", exc_info=sys.exc_info()))
    content = json.loads(text)
    assert "Traceback" in content["exception"]
    assert "ValueError: invalid literal" in content["exception"]
    assert "\n" not in text


def test_what_json_does_not_know_is_text() -> None:
    made = record("m")
    made.odd = {QUEUE}
    assert "orders" in json.loads(logs.JsonFormatter().format(made))["odd"]


def test_a_line_for_people() -> None:
    text = logs.TextFormatter(1).format(record("%s moved", QUEUE))
    assert text.endswith("Z WARNING [1] a.b: orders@broker-a/3 moved")


@pytest.fixture
def _root_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("_root_as_before")
def test_everything_goes_to_one_stream_from_a_level_on() -> None:
    stream = io.StringIO()
    logs.configure("json", "warning", stream=stream)
    logging.getLogger("anybody").info("unseen")
    logging.getLogger("anybody").warning("seen")
    assert [json.loads(text)["message"] for text in stream.getvalue().splitlines()] == ["seen"]
