"""Members that were killed while their broker stood still, and that the broker takes for alive.

Their last heartbeats are read after their connections are gone: the broker then lists members whose connections nobody
will ever see end, and misses them only after two minutes. Whoever watches such a ghost has to take it for dead: the
broker says that it cannot even send to it.
"""

import contextlib
import socket

from tests.broker.cluster import Cluster
from tests.broker.consumer.scene import Got, Scene, of_topic, until
from tests.broker.handover.faults import for_a_while

from rocketfleet.client.requests import broker_members
from rocketfleet.wire.bodies import ConsumerData, HeartbeatData
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import encode, request

GHOSTS = frozenset(f"ghost-{number}" for number in range(10))  # of some the broker does see the end in time
LOCKS_LIVE = 9.0  # what the member believes: it looks after others every third of it


async def test_members_whose_last_heartbeats_were_read_too_late_are_taken_care_of(
    stage: Scene, broker: Cluster, topic: str, group: str
) -> None:
    member = await stage.member(group, topic, Got(), lock_lives=LOCKS_LIVE, lock_interval=3.0, heartbeat_interval=3.0)
    await until(lambda: len(of_topic(member, topic)) == 8, "the only member owns all")
    await leave_ghosts(broker, group)

    async def listed() -> bool:
        return not GHOSTS.isdisjoint(await broker_members.consumer_ids(stage.client.remoting, stage.address, group))

    await until(listed, "the broker lists ghosts")
    await until(lambda: not GHOSTS.isdisjoint(member.rebalancer.members), "the member knows them: they have shares")
    await for_a_while(LOCKS_LIVE / 3)
    await until(lambda: len(of_topic(member, topic)) == 8, "the member takes care of all queues")
    assert await listed()


async def leave_ghosts(broker: Cluster, group: str) -> None:
    """Clients that join a group at a broker that stands still, and die."""
    data = ConsumerData(
        group_name=group,
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        subscription_data_set=(),
    )
    host, _, port = broker.broker_address.rpartition(":")
    broker.pause()
    try:
        await for_a_while(0.3)  # all of its threads stand still
        with contextlib.ExitStack() as open_ones:
            for ghost in sorted(GHOSTS):
                body = HeartbeatData(client_id=ghost, consumer_data_set=(data,)).encode()
                connection = open_ones.enter_context(socket.create_connection((host, int(port))))
                connection.sendall(encode(request(RequestCode.HEART_BEAT, body=body)))
        await for_a_while(0.3)
    finally:
        broker.resume()
