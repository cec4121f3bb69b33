"""What a worker leaves behind: what is written can be read, and is never longer than Kubernetes keeps."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.control import last_words
from rocketfleet.control.messages import DrainOutcome, DrainReport
from rocketfleet.wire.queue import MessageQueue

NAMES = st.text("abcü-%_0", min_size=1, max_size=60)
QUEUES = st.builds(MessageQueue, NAMES, NAMES, st.integers(0, 1000))


@given(st.booleans(), st.dictionaries(QUEUES, st.integers(0, 1 << 62), max_size=80), st.integers(0, 1 << 40))
def test_what_is_written_fits_and_is_read_again(
    confirmed: bool, offsets: dict[MessageQueue, int], unfinished: int
) -> None:
    text = last_words.encode(DrainOutcome(confirmed, offsets, unfinished=unfinished))
    assert len(text.encode()) <= last_words.MOST_BYTES
    read = last_words.decode(text)
    assert read is not None
    assert read.confirmed is confirmed
    assert read.unfinished == unfinished
    assert read.offsets in (None, offsets)
    if len(offsets) <= 10:
        assert read.offsets == offsets


@pytest.mark.parametrize("text", ["", "ERROR: no such handler", "[]", "{}", '{"confirmed":1,"queues":[]}', "[[[["])
def test_anything_else_is_not_taken_for_them(text: str) -> None:
    assert last_words.decode(text) is None


@pytest.mark.parametrize("told", ["", '"unfinished":"many",', '"unfinished":null,', '"unfinished":-1,'])
def test_what_is_not_said_of_unfinished_messages_is_none(told: str) -> None:
    assert last_words.decode('{"confirmed":true,' + told + '"queues":null}') == DrainOutcome(confirmed=True)


def test_they_replace_what_was_there_before(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("x" * 5000)
    words = DrainOutcome(confirmed=True, offsets={MessageQueue("t", "b", 1): 7})
    last_words.leave(file, words)
    assert last_words.decode(file.read_bytes()) == words


def test_a_file_that_cannot_be_written_is_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    last_words.leave(tmp_path / "missing" / "log", DrainOutcome(confirmed=True))
    assert "could not be written" in caplog.text


def test_an_answer_to_drain_says_the_same() -> None:
    answer = {"confirmed": True, "queues": [{"topic": "t", "broker": "b", "queueId": 1, "offset": 7}]}
    assert DrainReport.from_json(answer).outcome == DrainOutcome(confirmed=True, offsets={MessageQueue("t", "b", 1): 7})
    assert DrainReport.from_json({**answer, "unfinished": 3}).outcome.unfinished == 3


def test_a_sentence_is_told_from_the_usual_words(tmp_path: Path) -> None:
    file = tmp_path / "log"
    last_words.leave_sentence(file, "there is no module\n  'shop'")
    assert last_words.decode(file.read_bytes()) is None
    assert last_words.sentence_of(file.read_bytes()) == "there is no module 'shop'"
    last_words.leave(file, DrainOutcome(confirmed=True))
    assert last_words.sentence_of(file.read_bytes()) is None
    assert last_words.sentence_of(b"") is None
    last_words.leave_sentence(None, "nobody wants to know")


def test_a_long_sentence_is_cut_to_what_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "log"
    last_words.leave_sentence(file, "ü" * 5000)
    assert len(file.read_bytes()) <= last_words.MOST_BYTES
    assert (last_words.sentence_of(file.read_bytes()) or "").startswith("üü")
