"""What a user of rocketmq-client-python writes, with one thing left open: the package it imports from.

    python sample_producer.py rocketmq             NAME_SERVER TOPIC    the original, version 0.4.4
    python sample_producer.py rocketfleet.facade   NAME_SERVER TOPIC    ours

It uses only what both have, and prints what it saw as JSON. The test runs it with both and compares. With `lost` as a
last argument it only tries to send one message: all producers of a process share the original's first name server, so
what happens without one needs a process of its own.
"""

import importlib
import json
import sys
import threading
from typing import Any

PACKAGE, NAME_SERVER, TOPIC = sys.argv[1:4]

client: Any = importlib.import_module(f"{PACKAGE}.client")
Producer, Message = client.Producer, client.Message

seen: dict[str, Any] = {}


def message(body: Any, topic: str = TOPIC) -> Any:
    made = Message(topic)
    made.set_body(body)
    return made


def status_of(result: Any) -> list[Any]:
    """What of a result does not change from run to run."""
    return [type(result).__name__, str(result.status), int(result.status), len(result.msg_id) > 20, result.offset >= 0]


def failure_of(call: Any, *arguments: Any) -> list[str]:
    """The names of the classes that an `except` clause could name."""
    try:
        call(*arguments)
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith(PACKAGE.partition(".")[0])]
    return ["nothing was raised"]


def started(group: str, **settings: Any) -> Any:
    producer = Producer(group, **settings)
    producer.set_namesrv_addr(NAME_SERVER)
    if "timeout" not in settings:
        producer.set_timeout(20_000)  # for a busy machine
    producer.start()
    return producer


def send_plainly(producer: Any) -> None:
    full = message("grün und 订单")
    full.set_keys("key-1 key-2")
    full.set_tags("tag-a")
    full.set_property("shop", "köln")
    seen["text"] = status_of(producer.send_sync(full))
    as_bytes = message(b"\x01\xff\xfe bytes")
    as_bytes.set_keys(b"key-3")
    as_bytes.set_tags(b"tag-b")
    as_bytes.set_property(b"shop", b"bonn")
    as_bytes.set_property("KEYS", "key-4")
    seen["bytes"] = status_of(producer.send_sync(as_bytes))
    seen["large"] = status_of(producer.send_sync(message("0123456789" * 2000)))
    twice = message("twice")
    seen["one message twice has two ids"] = producer.send_sync(twice).msg_id != producer.send_sync(twice).msg_id
    producer.send_oneway(message("one way"))
    delayed = message("delayed")
    delayed.set_delay_time_level(1)
    seen["delayed"] = status_of(producer.send_sync(delayed))


def send_in_order(producer: Any) -> None:
    seen["ordered"] = [status_of(producer.send_orderly(message(f"ordered {i}"), i % 5)) for i in range(20)]
    producer.send_oneway_orderly(message("one way, ordered"), 21)
    seen["own selector"] = status_of(
        producer.send_orderly(message("to the last queue"), 0, 3, lambda queues, msg, arg: queues - 1)
    )
    asked: list[Any] = []

    def by_content(queues: int, msg: Any, arg: Any) -> int:
        asked.extend([queues, msg.topic == TOPIC, msg.tags, msg.body, msg.get_property("absent")])
        return 2

    tagged = message("to queue 2")
    tagged.set_tags("two")
    producer.send_orderly(tagged, 7, queue_selector=by_content)
    seen["what a selector gets"] = [repr(value) for value in asked]


def send_asynchronously(producer: Any) -> None:
    answers: list[Any] = []
    all_there = threading.Semaphore(0)

    def on_success(result: Any) -> None:
        answers.append(status_of(result))
        all_there.release()

    for i in range(5):
        producer.send_async(message(f"async {i}"), on_success, None)
    for _ in range(5):
        all_there.acquire(timeout=20)
    seen["async"] = answers


def send_from_threads(producer: Any) -> None:
    statuses: list[str] = []

    def send(name: int) -> None:
        statuses.extend([str(producer.send_sync(message(f"thread {name} {i}")).status) for i in range(5)])

    threads = [threading.Thread(target=send, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen["threads"] = statuses


def fail(producer: Any) -> None:
    seen["no body"] = failure_of(producer.send_sync, Message(TOPIC))
    seen["no topic"] = failure_of(producer.send_sync, message("x", ""))
    seen["topic that cannot be"] = failure_of(producer.send_sync, message("x", "no such topic!"))
    seen["topic that is not there"] = failure_of(producer.send_sync, message("x", f"{TOPIC}-absent"))
    seen["one way without a body"] = failure_of(producer.send_oneway, Message(TOPIC))
    seen["ordered without a body"] = failure_of(producer.send_orderly, Message(TOPIC), 1)
    seen["text that is a number"] = failure_of(Message(TOPIC).set_keys, 1)
    seen["group that is None"] = failure_of(Producer, None)

    small = started(f"{TOPIC}-small", max_message_size=100, timeout=20_000, compress_level=1)
    seen["small enough"] = status_of(small.send_sync(message("x" * 100)))
    seen["too large"] = failure_of(small.send_sync, message("x" * 101))
    small.shutdown()


def main() -> None:
    producer = started(f"{TOPIC}-group")
    if sys.argv[4:] == ["lost"]:
        seen["no name server"] = failure_of(producer.send_sync, message("x"))
        producer.shutdown()
        print(json.dumps(seen))
        return
    send_plainly(producer)
    send_in_order(producer)
    send_asynchronously(producer)
    send_from_threads(producer)
    fail(producer)
    producer.shutdown()
    seen["after shutdown"] = failure_of(producer.send_sync, message("late"))
    in_a_block = Producer(f"{TOPIC}-with")
    in_a_block.set_namesrv_addr(NAME_SERVER)
    with in_a_block:
        seen["in a block"] = status_of(in_a_block.send_sync(message("in a block")))
    print(json.dumps(seen, indent=1))


if __name__ == "__main__":
    main()
