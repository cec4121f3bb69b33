"""What the broker says of a group, as one JSON object: members, where each queue stands, and what is still locked.

A queue is locked by somebody else when a stranger asks for its lock and does not get it; what the stranger got, it
gives back.
"""

import asyncio
import json
import sys

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.requests import broker_locks, broker_members, broker_offsets

STRANGER = "e2e-stranger"


async def facts(name_servers: str, topic: str, group: str) -> dict[str, object]:
    async with Client(ClientConfig(name_servers)) as client:
        queues = await client.subscribe_queues(topic)
        members: set[str] = set()
        places = {}
        locked: list[str] = []
        for queue in sorted(queues):
            address = client.master(queue.broker)
            members |= set(await broker_members.consumer_ids(client.remoting, address, group))
            committed = await broker_offsets.query_offset(
                client.remoting, address, group, queue, zero_if_not_found=False
            )
            end = await broker_offsets.max_offset(client.remoting, address, queue)
            places[str(queue)] = {"committed": committed, "end": end}
            got = await broker_locks.lock(client.remoting, address, group, STRANGER, [queue])
            if queue in got:
                await broker_locks.unlock(client.remoting, address, group, STRANGER, [queue])
            else:
                locked.append(str(queue))
        return {"members": sorted(members), "queues": places, "locked": locked}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(facts(*sys.argv[1:4]))))
