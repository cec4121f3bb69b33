"""The offsets of a broadcasting member, in its own file."""

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.requests import broker_offsets
from rocketfleet.client.routing.routes import FoundBroker
from rocketfleet.consumer.offset_storage import local_offsets
from rocketfleet.consumer.offset_storage.local_offsets import (
    CLOCKS_DIFFER,
    LocalOffsets,
    OffsetFileError,
    Stored,
    read_offsets,
    write_offsets,
)
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import ConsumeFromWhere, MessageModel
from rocketfleet.wire.queue import MessageQueue

QUEUE, OTHER = MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-a", 1)
SETTINGS = ConsumerSettings("g", (Subscription("t"),), message_model=MessageModel.BROADCASTING)


def opened(path: Path) -> LocalOffsets:
    return LocalOffsets(None, SETTINGS, path)  # type: ignore[arg-type]  # asked only where no offset is stored


tables = st.dictionaries(st.text(min_size=1, max_size=20), st.integers(0, 2**62))


@given(tables, tables)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, offsets: dict[str, int], begun: dict[str, int]
) -> None:
    path = tmp_path_factory.mktemp("offsets") / "deeper" / "offsets.json"
    write_offsets(path, Stored(offsets, begun))
    assert read_offsets(path) == Stored(offsets, begun)


def test_without_a_file_there_are_no_offsets(tmp_path: Path) -> None:
    assert read_offsets(tmp_path / "offsets.json") == Stored()


