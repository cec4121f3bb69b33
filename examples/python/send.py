"""Send with asyncio: singly, many at once, in a batch, in order, delayed, and without an answer.

python send.py [TOPIC]            name servers from ROCKETFLEET_NAME_SERVERS, else 127.0.0.1:9876
"""

import asyncio
import os
import sys

from rocketfleet import ClientConfig, Message, Producer

NAME_SERVERS = os.environ.get("ROCKETFLEET_NAME_SERVERS", "127.0.0.1:9876")
TOPIC = sys.argv[1] if len(sys.argv) > 1 else "orders"


async def main() -> None:
    async with Producer(ClientConfig(NAME_SERVERS), group="example-send") as producer:
        # One message: stored when this returns.
        result = await producer.send(Message(TOPIC, b"one", tags="created", keys="order-1"))
        print("one", result.status.name, result.queue, result.queue_offset, result.msg_id)

        # Many at once: nothing waits for anything else.
        results = await asyncio.gather(*(producer.send(Message(TOPIC, b"many %d" % i)) for i in range(100)))
        print("many", len(results), "messages in", len({result.queue for result in results}), "queues")

        # A batch: one request, one queue, all or nothing.
        batch = await producer.send_batch([Message(TOPIC, b"batch %d" % i) for i in range(10)])
        print("batch", len(batch), "messages from offset", batch.queue_offset, "of", batch.queue)

        # In order: what has the same sharding key goes to the same queue, one after the other.
        for step in (b"created", b"paid", b"shipped"):
            await producer.send(Message(TOPIC, step), sharding_key="order-7")
        print("order-7 in order")

        # Later: by one of the broker's levels (2 is 5 seconds), or by a time of one's own.
        await producer.send(Message(TOPIC, b"by level", delay_level=2))
        await producer.send(Message(TOPIC, b"in two seconds", delay_seconds=2))
        print("two delayed")

        # Without an answer: the quickest, and nobody knows whether it was stored.
        await producer.send_oneway(Message(TOPIC, b"one way"))


if __name__ == "__main__":
    asyncio.run(main())
