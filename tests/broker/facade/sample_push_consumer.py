"""What a user of rocketmq-client-python writes to consume, with one thing left open: the package it imports from.

    python sample_push_consumer.py rocketmq|rocketfleet.facade NAME_SERVER TOPIC GROUP ORDERLY

It consumes what it sends, by tag, and prints what its callback saw as JSON.
"""

import importlib
import json
import sys
import threading
from typing import Any

PACKAGE, NAME_SERVER, TOPIC, GROUP, ORDERLY = sys.argv[1:6]
MESSAGES = 20

client: Any = importlib.import_module(f"{PACKAGE}.client")

seen: dict[str, Any] = {}
lock = threading.Lock()
done = threading.Event()


def callback(message: Any) -> None:
    body = message.body.decode()
    with lock:
        seen[body] = [message.tags.decode(), message.keys.decode(), message.topic, message.reconsume_times]
        if len(seen) == MESSAGES:
            done.set()


def text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def send() -> None:
    producer = client.Producer(f"{GROUP}-producer")
    producer.set_namesrv_addr(NAME_SERVER)
    producer.start()
    for number in range(MESSAGES):
        message = client.Message(TOPIC)
        message.set_body(f"body-{number}")
        message.set_tags("wanted")
        message.set_keys(f"key-{number}")
        producer.send_sync(message)
    other = client.Message(TOPIC)
    other.set_body("not for us")
    other.set_tags("other")
    producer.send_sync(other)
    producer.shutdown()


def main() -> None:
    consumer = client.PushConsumer(GROUP, ORDERLY == "True")
    consumer.set_namesrv_addr(NAME_SERVER)
    consumer.subscribe(TOPIC, callback, "wanted")
    consumer.start()
    send()
    assert done.wait(90), f"only {len(seen)} messages came"
    consumer.shutdown()
    result = {
        "bodies": sorted(seen),
        "tags": sorted({tags for tags, _, _, _ in seen.values()}),
        "keys": sorted(keys for _, keys, _, _ in seen.values()),
        "topics": sorted({text(topic) == TOPIC for _, _, topic, _ in seen.values()}),
        "times": sorted({times for _, _, _, times in seen.values()}),
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
