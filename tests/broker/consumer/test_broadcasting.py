"""Broadcasting: everybody gets everything, and remembers by itself how far it is."""

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.cluster import Cluster, unique
from tests.broker.consumer.scene import Got, Scene, of_topic, queues, until
from tests.broker.worker.worker_process import WorkerProcess

from rocketfleet.client import admin
from rocketfleet.client.client import Client
from rocketfleet.client.errors import NoRoute
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.offset_storage.local_offsets import CLOCKS_DIFFER, LocalOffsets, OffsetFileError
from rocketfleet.consumer.results import RETRY
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.bodies import TopicConfig
from rocketfleet.wire.enums import ConsumeFromWhere, MessageModel

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


@pytest.fixture
def nameless(scene: Scene, tmp_path: Path) -> Callable[..., Consumer]:
    """Members that are given no client id: it is another one at each start."""

    def make(group: str, topic: str, handler: Any, **settings: Any) -> Consumer:
        return scene.made(
            group,
            topic,
            handler,
            client={"route_refresh": 3600.0},
            consumer={"offset_directory": tmp_path},
            message_model=MessageModel.BROADCASTING,
            **{"consume_from_where": ConsumeFromWhere.LAST_OFFSET, **settings},
        )

    return make


@pytest.fixture
def start_worker(broker: Cluster, topic: str, group: str, tmp_path: Path) -> Iterator[Callable[..., WorkerProcess]]:
    """start_worker("handle", "--processes", "2", POD_NAME="a-0") is a worker, broadcasting."""
    workers: list[WorkerProcess] = []

    def start(handler: str, *arguments: str, **environment: str) -> WorkerProcess:
        name = f"worker-{len(workers)}"
        variables = {
            "ROCKETFLEET_NAME_SERVERS": broker.name_server,
            "ROCKETFLEET_GROUP": group,
            "ROCKETFLEET_TOPICS": topic,
            "ROCKETFLEET_MESSAGE_MODEL": "Broadcasting",
            "ROCKETFLEET_OFFSET_DIRECTORY": str(tmp_path / "offsets"),
            "ROCKETFLEET_HANDLER": f"handlers_under_test:{handler}",
            **environment,
        }
        workers.append(WorkerProcess(tmp_path / name, name, arguments, variables))
        return workers[-1]

    yield start
    for worker in workers:
        worker.kill()


async def grow(scene: Scene, topic: str, count: int) -> None:
    """Give a topic more queues, and let the producer know."""
    (await admin.create_topic(scene.client, TopicConfig(topic, count, count))).all_or_raise()

    async def known() -> bool:
        await scene.client.routes.refresh(topic)
        return set(await scene.client.subscribe_queues(topic)) == queues(topic, count)

    await until(known, "the route names the new queues")


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


async def test_without_a_client_id_a_restart_loses_and_repeats_nothing(
    scene: Scene, topic: str, group: str, nameless: Any
) -> None:
    await scene.send(topic, *range(100, 108))  # from before the group: nobody's

    async def live(count: int, *there: int) -> tuple[str, list[int]]:
        """A member's id, and what it had once it had so many."""
        got = Got()
        member = nameless(group, topic, got)
        await member.start()
        await until(lambda: member.ready)
        await scene.send(topic, *there)
        await until(lambda: len(got) >= count)
        await member.stop()
        return member.client_id, sorted(map(int, got.bodies))

    first = await live(5, *range(5))
    await scene.send(topic, *range(5, 10))
    second = await live(10, *range(10, 15))
    await scene.send(topic, *range(15, 20))
    third = await live(10, *range(20, 25))
    assert [bodies for _, bodies in (first, second, third)] == [
        list(range(5)),
        list(range(5, 15)),
        list(range(15, 25)),
    ]
    assert len({name for name, _ in (first, second, third)}) == 3


async def test_members_of_one_machine_have_offsets_of_their_own(
    scene: Scene, topic: str, group: str, nameless: Any
) -> None:
    before = [Got(), Got()]
    first = [nameless(group, topic, handler) for handler in before]
    for member in first:
        await member.start()
    await until(lambda: all(member.ready for member in first))
    await scene.send(topic, *range(8))
    await until(lambda: all(len(handler) == 8 for handler in before))
    await first[0].stop()
    await scene.send(topic, *range(8, 16))
    await until(lambda: len(before[1]) == 16)
    await first[1].stop()
    await scene.send(topic, *range(16, 24))
    after = [Got(), Got()]
    second = [nameless(group, topic, handler) for handler in after]
    for member in second:
        await member.start()
    await until(lambda: sorted(map(len, after)) == [8, 16])
    assert sorted((sorted(map(int, handler.bodies)) for handler in after), key=len) == [
        list(range(16, 24)),
        list(range(8, 24)),
    ]


