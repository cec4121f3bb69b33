"""Lag as mqadmin consumerProgress sees it, case by case; and what it does not see."""

import asyncio
import datetime
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker.cli.running import answer, rocketfleet
from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import Got, until
from tests.broker.lag.watching import Watch, agree

from rocketfleet.client.requests import broker_offsets
from rocketfleet.consumer.results import RETRY, Retry
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.wire.enums import ConsumeFromWhere, MessageModel
from rocketfleet.wire.message import Message
from rocketfleet.wire.queue import MessageQueue

Topics = Callable[..., str]


class Stop:
    """A handler that takes so many messages and hangs in the next, until it is let go."""

    def __init__(self, after: int) -> None:
        self._left = after
        self._lock = threading.Lock()
        self.free = threading.Event()
        self.hung = 0

    def __call__(self, _message: object) -> None:
        with self._lock:
            self._left -= 1
            hangs = self._left < 0
            self.hung += hangs
        if hangs:
            self.free.wait(120)


@pytest.mark.parametrize("mode", [ConsumeMode.CONCURRENT, ConsumeMode.ORDERLY])
async def test_a_group_that_runs_and_is_behind(watch: Watch, make_topic: Topics, group: str, mode: ConsumeMode) -> None:
    topic = make_topic(queues=4)
    watch.follow(group, topic, where=ConsumeFromWhere.FIRST_OFFSET)
    for queue in range(4):
        await watch.fill(topic, queue, 10)
    handler = Stop(after=12)
    try:
        # One thread: the twelve are the first ones of some queues, and what is done is what is committed.
        await watch.member(
            group, topic, handler, consume_mode=mode, consume_thread_min=1, consume_thread_max=1, persist_interval=0.1
        )
        await until(lambda: handler.hung == 1, "the handler hangs")
        await watch.committed_everywhere(group, topic, 12, 4)
        seen = await watch.agreed(group)
        assert seen.messages == 28
        assert (seen.members, seen.retry, seen.dlq, seen.unknown) == (1, 0, 0, 0)
        assert seen.worst is not None
    finally:
        handler.free.set()
    await watch.committed_everywhere(group, topic, 40, 4)
    seen = await watch.agreed(group)
    assert (seen.messages, seen.seconds, seen.worst, seen.drain_seconds) == (0, 0.0, None, 0.0)


async def test_an_offline_group_and_how_long_its_messages_wait(watch: Watch, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=2)
    await (await watch.member(group, topic, Got())).stop()  # mqadmin looks for the retry topic, which a member makes
    watch.follow(group, topic)
    for number in range(2):
        await watch.send(topic, *range(5), queue=number)
        await watch.commit(group, topic, 2 + number, number)
    seen = await watch.look(group)
    looked = time.time()
    rows = {row.queue: row for row in seen.queues}
    told = await watch.told(group)
    agree(rows, told)
    assert (seen.messages, seen.members) == (5, 0)
    for number in range(2):
        queue = MessageQueue(topic, "broker-a", number)
        stored = [message.store_timestamp / 1000 for message in await watch.found(topic, 5, number)]
        row = rows[queue]
        assert row.seconds is not None
        assert looked - row.seconds == pytest.approx(stored[2 + number], abs=1.0), "the age of the next message"
        # mqadmin has no age of the next message, but the time of the last one that was consumed.
        assert told[queue].last == f"{datetime.datetime.fromtimestamp(int(stored[1 + number])):%Y-%m-%d %H:%M:%S}"  # noqa: DTZ006
    assert seen.seconds == max(row.seconds or 0.0 for row in rows.values())
    # While the offset stands still the message grows older, and nobody has to be asked for its age.
    again = await watch.look(group)
    assert again.seconds is not None
    assert seen.seconds is not None
    assert again.seconds - seen.seconds == pytest.approx(again.observed_at - seen.observed_at, abs=1.0)


