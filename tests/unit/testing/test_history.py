"""The format of a history: what is written is read again, also after somebody was killed in the middle of a line."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.testing.history import EventHistory, EventKind, HistoryEvent, HistoryFormatError, Recorder, read
from rocketfleet.wire.queue import MessageQueue

QUEUE = MessageQueue("orders", "broker-a", 3)


def test_what_is_noted_is_read(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "m1.jsonl", "m1", clock=lambda: 7.25)
    written = [
        recorder.note(EventKind.SENT, message="id", queue=QUEUE, offset=0, began=7.0),
        recorder.note(EventKind.OWNS, queues=[str(QUEUE)]),
        recorder.note(EventKind.COMMITTED, queue=QUEUE, offset=12, at=9.5),
    ]
    assert written[0] == HistoryEvent(7.25, EventKind.SENT, "m1", "id", "orders@broker-a/3", 0, {"began": 7.0})
    assert read([tmp_path]) == EventHistory(tuple(written))


def test_files_are_merged_by_time(tmp_path: Path) -> None:
    for name, times in {"a": (1.0, 4.0), "b": (2.0, 3.0)}.items():
        recorder = Recorder(tmp_path / f"{name}.jsonl", name)
        for at in times:
            recorder.note(EventKind.OWNS, at=at)
    assert [(event.at, event.by) for event in read([tmp_path / "b.jsonl", tmp_path / "a.jsonl"])] == [
        (1.0, "a"),
        (2.0, "b"),
        (3.0, "b"),
        (4.0, "a"),
    ]


@given(st.data())
def test_a_line_may_be_cut_anywhere(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("cut") / "m1.jsonl"
    recorder = Recorder(path, "m1", clock=lambda: 7.25)
    first = recorder.note(EventKind.BEGIN, message="é", queue=QUEUE, offset=1, handling="1-1")
    whole = path.stat().st_size
    recorder.note(EventKind.END, message="é", queue=QUEUE, offset=1, outcome="success")
    keep = data.draw(st.integers(whole, path.stat().st_size - 2))
    os.truncate(path, keep)
    assert read([path]) == EventHistory((first,), cut_lines=int(keep > whole))
    # The member starts again and goes on with its file.
    again = Recorder(path, "m1", clock=lambda: 8.0).note(EventKind.JOINED)
    assert read([path]) == EventHistory.of((first, again), cut_lines=int(keep > whole))


@pytest.mark.parametrize(
    "line", ["not an event", "[1]", '{"at":1.0,"kind":"invented","by":"m1"}', '{"at":1.0,"kind":"sent"}']
)
def test_what_no_recorder_wrote_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"at":1.0,"kind":"left","by":"m1"}\n' + line + "\n")
    with pytest.raises(HistoryFormatError, match=r"x\.jsonl, line 2 is no event"):
        read([path])


def test_a_killed_process_leaves_a_true_record(tmp_path: Path) -> None:
    program = """
import sys
from rocketfleet.testing.history import EventKind, Recorder
recorder = Recorder(sys.argv[1], "m1")
number = 0
while True:
    recorder.note(EventKind.BEGIN, message=str(number), offset=number)
    number += 1
    if number == 500:
        print("enough", flush=True)
"""
    path = tmp_path / "m1.jsonl"
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == b"enough\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    history = read([path])
    assert len(history) >= 500
    assert [event.offset for event in history] == list(range(len(history)))
    assert history.cut_lines <= 1


def test_an_event_says_what_it_is_about() -> None:
    event = HistoryEvent(12.5, EventKind.FAULT, "harness", details={"name": "killed", "target": "m1"})
    assert str(event) == "12.500 harness: fault name=killed target=m1"
    assert json.loads(event.line) == {"at": 12.5, "kind": "fault", "by": "harness", "name": "killed", "target": "m1"}
