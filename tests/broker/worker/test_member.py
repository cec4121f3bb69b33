"""A member within the test's own process, where its tasks can be tampered with."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.broker.cluster import Cluster
from tests.broker.worker.conftest import Send

from rocketfleet.allocation.strategies import build
from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.handler import inspect_handler
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.control import exit_codes
from rocketfleet.wire.enums import ConsumeFromWhere, MessageModel
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.worker import vitals
from rocketfleet.worker.member import MemberSpec, WorkerMember


class Living:
    """A member that runs for the length of a `with`."""

    def __init__(self, spec: MemberSpec) -> None:
        self.member = WorkerMember(spec)

    async def __aenter__(self) -> WorkerMember:
        self._task = asyncio.create_task(self.member.run())
        async with asyncio.timeout(60):
            while True:
                if not self.member.not_ready():
                    return self.member
                await asyncio.sleep(0.02)

    async def __aexit__(self, *_: object) -> None:
        self.member.stop()
        self.code = (await self._task).code


def spec(broker: Cluster, settings: ConsumerSettings, bodies: list[str], directory: Path) -> MemberSpec:
    def handle(message: ReceivedMessage) -> None:
        bodies.append(message.body.decode())

    return MemberSpec(
        config=ClientConfig((broker.name_server,), client_id=f"member@{os.getpid()}"),
        settings=settings,
        strategy=build("AVG"),
        handler=inspect_handler(handle),
        offset_directory=directory,
    )


def kept(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


@pytest.mark.parametrize("name", ["rebalance", "heartbeat", "commit", "pullers", "locks", "watch"])
async def test_a_task_that_has_ended_is_noticed(
    broker: Cluster, topic: str, group: str, tmp_path: Path, name: str
) -> None:
    living = Living(spec(broker, ConsumerSettings(group, (Subscription(topic),)), [], tmp_path))
    async with living as member:
        seen = member.pulse.last_beat
        async with asyncio.timeout(30):
            while True:
                if member.pulse.last_beat > seen + 2 * vitals.BEAT_SECONDS:
                    break
                await asyncio.sleep(0.02)
        assert member.problems() == []
        [task] = [task for task in asyncio.all_tasks() if task.get_name() == f"{name} {group}"]
        task.cancel()
        async with asyncio.timeout(30):
            while True:
                if member.problems():
                    break
                await asyncio.sleep(0.02)
        assert member.problems() == [f"the consumer's task '{name} {group}' has ended by itself"]
    assert living.code in (exit_codes.DRAINED, exit_codes.NOT_CONFIRMED)


async def test_broadcasting_keeps_its_offsets_here_and_is_ready_without_being_listed(
    broker: Cluster, topic: str, group: str, send: Send, tmp_path: Path
) -> None:
    settings = ConsumerSettings(
        group,
        (Subscription(topic),),
        message_model=MessageModel.BROADCASTING,
        consume_from_where=ConsumeFromWhere.FIRST_OFFSET,
    )
    bodies: list[str] = []
    await send(topic, [str(number) for number in range(20)])
    for _ in range(2):  # the second begins where the first has ended
        living = Living(spec(broker, settings, bodies, tmp_path))
        async with living as member:
            assert all(view.lease_seconds is None for view in member.queues())
            assert member.problems() == []
            async with asyncio.timeout(60):
                while True:
                    if len(bodies) == 20:
                        break
                    await asyncio.sleep(0.02)
        assert living.code == exit_codes.DRAINED
    assert sorted(bodies, key=int) == [str(number) for number in range(20)]
    assert kept(tmp_path) == [f"member@{os.getpid()}"]
