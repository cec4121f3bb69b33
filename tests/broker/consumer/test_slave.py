"""A slave that the broker suggests: it is pulled from, never told offsets, and left when it dies."""

from collections.abc import Callable

from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import Got, Scene, until

from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command


async def test_a_suggested_slave_serves_pulls_and_the_master_keeps_offsets(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(brokers=1, slave=True, properties=(("slaveReadEnable", "true"),))
    slave = cluster.address_of("broker-a-slave")
    topic, group = cluster.create_topic(queues=1), cluster.create_group(brokerId=1)
    scene = Scene(cluster)
    await scene.open()
    try:
        member = scene.made(group, topic, got := Got())
        calls: list[tuple[str, Command]] = []
        call = member._client.remoting.call

        async def listen(address: str, command: Command, timeout: float | None = None) -> Command:
            answer = await call(address, command, timeout)
            calls.append((address, command))
            return answer

        member._client.remoting.call = listen  # type: ignore[method-assign]  # listening in
        await member.start()
        sent = 0

        def from_slave() -> list[Command]:
            """The pulls that the slave has answered."""
            return [
                command
                for address, command in calls
                if address == slave and command.code == RequestCode.PULL_MESSAGE and command.fields["topic"] == topic
            ]

        async def send_on() -> bool:
            nonlocal sent
            await scene.send(topic, sent)
            sent += 1
            return len(from_slave()) >= 5

        await until(send_on, "the slave answers pulls")  # it knows topic and group only after a while
        await until(lambda: len(set(got.bodies)) == sent)
        assert sorted(map(int, got.bodies)) == list(range(sent)), "none twice, none missing"
        assert all(int(command.fields["sysFlag"]) & 1 == 0 for command in from_slave())
        updates = {address for address, command in calls if command.code == RequestCode.UPDATE_CONSUMER_OFFSET}
        assert updates == {cluster.broker_address}

        cluster.kill("broker-a-slave")
        await scene.send(topic, *range(sent, sent + 10))
        await until(lambda: len(got) == sent + 10, "the master serves on")

        async def committed() -> bool:
            return await scene.committed(group, topic) == sent + 10

        await until(committed)
    finally:
        await scene.close()