@pytest.mark.parametrize("running", [True, False])
async def test_queues_that_are_added_later_are_read_from_their_beginning(
    scene: Scene, make_topic: Topics, group: str, nameless: Any, *, running: bool
) -> None:
    topic = make_topic(queues=2)
    await scene.send(topic, "old", "old")
    got = Got()
    member = nameless(group, topic, got)
    await member.start()
    await until(lambda: member.ready)
    if not running:
        await member.stop()
    await grow(scene, topic, 6)
    for queue in range(6):
        await scene.send(topic, queue, queue=queue)
    if running:
        await member._client.routes.refresh(topic)
    else:
        member = nameless(group, topic, got)
        await member.start()
    await until(lambda: of_topic(member, topic) == set(range(6)) and len(got) >= 6)
    await member.stop()
    assert sorted(got.bodies) == list("012345")


async def test_killed_in_its_first_second_it_skips_nothing_that_was_sent_after_it_was_ready(
    scene: Scene, topic: str, start_worker: Any
) -> None:
    await scene.send(topic, *(f"old-{number}" for number in range(8)))
    first = start_worker("hold")
    first.hold_file.touch()  # whatever it gets, it does not finish
    await asyncio.to_thread(first.until_ready)
    bodies = [f"m{number}" for number in range(24)]
    await scene.send(topic, *bodies)
    first.kill()
    second = start_worker("handle")
    await asyncio.to_thread(second.until_handled, bodies)


async def test_each_of_several_processes_keeps_its_offsets(
    scene: Scene, topic: str, group: str, start_worker: Any, tmp_path: Path
) -> None:
    for start in range(2):
        bodies = [f"{start}-{number}" for number in range(16)]
        if start:
            await scene.send(topic, *bodies[:8])
        worker = start_worker("handle", "--processes", "2")
        await asyncio.to_thread(worker.until_ready)
        await scene.send(topic, *(bodies[8:] if start else bodies))
        await asyncio.to_thread(worker.until_handled, bodies * 2)
        worker.signal(signal.SIGTERM)
        assert await asyncio.to_thread(worker.wait) == 0
    assert sorted(path.name for path in (tmp_path / "offsets").iterdir()) == ["slot-0", "slot-1"]


async def test_a_pod_that_is_replaced_goes_on_where_its_predecessor_was(
    scene: Scene, topic: str, group: str, start_worker: Any, tmp_path: Path
) -> None:
    """The same name, another uid, and the operator's client id with both in it."""
    for start in range(2):
        bodies = [f"{start}-{number}" for number in range(8)]
        if start:
            await scene.send(topic, *bodies[:4])
        pod = {"POD_NAME": "prices-0", "POD_UID": f"uid-{start}"}
        worker = start_worker("handle", ROCKETFLEET_CLIENT_ID=f"room@prices-0@uid-{start}", **pod)
        await asyncio.to_thread(worker.until_ready)
        await scene.send(topic, *(bodies[4:] if start else bodies))
        await asyncio.to_thread(worker.until_handled, bodies)
        worker.signal(signal.SIGTERM)
        assert await asyncio.to_thread(worker.wait) == 0
    assert (tmp_path / "offsets" / "prices-0" / group / "offsets.json").exists()


async def test_a_topic_that_is_created_later_is_read_from_its_beginning(
    scene: Scene, group: str, make_topic: Topics, tmp_path: Path
) -> None:
    topic = unique("late")
    offsets = LocalOffsets(scene.client, broadcasting(group, topic), tmp_path / "offsets.json")
    await offsets.begin(topic, [])
    (await admin.create_topic(scene.client, TopicConfig(topic, 2, 2))).all_or_raise()

    async def known() -> bool:
        with contextlib.suppress(NoRoute):
            await scene.client.routes.refresh(topic)
            return True
        return False

    await until(known, "the topic has a route")
    await scene.send(topic, 0, 1, queue=0)
    await scene.send(topic, 2, 3, queue=1)
    await scene.found(topic, 2, 0)
    await scene.found(topic, 2, 1)
    assert [await offsets.start(queue) for queue in sorted(queues(topic, 2))] == [0, 0]


async def test_a_broker_that_was_away_is_read_from_the_time_at_which_the_topic_was_begun(
    scene: Scene, group: str, make_topic: Topics, tmp_path: Path
) -> None:
    topic = make_topic(queues=2)
    everywhere = sorted(queues(topic, 2))
    for queue in everywhere:
        await scene.send(topic, "old", "old", queue=queue.queue_id)
    old = [message.store_timestamp for queue in (0, 1) for message in await scene.found(topic, 2, queue)]
    path = tmp_path / "offsets.json"

    def clock() -> float:
        """Right after the old ones, by the broker's clock, and as much later as clocks may differ."""
        return (max(old) + 1 + CLOCKS_DIFFER) / 1000

    async with Client(scene.config()) as stranger:  # who has no route yet, and so knows no broker
        offsets = LocalOffsets(stranger, broadcasting(group, topic), path, clock=clock)
        await offsets.begin(topic, everywhere)
        assert json.loads(path.read_text())["offsetTable"] == {}
        for queue in everywhere:
            await scene.send(topic, "new", queue=queue.queue_id)
            await scene.found(topic, 3, queue.queue_id)
        assert [await offsets.start(queue) for queue in everywhere] == [2, 2]


def broadcasting(group: str, topic: str) -> ConsumerSettings:
    return ConsumerSettings(group, (Subscription(topic),), message_model=MessageModel.BROADCASTING)
