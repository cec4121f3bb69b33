"""Broadcasting: everybody gets everything, and remembers by itself how far it is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.broker.consumer.scene import Got, Scene, of_topic, until

from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.local_offsets import OffsetFileError
from rocketfleet.consumer.results import RETRY
from rocketfleet.wire.bodies import ConsumeFromWhere, MessageModel

Topics = Callable[..., str]


@pytest.fixture
def made(scene: Scene, tmp_path: Path) -> Callable[..., Consumer]:
    def make(group: str, topic: str, handler: Any, name: str = "one", **settings: Any) -> Consumer:
        return scene.made(
            group,
            topic,
            handler,
            client={"client_id": f"{name}@{group}"},
            consumer={"offset_directory": tmp_path},
            message_model=MessageModel.BROADCASTING,
            **settings,
        )

    return make


async def test_every_member_gets_everything(scene: Scene, topic: str, group: str, made: Any) -> None:
    handlers = [Got(), Got(), Got()]
    members = [made(group, topic, handler, str(number)) for number, handler in enumerate(handlers)]
    for member in members:
        await member.start()
    await until(lambda: all(of_topic(member, topic) == set(range(8)) for member in members))
    await scene.send(topic, *range(24))
    await until(lambda: all(len(handler) == 24 for handler in handlers))
    assert all(sorted(map(int, handler.bodies)) == list(range(24)) for handler in handlers)
    assert all(member.rebalancer.settled for member in members)
    assert [await scene.committed(group, topic, queue) for queue in range(8)] == [None] * 8, "the broker keeps nothing"


async def test_offsets_survive_a_restart_in_the_members_own_file(
    scene: Scene, topic: str, group: str, made: Any, tmp_path: Path
) -> None:
    before, after = Got(), Got()
    first = made(group, topic, before)
    await first.start()
    await scene.send(topic, *range(10))
    await until(lambda: len(before) == 10)
    final = await first.stop()
    assert sum(offset.offset for offset in final.values()) == 10
    assert all(offset.confirmed for offset in final.values())
    file = tmp_path / f"one@{group}" / group / "offsets.json"
    assert sum(json.loads(file.read_text())["offsetTable"].values()) == 10
    await scene.send(topic, *range(10, 20))
    second = made(group, topic, after, consume_from_where=ConsumeFromWhere.LAST_OFFSET)
    await second.start()
    await until(lambda: len(after) == 10)
    assert sorted(map(int, after.bodies)) == list(range(10, 20)), "what was sent meanwhile, and nothing twice"


async def test_offsets_are_written_now_and_then_and_not_only_at_the_end(
    scene: Scene, make_topic: Topics, group: str, made: Any, tmp_path: Path
) -> None:
    topic = make_topic(queues=1)
    member = made(group, topic, Got(), persist_interval=0.05)
    await member.start()
    await scene.send(topic, 1, 2, 3)

    def written() -> bool:
        files = list(tmp_path.rglob("offsets.json"))
        return bool(files) and json.loads(files[0].read_text())["offsetTable"] == {f"{topic}@broker-a/0": 3}

    await until(written)


async def test_failures_are_dropped(scene: Scene, make_topic: Topics, group: str, made: Any) -> None:
    topic = make_topic(queues=1)
    got = Got(lambda message: RETRY if message.body == b"1" else None)
    member = made(group, topic, got)
    await member.start()
    await scene.send(topic, 0, 1, 2)
    await until(lambda: len(got) == 3)
    final = await member.stop()
    [offset] = final.values()
    assert (offset.offset, offset.confirmed) == (3, True)
    assert member.tally.failed == 1
    assert f"%RETRY%{group}" not in member.subscriptions


async def test_an_offset_beyond_the_end_is_corrected_in_the_file_too(
    scene: Scene, make_topic: Topics, group: str, made: Any, tmp_path: Path
) -> None:
    """Else every restart would skip what came in between."""
    topic = make_topic(queues=1)
    await scene.send(topic, 0, 1)
    file = tmp_path / f"one@{group}" / group / "offsets.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"offsetTable": {f"{topic}@broker-a/0": 100}}))
    member = made(group, topic, Got())
    await member.start()
    await until(lambda: [lane.window.next_offset for _, lane in member.holdings.lanes()] == [2])
    await member.stop()
    assert json.loads(file.read_text())["offsetTable"] == {f"{topic}@broker-a/0": 2}
    await scene.send(topic, "between")
    got = Got()
    again = made(group, topic, got)
    await again.start()
    await until(lambda: got.bodies == ["between"])


async def test_a_damaged_file_is_said_at_the_start(topic: str, group: str, made: Any, tmp_path: Path) -> None:
    file = tmp_path / f"one@{group}" / group / "offsets.json"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    member = made(group, topic, Got())
    with pytest.raises(OffsetFileError, match="Repair or remove the files"):
        await member.start()
