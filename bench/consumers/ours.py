"""Our consumer with a handler that does nothing, on the full product path. Prints one line of JSON.

Arguments: name server, group, topic, how many messages, Concurrent or Orderly.
"""

import asyncio
import json
import sys
import time

from rocketfleet.client.config import ClientConfig
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.message import ReceivedMessage


def handle(message: ReceivedMessage) -> None:
    """Nothing."""


async def main() -> None:
    name_server, group, topic, count, mode = sys.argv[1:6]
    sys.setswitchinterval(0.0005)  # as `rocketfleet worker` does
    settings = ConsumerSettings(
        group=group,
        subscriptions=(Subscription(topic),),
        consume_from_where=ConsumeFromWhere.FIRST_OFFSET,
        consume_mode=ConsumeMode(mode),
    )
    consumer = Consumer(ClientConfig(name_server), settings, handle)
    await consumer.start()
    tally = consumer.tally
    while not tally.handled:  # noqa: ASYNC110 - to be told of each message would be measured too
        await asyncio.sleep(0.001)
    before, started, cpu = tally.handled, time.perf_counter(), time.process_time()
    while tally.handled < int(count):  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(json.dumps({"messages": tally.handled - before, "seconds": seconds, "cpu": cpu}), flush=True)
    await consumer.stop()


if __name__ == "__main__":
    asyncio.run(main())
