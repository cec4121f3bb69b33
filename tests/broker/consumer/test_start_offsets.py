"""Where a group starts, and that it goes on where it was: on a real broker, with its quirks."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.broker.consumer.scene import Got, Scene, until

from rocketfleet.client.requests import broker_offsets
from rocketfleet.consumer.settings import InitialOffset
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.queue import MessageQueue

WHERE = ConsumeFromWhere
Topics = Callable[..., str]


async def first_body(scene: Scene, group: str, topic: str, **settings: Any) -> str:
    """What a new group gets first: of "old", "middle" and what is sent once it is there."""
    got = Got()
    member = await scene.member(group, topic, got, **settings)
    where = MessageQueue(topic, "broker-a", 0)
    await until(lambda: where in member.owned and (h := member.holdings.get(where)) is not None and h.lane is not None)
    await scene.send(topic, "new")
    await until(lambda: "new" in got.bodies)
    await member.stop()
    return sorted(zip([m.queue_offset for m in got.messages], got.bodies, strict=True))[0][1]


@pytest.mark.parametrize(
    ("where", "mode", "first"),
    [
        (WHERE.LAST_OFFSET, InitialOffset.STRICT, "new"),
        (WHERE.FIRST_OFFSET, InitialOffset.STRICT, "old"),
        (WHERE.TIMESTAMP, InitialOffset.STRICT, "middle"),
        # The broker's quirk, which Java has to live with: it says 0 for a young queue, so all start at the beginning.
        (WHERE.LAST_OFFSET, InitialOffset.NATIVE, "old"),
        (WHERE.FIRST_OFFSET, InitialOffset.NATIVE, "old"),
        (WHERE.TIMESTAMP, InitialOffset.NATIVE, "old"),
    ],
)
async def test_a_new_group_on_a_young_queue(
    scene: Scene, make_topic: Topics, group: str, where: ConsumeFromWhere, mode: InitialOffset, first: str
) -> None:
    topic = make_topic(queues=1)
    await scene.send(topic, "old")
    [old] = await scene.found(topic, 1)
    await until(lambda: time.time() * 1000 > old.store_timestamp + 2)
    moment = time.time()
    await scene.send(topic, "middle")
    settings: dict[str, Any] = {"consume_from_where": where, "initial_offset": mode}
    if where is WHERE.TIMESTAMP:
        settings["consume_timestamp"] = moment
    assert await first_body(scene, group, topic, **settings) == first


@pytest.mark.parametrize("where", [WHERE.LAST_OFFSET, WHERE.FIRST_OFFSET])
@pytest.mark.parametrize("mode", list(InitialOffset))
async def test_a_stored_offset_wins(
    scene: Scene, make_topic: Topics, group: str, where: ConsumeFromWhere, mode: InitialOffset
) -> None:
    topic = make_topic(queues=1)
    await scene.send(topic, "old", "middle")
    await scene.commit(group, topic, 1)
    assert await first_body(scene, group, topic, consume_from_where=where, initial_offset=mode) == "middle"


async def test_a_group_goes_on_where_it_was(scene: Scene, topic: str, group: str) -> None:
    first, second = Got(), Got()
    member = await scene.member(group, topic, first)
    await scene.send(topic, *range(20))
    await until(lambda: len(first) == 20)
    final = await member.stop()
    for queue, offset in final.items():
        if queue.topic == topic:
            assert offset.confirmed
            assert await scene.committed(group, topic, queue.queue_id) == offset.offset
    await scene.send(topic, *range(20, 40))
    await scene.member(group, topic, second)
    await until(lambda: len(second) == 20)
    assert sorted(map(int, second.bodies)) == list(range(20, 40))


async def test_a_stored_offset_beyond_the_end_is_corrected_and_nothing_after_it_is_missed(
    scene: Scene, make_topic: Topics, group: str
) -> None:
    topic = make_topic(queues=1)
    await scene.send(topic, 0, 1, 2)
    await scene.commit(group, topic, 1000)
    got = Got()
    member = await scene.member(group, topic, got)
    where = MessageQueue(topic, "broker-a", 0)

    def at_the_end() -> bool:
        holding = member.holdings.get(where)
        return holding is not None and holding.lane is not None and holding.lane.window.next_offset == 3

    await until(at_the_end)
    await scene.send(topic, 3, 4)
    await until(lambda: sorted(got.bodies) == ["3", "4"])

    async def corrected() -> bool:
        return await scene.committed(group, topic) == 5

    await until(corrected, "the wrong offset is replaced by a lower one")


async def test_a_stored_offset_below_the_minimum_goes_on_at_the_minimum(
    scene: Scene, make_topic: Topics, group: str, broker: Any
) -> None:
    """A queue whose beginning was deleted: the broker says where it begins now."""
    topic = make_topic(queues=1)
    await scene.send(topic, *range(5))
    await scene.commit(group, topic, 0)
    member = scene.made(group, topic, got := Got())
    call = member._client.remoting.call

    async def deleted(address: str, command: Command, timeout: float | None = None) -> Command:
        """What this broker would say if the first three were gone; to delete them takes hours."""
        if command.code == RequestCode.PULL_MESSAGE and command.fields["topic"] == topic:
            offset = int(command.fields["queueOffset"])
            if offset < 3:
                command.fields["queueOffset"] = "3"
                answer = await call(address, command, timeout)
                answer.code, answer.body = 21, b""
                answer.fields |= {"nextBeginOffset": "3", "minOffset": "3"}
                return answer
        return await call(address, command, timeout)

    member._client.remoting.call = deleted  # type: ignore[method-assign]  # that is the point
    await member.start()
    await until(lambda: sorted(got.bodies) == ["3", "4"])


async def test_commits_never_go_back(scene: Scene, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    member = scene.made(group, topic, got := Got(), consume_thread_max=20)
    told: list[int] = []
    call = member._client.remoting.call

    async def listen(address: str, command: Command, timeout: float | None = None) -> Command:
        fields = command.fields
        if fields.get("topic") == topic and (
            command.code == RequestCode.UPDATE_CONSUMER_OFFSET
            or (command.code == RequestCode.PULL_MESSAGE and int(fields["sysFlag"]) & 1)
        ):
            told.append(int(fields["commitOffset"]))
        return await call(address, command, timeout)

    member._client.remoting.call = listen  # type: ignore[method-assign]  # listening in
    await member.start()
    await until(lambda: member.ready)
    for start in range(0, 2000, 200):
        await scene.fill(topic, 0, 200, first=start)
        await member.persist()
    await until(lambda: len(got) == 2000)
    await member.stop()
    assert told == sorted(told)
    assert told[-1] == 2000 == await scene.committed(group, topic)
    assert len(set(told)) > 3, "else this test says nothing"


async def test_what_was_finished_is_committed_soon_without_a_pull(scene: Scene, make_topic: Topics, group: str) -> None:
    """A member that is killed repeats only what the broker does not know: it must know within a moment."""
    topic = make_topic(queues=1)
    await scene.member(group, topic, got := Got(), persist_interval=3600.0)
    await scene.send(topic, 0)

    async def known() -> bool:
        return await scene.committed(group, topic) == 1

    await until(known)
    assert len(got) == 1
    where = MessageQueue(topic, "broker-a", 0)
    assert await broker_offsets.max_offset(scene.client.remoting, scene.address, where) == 1
