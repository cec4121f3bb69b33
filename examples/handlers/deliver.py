"""An asynchronous handler: passes each message on over the network, many at a time on one thread.

    rocketfleet worker --path examples/handlers --handler deliver:deliver --threads 200 --group demo --topic orders

Writes the body as a line to DELIVER_TO (host:port) and expects "ok" back. `--threads` is how many are under way at
once. An asynchronous handler shares its event loop with the worker itself: it must wait with `await`, never with
time.sleep, or nothing else is done meanwhile, and /healthz says so.
"""

import asyncio
import os

from rocketfleet import ReceivedMessage, Retry

LATER = Retry(level=5)  # the broker's fifth delay: a minute, unless it was configured otherwise


async def deliver(message: ReceivedMessage) -> Retry | None:
    """None is success; a Retry chooses how long to wait before the message comes again."""
    host, _, port = os.environ["DELIVER_TO"].rpartition(":")
    try:
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                writer.write(message.body + b"\n")
                answer = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return LATER
    return None if answer.strip() == b"ok" else LATER
