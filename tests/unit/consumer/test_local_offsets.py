"""The offsets of a broadcasting member, in its own file."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.consumer import local_offsets
from rocketfleet.consumer.local_offsets import LocalOffsets, OffsetFileError, read_offsets, write_offsets
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.bodies import MessageModel
from rocketfleet.wire.queue import MessageQueue

QUEUE, OTHER = MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-a", 1)
SETTINGS = ConsumerSettings("g", (Subscription("t"),), message_model=MessageModel.BROADCASTING)


def opened(path: Path) -> LocalOffsets:
    return LocalOffsets(None, SETTINGS, path)  # type: ignore[arg-type]  # asked only where no offset is stored


@given(st.dictionaries(st.text(min_size=1, max_size=20), st.integers(0, 2**62)))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, offsets: dict[str, int]) -> None:
    path = tmp_path_factory.mktemp("offsets") / "deeper" / "offsets.json"
    write_offsets(path, offsets)
    assert read_offsets(path) == offsets


def test_without_a_file_there_are_no_offsets(tmp_path: Path) -> None:
    assert read_offsets(tmp_path / "offsets.json") == {}


def test_the_one_before_is_kept_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    for offset in (1, 2, 3):
        write_offsets(path, {"q": offset})
    assert read_offsets(path) == {"q": 3}
    assert read_offsets(tmp_path / "offsets.json.bak") == {"q": 2}
    assert sorted(found.name for found in tmp_path.iterdir()) == ["offsets.json", "offsets.json.bak"]


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"offsetTable": 5}', '{"offsetTable": {"q": "x"}}', "\x00"])
def test_a_damaged_file_falls_back_to_the_one_before(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "offsets.json"
    write_offsets(path, {"q": 1})
    write_offsets(path, {"q": 2})
    path.write_text(damage)
    assert read_offsets(path) == {"q": 1}
    path.unlink()
    assert read_offsets(path) == {"q": 1}


def test_both_damaged_is_an_error_that_names_both(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    write_offsets(path, {"q": 1})
    write_offsets(path, {"q": 2})
    path.write_text("")
    (tmp_path / "offsets.json.bak").write_bytes(b"\xff\xfe")
    with pytest.raises(OffsetFileError) as raised:
        read_offsets(path)
    assert f"{path}: " in str(raised.value)
    assert f"{path}.bak: " in str(raised.value)
    assert "Repair or remove" in str(raised.value)
    with pytest.raises(OffsetFileError):
        opened(path)


@pytest.mark.parametrize("moment", ["json.dump", "os.fsync", "os.link", "replace"])
def test_whatever_is_interrupted_one_of_the_two_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    path = tmp_path / "offsets.json"
    write_offsets(path, {"q": 1})
    write_offsets(path, {"q": 2})

    class PowerCut(BaseException):
        pass

    def cut(*_: Any, **__: Any) -> None:
        raise PowerCut

    with monkeypatch.context() as patch:
        if moment == "replace":
            patch.setattr(Path, "replace", cut)
        else:
            module, name = moment.split(".")
            patch.setattr(getattr(local_offsets, module), name, cut)
        with pytest.raises(PowerCut):
            write_offsets(path, {"q": 3})
    assert read_offsets(path) == {"q": 2}
    write_offsets(path, {"q": 4})
    assert read_offsets(path) == {"q": 4}


def test_a_disk_that_takes_nothing_is_a_sentence_and_leaves_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "offsets.json"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OffsetFileError, match=r"cannot be written to .*offsets\.json: .*No space left"):
        write_offsets(path, {"q": 1})
    assert list(tmp_path.iterdir()) == []


async def test_a_member_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    first = opened(path)
    await first.persist({QUEUE: 5, OTHER: 7})
    await first.confirm(QUEUE, 6)
    first.forget(QUEUE)
    second = opened(path)
    assert await second.start(QUEUE) == 6
    assert await second.start(OTHER) == 7


async def test_offsets_do_not_go_back_unless_the_queue_is_reset(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    offsets = opened(path)
    await offsets.persist({QUEUE: 100})
    await offsets.persist({QUEUE: 40})
    assert read_offsets(path) == {str(QUEUE): 100}
    offsets.reset(QUEUE, 5)
    await offsets.persist({QUEUE: 5})
    assert read_offsets(path) == {str(QUEUE): 5}, "else the next start asks for an offset that does not exist"
    await offsets.persist({QUEUE: 6})
    assert read_offsets(path) == {str(QUEUE): 6}


async def test_a_write_that_failed_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "offsets.json"
    offsets = opened(path)

    def broken(*_: Any) -> None:
        raise OffsetFileError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(local_offsets, "write_offsets", broken)
        with pytest.raises(OffsetFileError):
            await offsets.confirm(QUEUE, 9)
    await offsets.confirm(QUEUE, 9)
    assert read_offsets(path) == {str(QUEUE): 9}


async def test_nothing_new_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = opened(tmp_path / "offsets.json")
    await offsets.persist({QUEUE: 1})
    written: list[object] = []
    monkeypatch.setattr(local_offsets, "write_offsets", lambda *given_ones: written.append(given_ones))
    await offsets.persist({QUEUE: 1})
    assert written == []
    assert not offsets.is_news(QUEUE, 1)
    assert offsets.is_news(QUEUE, 2)


async def test_writes_at_the_same_time_end_with_the_highest_offsets(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    offsets = opened(path)
    await asyncio.gather(*(offsets.persist({QUEUE: n, OTHER: 100 - n}) for n in range(100)))
    assert json.loads(path.read_text())["offsetTable"] == {str(QUEUE): 99, str(OTHER): 100}
