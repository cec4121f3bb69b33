"""Small messages from many places, put together into batches on the way.

    python accumulate.py [TOPIC]

Each `send` still gets its own result; it only waits up to 10 ms for company.
"""

import asyncio
import os
import sys
import time

from rocketfleet import BatchLimits, ClientConfig, Message, Producer, ProducerOptions

NAME_SERVERS = os.environ.get("ROCKETFLEET_NAME_SERVERS", "127.0.0.1:9876")
TOPIC = sys.argv[1] if len(sys.argv) > 1 else "orders"
COUNT = 2000


async def send_all(options: ProducerOptions) -> float:
    """Send everything at once; returns the messages per second."""
    async with Producer(ClientConfig(NAME_SERVERS), "example-accumulate", options) as producer:
        await producer.queues(TOPIC)  # so that the first measurement does not pay for finding the way
        began = time.perf_counter()
        await asyncio.gather(*(producer.send(Message(TOPIC, b"small %d" % i)) for i in range(COUNT)))
        return COUNT / (time.perf_counter() - began)


async def main() -> None:
    patience = 30.0
    singly = await send_all(ProducerOptions(send_timeout=patience))
    together = await send_all(ProducerOptions(send_timeout=patience, batching=BatchLimits(max_delay=0.010)))
    print(f"singly {singly:,.0f} a second, accumulated {together:,.0f} a second")


if __name__ == "__main__":
    asyncio.run(main())
