"""The test groups' handler: takes a moment, and has the recorder keep when it begins a message and when it ends one.

It returns only when the record is kept, so what is committed was recorded. A handler that was killed leaves a `begin`
without its `finish`.
"""

import json
import os
import socket
import threading
import time

from rocketfleet.wire.message import ReceivedMessage

SECONDS = float(os.environ.get("HANDLER_SECONDS", "0.02"))
POD = os.environ.get("POD_NAME", "?")
_own = threading.local()


def note(event: str, **facts: object) -> None:
    """Tell the recorder, and wait until it is kept."""
    scene, address = os.environ["SCENE"], os.environ["RECORDER"]
    connection = getattr(_own, "connection", None)
    if connection is None:
        host, _, port = address.partition(":")
        connection = _own.connection = socket.create_connection((host, int(port)), timeout=30)
    try:
        connection.sendall(f"{scene} {json.dumps({'event': event, 'pod': POD, **facts})}\n".encode())
        if connection.recv(1) != b"\n":
            raise ConnectionError("the recorder hung up")
    except OSError:
        _own.connection = None
        raise


def handle(message: ReceivedMessage) -> None:
    facts = {"queue": str(message.queue), "offset": message.queue_offset, "id": message.body.decode()}
    note("begin", **facts)
    time.sleep(SECONDS)
    note("finish", **facts)