async def test_a_group_that_never_consumed(watch: Watch, make_topic: Topics, make_group: Callable[..., str]) -> None:
    topic = make_topic(queues=2)
    await watch.send(topic, *range(6), queue=0)
    later, first = make_group(), make_group()
    watch.follow(later, topic)
    watch.follow(first, topic, where=ConsumeFromWhere.FIRST_OFFSET)
    seen = await watch.look(later)
    assert await watch.told(later) == {}, "mqadmin has nothing to say of it"
    assert (seen.messages, seen.seconds, seen.unknown, seen.at_least) == (None, None, 2, 0)
    assert [(row.consumer_offset, row.lag, row.max_offset) for row in seen.queues] == [(None, None, 6), (None, None, 0)]
    seen = await watch.look(first)
    assert (seen.messages, seen.unknown) == (6, 0), "it will begin at the beginning, so everything waits for it"
    oldest = (await watch.found(topic, 6))[0].store_timestamp / 1000
    assert seen.seconds is not None
    assert seen.observed_at - seen.seconds == pytest.approx(oldest, abs=1.5)


async def test_what_failed_and_what_failed_for_good(watch: Watch, make_topic: Topics, group: str) -> None:
    topic = make_topic(queues=1)
    watch.follow(group, topic, where=ConsumeFromWhere.FIRST_OFFSET)
    await watch.send(topic, "good", "bad", "bad", "worse")

    def answer(message: object) -> object:
        body = message.body  # type: ignore[attr-defined]
        return None if body == b"good" else RETRY if body == b"bad" else Retry(level=-1)

    member = await watch.member(group, topic, Got(answer), persist_interval=0.1)
    await watch.committed_everywhere(group, topic, 4, 1)
    await member.stop()
    retry = f"%RETRY%{group}"

    async def is_back() -> bool:
        return len(await watch.read(retry)) == 2  # after the broker's own delay, ten seconds

    await until(is_back, "both are in the retry topic")
    seen = await watch.look(group)
    assert (seen.messages, seen.retry, seen.dlq) == (0, 2, 1)
    told = await watch.told(group)
    agree({row.queue: row for row in seen.queues}, told)
    retried = {queue: row for queue, row in told.items() if queue.topic == retry}
    assert sum(row.diff for row in retried.values()) == 2, "mqadmin counts them together with the rest"


async def test_the_status_and_the_commands_tell_the_same(watch: Watch, make_topic: Topics, group: str) -> None:
    """What the operator writes to a group's status is what the monitor sees."""
    topic, retry, ns = make_topic(queues=3), f"%RETRY%{group}", ("--name-server", watch.cluster.name_server)
    created = await asyncio.to_thread(rocketfleet, "topic", "create", retry, "--queues", "1", *ns)
    assert created.returncode == 0, created.stderr
    watch.follow(group, topic)
    for number, count in enumerate((5, 3, 4)):
        await watch.send(topic, *range(count), queue=number)
    await watch.send(retry, *range(4), queue=0)
    await watch.commit(group, topic, 2, 0)
    await watch.commit(group, topic, 4, 2)
    await watch.commit(group, retry, 1)

    seen = await watch.look(group)
    assert (seen.messages, seen.retry, seen.unknown) == (3 + 3 + 0, 3, 0)
    assert [(row.consumer_offset, row.lag) for row in seen.queues] == [(2, 3), (None, 3), (4, 0)], "a new queue"

    lag = await asyncio.to_thread(answer, "lag", group, *ns)
    assert (lag["lag"]["lag"], lag["retry"]["lag"]) == (seen.messages, seen.retry)
    told = await asyncio.to_thread(answer, "group", "status", group, *ns)
    assert (told["lag"], told["retry_lag"]) == (seen.messages, seen.retry)
    rows = {
        (row.queue.topic, row.queue.queue_id): (row.consumer_offset, row.max_offset, row.lag) for row in seen.queues
    }
    rows[retry, 0] = 1, 4, 3
    assert {
        (row["topic"], row["queue"]): (row["committed"], row["max_offset"], row["lag"]) for row in lag["queues"]
    } == rows
    assert {
        (row["topic"], row["queue"]): (row["consumer_offset"], row["broker_offset"], row["lag"])
        for row in told["queues"]
    } == rows


