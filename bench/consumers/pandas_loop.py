"""What one would write without Spark: pull a topic in one process, a row per message, into pandas. Prints JSON.

Arguments: name server, topic, how many messages it has.
"""

import asyncio
import json
import sys
import time

import pandas as pd

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.requests import broker_offsets
from rocketfleet.client.requests.broker_messages import pull, pull_request
from rocketfleet.wire.queue import MessageQueue

COLUMNS = ["topic", "broker", "queueId", "queueOffset", "body", "tags", "keys", "bornTime", "storeTime", "msgId"]


async def read(client: Client, queue: MessageQueue) -> list[tuple[object, ...]]:
    """All messages of a queue as rows."""
    address = client.master(queue.broker)
    rows: list[tuple[object, ...]] = []
    offset, end = 0, await broker_offsets.max_offset(client.remoting, address, queue)
    while offset < end:
        command = pull_request("bench-pandas", queue, offset, sys_flag=4, subscription="*")
        answer = await pull(client.remoting, address, command, 10.0)
        rows += [
            (
                one.topic,
                one.broker,
                one.queue_id,
                one.queue_offset,
                one.body,
                one.tags,
                " ".join(one.keys),
                one.born_timestamp,
                one.store_timestamp,
                one.msg_id,
            )
            for one in answer.messages(queue.broker)
        ]
        offset = answer.next_begin_offset
    return rows


async def main() -> None:
    name_server, topic, _ = sys.argv[1:4]
    async with Client(ClientConfig(name_server)) as client:
        queues = await client.subscribe_queues(topic)
        started = time.perf_counter()
        parts = await asyncio.gather(*(read(client, queue) for queue in queues))
        frame = pd.DataFrame([row for part in parts for row in part], columns=COLUMNS)
        result = {"messages": len(frame), "bytes": int(frame["body"].map(len).sum())}
        seconds = time.perf_counter() - started
    print(json.dumps({**result, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