def test_the_one_before_is_kept_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    for offset in (1, 2, 3):
        write_offsets(path, Stored({"q": offset}))
    assert read_offsets(path) == Stored({"q": 3})
    assert read_offsets(tmp_path / "offsets.json.bak") == Stored({"q": 2})
    assert sorted(found.name for found in tmp_path.iterdir()) == ["offsets.json", "offsets.json.bak"]


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"offsetTable": 5}',
        '{"offsetTable": {"q": "x"}}',
        "\x00",
        '{"offsetTable": {}, "begun": 5}',
    ],
)
def test_a_damaged_file_falls_back_to_the_one_before(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "offsets.json"
    write_offsets(path, Stored({"q": 1}))
    write_offsets(path, Stored({"q": 2}))
    path.write_text(damage)
    assert read_offsets(path) == Stored({"q": 1})
    path.unlink()
    assert read_offsets(path) == Stored({"q": 1})


def test_both_damaged_is_an_error_that_names_both(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    write_offsets(path, Stored({"q": 1}))
    write_offsets(path, Stored({"q": 2}))
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
    write_offsets(path, Stored({"q": 1}))
    write_offsets(path, Stored({"q": 2}))

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
            write_offsets(path, Stored({"q": 3}))
    assert read_offsets(path) == Stored({"q": 2})
    write_offsets(path, Stored({"q": 4}))
    assert read_offsets(path) == Stored({"q": 4})


def test_a_disk_that_takes_nothing_is_a_sentence_and_leaves_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "offsets.json"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OffsetFileError, match=r"cannot be written to .*offsets\.json: .*No space left"):
        write_offsets(path, Stored({"q": 1}))
    assert list(tmp_path.iterdir()) == []


async def test_a_member_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    first = opened(path)
    await first.persist({QUEUE: 5, OTHER: 7})
    assert await first.confirm(QUEUE, 6) == 6
    assert await first.check(QUEUE), "nobody else writes the file"
    first.forget(QUEUE)
    second = opened(path)
    assert await second.start(QUEUE) == 6
    assert await second.start(OTHER) == 7


async def test_offsets_do_not_go_back_unless_the_queue_is_reset(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    offsets = opened(path)
    await offsets.persist({QUEUE: 100})
    await offsets.persist({QUEUE: 40})
    assert read_offsets(path).offsets == {str(QUEUE): 100}
    offsets.reset(QUEUE, 5)
    await offsets.persist({QUEUE: 5})
    assert read_offsets(path).offsets == {str(QUEUE): 5}, "else the next start asks for an offset that does not exist"
    await offsets.persist({QUEUE: 6})
    assert read_offsets(path).offsets == {str(QUEUE): 6}


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
    assert read_offsets(path).offsets == {str(QUEUE): 9}


async def test_nothing_new_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = opened(tmp_path / "offsets.json")
    await offsets.persist({QUEUE: 1})
    written: list[object] = []
    monkeypatch.setattr(local_offsets, "write_offsets", lambda *given_ones: written.append(given_ones))
    await offsets.persist({QUEUE: 1})
    assert written == []
    await offsets.persist({QUEUE: 2})
    assert len(written) == 1


async def test_writes_at_the_same_time_end_with_the_highest_offsets(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    offsets = opened(path)
    await asyncio.gather(*(offsets.persist({QUEUE: n, OTHER: 100 - n}) for n in range(100)))
    assert json.loads(path.read_text())["offsetTable"] == {str(QUEUE): 99, str(OTHER): 100}


def test_without_links_the_one_before_is_kept_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: Any) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("os.link", no_links)
    path = tmp_path / "offsets.json"
    for offset in (1, 2, 3):
        write_offsets(path, Stored({"q": offset}))
    assert read_offsets(tmp_path / "offsets.json.bak") == Stored({"q": 2})


def test_a_directory_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OffsetFileError, match="name another directory"):
        write_offsets(tmp_path / "file" / "offsets.json", Stored())


async def test_a_write_that_was_cancelled_does_not_cross_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets, going_on, begun = opened(tmp_path / "offsets.json"), threading.Event(), threading.Event()
    order: list[int] = []

    def slow(path: Path, stored: Stored) -> None:
        begun.set()
        assert going_on.wait(60)
        order.append(stored.offsets[str(QUEUE)])
        write_offsets(path, stored)

    monkeypatch.setattr(local_offsets, "write_offsets", slow)
    first = asyncio.create_task(offsets.persist({QUEUE: 1}))
    await asyncio.to_thread(begun.wait, 60)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(offsets.persist({QUEUE: 2}))
    await asyncio.sleep(0)
    going_on.set()
    await second
    assert order == [1, 2]
    assert read_offsets(tmp_path / "offsets.json").offsets == {str(QUEUE): 2}


async def test_once_closed_it_writes_no_more(tmp_path: Path) -> None:
    released: list[bool] = []
    path = tmp_path / "offsets.json"
    offsets = LocalOffsets(None, SETTINGS, path, let_go=lambda: released.append(True))  # type: ignore[arg-type]
    await offsets.persist({QUEUE: 1})
    offsets.close()
    offsets.close()
    with pytest.raises(OffsetFileError):
        await offsets.persist({QUEUE: 2})
    assert released == [True]
    assert read_offsets(path).offsets == {str(QUEUE): 1}


# -- where queues start -----------------------------------------------------------------------------------------------

AWAY = MessageQueue("t", "broker-b", 0)


class Brokers:
    """A client of brokers whose queues end somewhere, and who may be away. `asked` is what was asked by time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **ends: int) -> None:
        self.ends, self.away, self.asked = {name.replace("_", "-"): end for name, end in ends.items()}, set[str](), []
        self.remoting = None
        self.route: tuple[MessageQueue, ...] = (QUEUE, OTHER, AWAY)
        monkeypatch.setattr(broker_offsets, "max_offset", self._end)
        monkeypatch.setattr(broker_offsets, "search_offset", self._search)

    asked: list[tuple[MessageQueue, int]]

    def reader(self, broker: str) -> FoundBroker:
        if broker in self.away:
            raise RocketMQError(f"{broker} is away")
        return FoundBroker(broker, slave=False)

    async def subscribe_queues(self, _topic: str) -> tuple[MessageQueue, ...]:
        return self.route

    async def _end(self, _remoting: None, address: str, _queue: MessageQueue) -> int:
        return self.ends[address]

    async def _search(self, _remoting: None, _address: str, queue: MessageQueue, timestamp: int) -> int:
        self.asked.append((queue, timestamp))
        return 5


def beginner(
    brokers: Brokers, path: Path, where: ConsumeFromWhere = ConsumeFromWhere.LAST_OFFSET, **settings: Any
) -> LocalOffsets:
    given_ones = replace(SETTINGS, consume_from_where=where, **settings)
    client: Any = brokers
    return LocalOffsets(client, given_ones, path, clock=lambda: 1000.0)


async def test_a_topic_is_begun_once_and_in_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brokers, path = Brokers(monkeypatch, broker_a=7), tmp_path / "offsets.json"
    writes: list[Stored] = []
    monkeypatch.setattr(local_offsets, "write_offsets", lambda _path, stored: writes.append(stored))
    offsets = beginner(brokers, path)
    await offsets.begin("t", [QUEUE, OTHER])
    assert writes == [Stored({str(QUEUE): 7, str(OTHER): 7}, {"t": 1_000_000})]
    brokers.ends["broker-a"] = 100
    await offsets.begin("t", [QUEUE, OTHER])
    assert [await offsets.start(queue) for queue in (QUEUE, OTHER)] == [7, 7]
    assert len(writes) == 1


async def test_a_start_is_stored_before_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brokers, path = Brokers(monkeypatch, broker_a=7), tmp_path / "offsets.json"
    brokers.route = (OTHER,)
    first, by_time = ConsumeFromWhere.FIRST_OFFSET, ConsumeFromWhere.TIMESTAMP
    for where, wanted, settings in (
        (ConsumeFromWhere.LAST_OFFSET, 7, {}),
        (first, 0, {}),
        (by_time, 5, {"consume_timestamp": 900.0}),
    ):
        offsets = beginner(brokers, path, where, **settings)
        assert await offsets.start(QUEUE) == wanted
        assert read_offsets(path) == Stored({str(QUEUE): wanted, str(OTHER): wanted}, {"t": 1_000_000})
        path.unlink()
    assert sorted(brokers.asked) == [(QUEUE, 900_000), (OTHER, 900_000)]


async def test_a_start_that_cannot_be_stored_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brokers, path = Brokers(monkeypatch, broker_a=7), tmp_path / "offsets.json"
    brokers.route = (QUEUE,)
    offsets = beginner(brokers, path)

    def broken(*_: Any) -> None:
        raise OffsetFileError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(local_offsets, "write_offsets", broken)
        for _ in range(2):
            with pytest.raises(OffsetFileError):
                await offsets.start(QUEUE)
            with pytest.raises(OffsetFileError):
                await offsets.begin("t", [QUEUE])
    brokers.ends["broker-a"] = 9
    assert await offsets.start(QUEUE) == 7
    assert read_offsets(path).offsets == {str(QUEUE): 7}


async def test_queues_that_start_side_by_side_are_begun_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers, path = Brokers(monkeypatch, broker_a=7, broker_b=9), tmp_path / "offsets.json"
    offsets = beginner(brokers, path)
    assert await asyncio.gather(*map(offsets.start, (QUEUE, OTHER, AWAY))) == [7, 7, 9]
    assert read_offsets(path).offsets == {str(QUEUE): 7, str(OTHER): 7, str(AWAY): 9}


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_queue_that_comes_later_starts_at_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, restarted: bool
) -> None:
    brokers, path = Brokers(monkeypatch, broker_a=7, broker_b=9), tmp_path / "offsets.json"
    offsets = beginner(brokers, path)
    await offsets.begin("t", [QUEUE])
    if restarted:
        offsets = beginner(brokers, path)
        await offsets.begin("t", [QUEUE, OTHER, AWAY])
    assert await offsets.start(OTHER) == 0
    assert await offsets.start(AWAY) == 5, "a broker that is new, or was away"
    assert brokers.asked == [(AWAY, 1_000_000 - CLOCKS_DIFFER)]
    assert read_offsets(path).offsets == {str(QUEUE): 7, str(OTHER): 0, str(AWAY): 5}


async def test_a_broker_that_is_away_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brokers, path = Brokers(monkeypatch, broker_a=7, broker_b=9), tmp_path / "offsets.json"
    brokers.away.add("broker-b")
    offsets = beginner(brokers, path)
    await offsets.begin("t", [QUEUE, AWAY])
    assert await offsets.start(QUEUE) == 7
    with pytest.raises(RocketMQError, match="away"):
        await offsets.start(AWAY)
    brokers.away.clear()
    assert await offsets.start(AWAY) == 5


async def test_of_a_broker_all_queues_are_begun_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the one that did not answer would be taken for new, and read from its beginning."""
    brokers = Brokers(monkeypatch, broker_a=7)

    async def only_one(_remoting: None, _address: str, queue: MessageQueue) -> int:
        if queue is OTHER:
            raise RocketMQError("too slow")
        return 7

    monkeypatch.setattr(broker_offsets, "max_offset", only_one)
    offsets = beginner(brokers, tmp_path / "offsets.json")
    await offsets.begin("t", [QUEUE, OTHER])
    assert [await offsets.start(queue) for queue in (QUEUE, OTHER)] == [5, 5]


async def test_a_topic_that_is_not_there_yet_is_begun_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brokers, path = Brokers(monkeypatch, broker_a=7), tmp_path / "offsets.json"
    offsets = beginner(brokers, path)
    await offsets.begin("t", [])
    assert read_offsets(path) == Stored({}, {"t": 1_000_000})
    assert await offsets.start(QUEUE) == 5
    assert read_offsets(path).offsets == {str(QUEUE): 5, str(OTHER): 5}, "what is beside it is not new"
    assert await offsets.start(OTHER) == 5


async def test_a_topic_of_an_older_file_was_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brokers, path = Brokers(monkeypatch, broker_a=7, broker_b=9), tmp_path / "offsets.json"
    path.write_text(json.dumps({"offsetTable": {str(QUEUE): 3}}))
    offsets = beginner(brokers, path)
    assert [await offsets.start(queue) for queue in (QUEUE, OTHER, AWAY)] == [3, 0, 0]
    brokers.route = ()
    assert await offsets.start(MessageQueue("another", "broker-a", 0)) == 7
