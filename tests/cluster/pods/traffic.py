"""The traffic: numbered messages with a key each, at a steady pace, until SIGTERM.

What the broker has acknowledged is recorded as `sent`. A send that failed may have been stored all the same: that is
recorded as `unsure`, and the same message is sent again, so that nothing is missing and the order of a key holds.
"""

import asyncio
import itertools
import os
import signal

from tests.cluster.pods.handler import note

from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError, SystemBusy
from rocketfleet.producer import Producer
from rocketfleet.wire.message import Message

KEYS = 32


async def send(producer: Producer, topic: str, one: str, key: str) -> None:
    while True:
        try:
            await producer.send(Message(topic, one.encode()), sharding_key=key)
        except SystemBusy:
            await asyncio.sleep(0.1)
        except (RocketMQError, OSError) as error:
            await asyncio.to_thread(note, "unsure", id=one, error=str(error)[:200])
            await asyncio.sleep(0.5)
        else:
            await asyncio.to_thread(note, "sent", id=one)
            return


async def main() -> None:
    topic, rate = os.environ["TOPIC"], float(os.environ.get("RATE", "100"))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    numbers = [0] * KEYS
    async with Producer(ClientConfig(os.environ["ROCKETFLEET_NAME_SERVERS"]), group=f"{topic}-traffic") as producer:
        for key in itertools.cycle(range(KEYS)):
            if stop.is_set():
                break
            await send(producer, topic, f"k{key}:{numbers[key]}", f"k{key}")
            numbers[key] += 1
            await asyncio.sleep(1 / rate)
    note("end", count=sum(numbers))


if __name__ == "__main__":
    asyncio.run(main())
