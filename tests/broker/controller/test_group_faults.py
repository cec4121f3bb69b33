"""What goes wrong around a group: its controller killed, its broker away, a member killed."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.broker.cluster import Cluster
from tests.broker.controller.scene import GroupScene

from rocketfleet.api.status import ConditionType, Truth
from rocketfleet.client.errors import RocketMQError
from rocketfleet.client.requests import broker_offsets
from rocketfleet.client.requests.broker_messages import pull, pull_request
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.wire.queue import MessageQueue


async def test_a_controller_that_was_killed_in_the_middle_of_a_drain_is_continued_by_the_next(
    broker: Cluster, topic: str, tmp_path: Path
) -> None:
    async with GroupScene(broker, topic, tmp_path, consumeMode="Orderly") as scene:
        scene.environment["ROCKETFLEET_DEMO_HANDLER_SECONDS"] = "0.5"  # so that there is a middle
        scene.apply(replicas=3)
        await scene.ready(3)
        scene.begin_traffic()
        await scene.some_traffic()
        pids = {member.process.identity.pid for member in scene.members if member.process is not None}
        scene.apply(replicas=1)
        await scene.until(lambda: sum(member.drain is not None for member in scene.members) == 2, "two are marked")
        await scene.stop_controller()

        await scene.start_controller()
        assert {member.process.identity.pid for member in scene.members if member.process is not None} <= pids
        assert sum(member.drain is not None for member in scene.members) == 2
        scene.apply(replicas=1)
        await scene.ready(1)
        assert scene.reasons().count(EventReason.DRAINED) == 2
        await scene.end_traffic()
        # The handler is slow: what waits is left to members that are quicker.
        scene.environment["ROCKETFLEET_DEMO_HANDLER_SECONDS"] = "0.001"
        scene.apply(replicas=2)
        verdict = await scene.verdict()
        assert verdict.good, f"{verdict}\n{scene.describe()}"


async def test_a_broker_that_is_away_for_a_while_costs_no_member(broker: Cluster, topic: str, tmp_path: Path) -> None:
    async with GroupScene(broker, topic, tmp_path) as scene:
        scene.apply(replicas=2)
        await scene.ready(2)
        uids = {member.uid for member in scene.members}
        broker.pause()
        scene.run.wake(scene.key)
        await scene.until(lambda: scene.condition(ConditionType.BROKER_REACHABLE) is Truth.FALSE, "it is said")
        assert scene.reasons().count(EventReason.UNREACHABLE) == 1
        broker.resume()
        await scene.until(lambda: scene.condition(ConditionType.BROKER_REACHABLE) is Truth.TRUE, "it is back")
        scene.begin_traffic()
        await scene.some_traffic()
        assert (await scene.verdict()).good
        assert {member.uid for member in scene.members} == uids


async def test_a_master_that_is_away_is_told_and_the_group_goes_on_from_the_slave(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(brokers=1, slave=True, properties=(("slaveReadEnable", "true"),))
    topic = cluster.create_topic(queues=4)
    async with GroupScene(cluster, topic, tmp_path) as scene:
        scene.environment["ROCKETFLEET_DEMO_HANDLER_SECONDS"] = "1"  # so that something is left for the slave
        scene.apply(replicas=2)
        await scene.ready(2)
        slave = cluster.address_of("broker-a-slave")

        async def slave_knows() -> bool:
            """It has messages at once, topics and groups only every ten seconds, once it knows its master."""
            request = pull_request(scene.name, MessageQueue(topic, "broker-a", 0), 0, sys_flag=4, subscription="*")
            try:
                await pull(scene.client.remoting, slave, request)
            except RocketMQError:
                return False
            return True

        deadline = time.monotonic() + 150
        while not await slave_knows():
            assert time.monotonic() < deadline, "the slave does not know the group"
            await asyncio.sleep(0.5)
        uids = {member.uid for member in scene.members}
        scene.begin_traffic()
        await scene.some_traffic(300)
        await scene.end_traffic()
        queues = await scene.client.subscribe_queues(topic)

        async def ends(address: str) -> list[int]:
            return [await broker_offsets.max_offset(scene.client.remoting, address, queue) for queue in queues]

        while await ends(slave) != await ends(cluster.broker_address):
            assert time.monotonic() < deadline, "the slave does not get the messages"
            await asyncio.sleep(0.05)
        cluster.kill("broker-a")
        assert scene.judged().lost, "something is left for the slave"
        scene.run.wake(scene.key)
        await scene.until(lambda: not scene.judged().lost, "the slave serves the rest")

        def told() -> bool:
            conditions = {one.type: one for one in scene.status.conditions or ()}
            return conditions[ConditionType.BROKER_REACHABLE].reason == "MasterAway"

        await scene.until(told, "the condition says that the master is away", 90.0)
        await asyncio.to_thread(cluster.restart, "broker-a")
        reachable = ConditionType.BROKER_REACHABLE
        await scene.until(lambda: scene.condition(reachable) is Truth.TRUE, "the master is back", 90.0)
        assert scene.judged().good, f"{scene.judged()}\n{scene.describe()}"
        assert {member.uid for member in scene.members} == uids, "no member was replaced because of it"


async def test_a_member_that_was_killed_is_started_again_and_nothing_is_lost(
    broker: Cluster, topic: str, tmp_path: Path
) -> None:
    async with GroupScene(broker, topic, tmp_path, consumeMode="Orderly") as scene:
        scene.begin_traffic()
        scene.apply(replicas=2)
        await scene.ready(2)
        await scene.some_traffic()
        victim = scene.members[1]
        assert victim.process is not None
        killed, uid = victim.process.identity.pid, victim.uid
        os.kill(killed, signal.SIGKILL)
        at = time.time()
        await scene.until(lambda: victim.started > at and victim.ready, "it is back")
        assert (victim.uid, victim.restarts.total) == (uid, 1)
        await scene.ready(2)
        await scene.some_traffic()
        verdict = await scene.verdict()
        assert not verdict.lost, scene.describe()


async def test_locks_of_a_member_that_is_gone_are_free_at_once(broker: Cluster, topic: str, tmp_path: Path) -> None:
    async with GroupScene(broker, topic, tmp_path, consumeMode="Orderly") as scene:
        scene.apply(replicas=2)
        await scene.ready(2)
        victim = scene.members[1]
        seen = [one.pod for one in await scene.run.backend.look(scene.run.backend.objects.get(scene.key).group)]  # type: ignore[union-attr]
        pod = next(pod for pod in seen if pod.uid == victim.uid)
        await scene.run.backend.delete_pod(scene.run.backend.objects.get(scene.key).group, pod, force=True)  # type: ignore[union-attr]
        await scene.until(lambda: EventReason.LOCKS_RELEASED in scene.reasons(), "its locks are released")
        await scene.ready(2)
        assert victim.uid not in {member.uid for member in scene.members}
