"""The smallest handler: one message at a time, printed.

    rocketfleet worker --path examples/handlers --handler print_messages:handle --group demo --topic orders

A handler that returns has handled its message. One that raises gets it again later.
"""

import sys

from rocketfleet import ReceivedMessage


def handle(message: ReceivedMessage) -> None:
    """Runs in one of the worker's threads."""
    text = message.body.decode("utf-8", "replace")
    sys.stdout.write(f"{message.topic}/{message.queue_id} @{message.queue_offset} {message.msg_id} {text}\n")
    sys.stdout.flush()
