"""Handlers under test, for the tests of what tests them."""

import asyncio
import os
import time
from pathlib import Path

from rocketfleet import ReceivedMessage


def slowly(message: ReceivedMessage) -> None:
    time.sleep(0.05)


async def later(messages: list[ReceivedMessage]) -> None:
    await asyncio.sleep(0.02)


def counting(message: ReceivedMessage) -> None:
    """Does its work first, and dies before it has said so where it is told to."""
    with Path(os.environ["WORK"]).open("a") as work:
        work.write(message.body.decode() + "\n")
    time.sleep(0.02)


def ending(message: ReceivedMessage) -> None:
    os._exit(9)