async def test_a_broadcasting_group_is_its_members(
    watch: Watch, make_topic: Topics, group: str, tmp_path: Path
) -> None:
    topic = make_topic(queues=2)
    watch.follow(group, topic, broadcast=True)
    for queue in range(2):
        await watch.fill(topic, queue, 5)
    seen = await watch.look(group)
    assert (seen.messages, seen.members, seen.unknown) == (None, 0, 2), "nobody knows where absent members are"
    quick, slow = Got(), Stop(after=0)

    async def member(name: str, handler: Callable[..., object]) -> None:
        await watch.member(
            group, topic, handler, client={"client_id": f"{name}@{group}"}, consumer={"offset_directory": tmp_path},
            message_model=MessageModel.BROADCASTING, consume_thread_min=1, consume_thread_max=1,
        )  # fmt: skip

    try:
        await member("quick", quick)
        await member("slow", slow)
        await until(lambda: len(quick) == 10 and slow.hung > 0)

        async def is_seen() -> bool:
            watch.monitor.forget(group)  # they are not asked often, unless one begins anew
            watch.follow(group, topic, broadcast=True)
            return (await watch.look(group)).messages == 10

        await until(is_seen, "the slow member has everything before it")
        latest = watch.monitor.latest(group)
        assert latest is not None
        by_member = {
            name: [(row.queue.queue_id, row.consumer_offset, row.max_offset, row.lag) for row in latest.queues
                   if row.owner == f"{name}@{group}"]
            for name in ("quick", "slow")
        }  # fmt: skip
        assert by_member == {"quick": [(0, 5, 5, 0), (1, 5, 5, 0)], "slow": [(0, 0, 5, 5), (1, 0, 5, 5)]}
        assert (latest.members, latest.unknown) == (2, 0)
        oldest = min([(await watch.found(topic, 5, number))[0].store_timestamp for number in range(2)]) / 1000
        assert latest.seconds is not None
        assert latest.observed_at - latest.seconds == pytest.approx(oldest, abs=1.5)
        assert await watch.told(group) == {}, "mqadmin sees nothing of a broadcasting group"
        status = await asyncio.to_thread(watch.cluster.admin, "consumerStatus", "-g", group, "-i", f"slow@{group}")
        assert topic in status, "the same that mqadmin shows of one member"
    finally:
        slow.free.set()


async def test_deleted_messages_are_no_lag(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(
        properties=(
            ("mappedFileSizeCommitLog", "1048576"), ("fileReservedTime", "0"),
            ("cleanResourceInterval", "500"), ("deleteCommitLogFilesInterval", "10"), ("maxMessageSize", "524288"),
            ("destroyMapedFileIntervalForcibly", "1000"), ("deleteWhen", ";".join(f"{hour:02d}" for hour in range(24))),
        )
    )  # fmt: skip
    topic, group = cluster.create_topic(queues=1), cluster.create_group()
    watch = Watch(cluster)
    await watch.open()
    try:
        queue = MessageQueue(topic, "broker-a", 0)
        for _ in range(40):
            await watch.producer.send(Message(topic, os.urandom(100_000)), queue=queue)
        await (await watch.member(group, topic, Got())).stop()
        await watch.commit(group, topic, 3)
        watch.follow(group, topic)

        # A broker looks for old files for the first time a minute after its start.
        async with asyncio.timeout(180):
            while await broker_offsets.min_offset(watch.client.remoting, watch.address, queue) <= 10:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        ends: tuple[int | None, int | None] = (-1, -1)
        while True:  # until nothing more is deleted while we look
            (row,) = (await watch.look(group)).queues
            told = (await watch.told(group))[queue]
            if ends == (row.min_offset, row.max_offset):
                break
            ends = row.min_offset, row.max_offset
        assert row.min_offset is not None
        assert row.min_offset > 10
        assert (row.max_offset, row.consumer_offset) == (told.end, told.offset) == (40, 3)
        assert row.lag == 40 - row.min_offset, "what is still there"
        assert told.diff == 37, "mqadmin counts what is gone"
        stored = await _store_time(watch, queue, row.min_offset)
        assert row.seconds is not None
        assert row.observed_at - row.seconds == pytest.approx(stored, abs=1.5), "the oldest that is there comes next"
    finally:
        await watch.close()


async def _store_time(watch: Watch, queue: MessageQueue, offset: int) -> float:
    from rocketfleet.client.requests import broker_messages

    stored = await broker_messages.store_time(watch.client.remoting, watch.address, queue, offset)
    assert stored is not None
    return stored / 1000
