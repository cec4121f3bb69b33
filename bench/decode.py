"""How fast is a message decoded, against the plainest loop that does the same?

A consumer in Python is bound by what it does for each message, and decoding is the first of it. The measure is a loop
that anyone would write with the struct module: unpack the head, slice, decode, split the properties, keep it all. The
package's decoder must not be slower than that when everything is asked for, and much faster when it is not.

Both sides get what a connection hands over, a view of a response with 32 messages of 1 KiB, and run in turns within one
process; figures are medians over the rounds, in CPU time, so a busy machine disturbs them little. The messages are
those of the consumer benchmarks, sent in batches, with three properties; a second row has messages that a Java producer
sent one by one, to which the broker has added its own, seven in all.
"""

import argparse
import json
import statistics
import struct
import time
from typing import TYPE_CHECKING, Any

from rocketfleet.wire.message.received import decode_messages
from rocketfleet.wire.message.stored import encode_stored

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAD = struct.Struct(">iiiiiqqiq4siq4siiqi")
_SHORT = struct.Struct(">H")


def response(messages: int, body_length: int, *, batch: bool) -> memoryview:
    """A pull's body, as a Java producer and a 5.5 broker make it for messages sent in a batch or one by one."""
    parts = []
    for number in range(messages):
        properties = {"UNIQ_KEY": f"7F00000104D2000000634DC05D02{number:04X}", "WAIT": "true", "TAGS": "created"}
        if not batch:
            properties |= {
                "KEYS": f"order-{number}",
                "MSG_REGION": "DefaultRegion",
                "CLUSTER": "DefaultCluster",
                "TRACE_ON": "true",
            }
        stored = encode_stored(
            "orders",
            bytes([number % 256]) * body_length,
            properties,
            queue_id=3,
            queue_offset=1_000_000 + number,
            commit_log_offset=5_000_000_000 + 1300 * number,
            born_timestamp=1_794_788_685_323 + number,
            born_host="127.0.0.1:37202",
            store_timestamp=1_794_788_685_324 + number,
        )
        parts.append(stored)
    return memoryview(b"".join(parts))


def plain_whole(data: memoryview) -> list[Any]:
    """The plain loop: every field, the properties, the body."""
    data_bytes = bytes(data)
    messages = []
    position = 0
    while position < len(data_bytes):
        (
            store_size,
            _,
            body_crc,
            queue_id,
            flag,
            queue_offset,
            commit_log_offset,
            sys_flag,
            born_timestamp,
            born_address,
            born_port,
            store_timestamp,
            store_address,
            store_port,
            reconsume_times,
            prepared_transaction_offset,
            body_length,
        ) = _HEAD.unpack_from(data_bytes, position)
        start = position + _HEAD.size
        end = start + body_length
        body = data_bytes[start:end]
        topic_end = end + 1 + data_bytes[end]
        topic = data_bytes[end + 1 : topic_end].decode()
        (properties_length,) = _SHORT.unpack_from(data_bytes, topic_end)
        text = data_bytes[topic_end + 2 : topic_end + 2 + properties_length].decode()
        properties = dict(entry.split("\x01", 1) for entry in text.split("\x02") if entry)
        born_host = "{}.{}.{}.{}:{}".format(*born_address, born_port)
        store_host = "{}.{}.{}.{}:{}".format(*store_address, store_port)
        messages.append(
            (
                topic,
                queue_id,
                queue_offset,
                commit_log_offset,
                store_size,
                flag,
                sys_flag,
                born_timestamp,
                born_host,
                store_timestamp,
                store_host,
                reconsume_times,
                prepared_transaction_offset,
                body_crc,
                properties,
                body,
            )
        )
        position += store_size
    return messages


def plain_lazy(data: memoryview) -> list[Any]:
    """The plain loop without what can wait: the head's numbers, the topic, and where the rest is."""
    data_bytes = bytes(data)
    messages = []
    position = 0
    while position < len(data_bytes):
        head = _HEAD.unpack_from(data_bytes, position)
        end = position + _HEAD.size + head[-1]
        topic_end = end + 1 + data_bytes[end]
        topic = data_bytes[end + 1 : topic_end].decode()
        (properties_length,) = _SHORT.unpack_from(data_bytes, topic_end)
        messages.append((head, topic, topic_end + 2, properties_length))
        position += head[0]
    return messages


def ours_whole(data: memoryview) -> list[Any]:
    """The package's decoder, and then everything a handler may ask for."""
    return [
        (
            message.topic,
            message.queue_id,
            message.queue_offset,
            message.commit_log_offset,
            message.store_size,
            message.flag,
            message.sys_flag,
            message.born_timestamp,
            message.born_host,
            message.store_timestamp,
            message.store_host,
            message.reconsume_times,
            message.prepared_transaction_offset,
            message.body_crc,
            message.properties,
            message.body,
        )
        for message in decode_messages(data)
    ]


def ours_lazy(data: memoryview) -> list[Any]:
    """The package's decoder alone."""
    return decode_messages(data)


def ours_body(data: memoryview) -> list[Any]:
    """The package's decoder and the body: what a handler that looks at nothing else costs."""
    return [message.body for message in decode_messages(data)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='The last line is JSON: "messages_per_second" and "vs_plain_loop" are of the whole decode.',
    )
    parser.add_argument("--messages", type=int, default=32, help="messages in a response (default: 32)")
    parser.add_argument("--body", type=int, default=1024, help="bytes in a body (default: 1024)")
    parser.add_argument("--rounds", type=int, default=25, help="rounds; the figures are medians (default: 25)")
    parser.add_argument("--count", type=int, default=6400, help="messages a round and decoder (default: 6400)")
    arguments = parser.parse_args()

    batch = response(arguments.messages, arguments.body, batch=True)
    single = response(arguments.messages, arguments.body, batch=False)
    for data in (batch, single):
        if ours_whole(data) != plain_whole(data):
            raise SystemExit("the two decoders disagree, so their speeds say nothing")

    contestants: dict[str, tuple[Callable[[memoryview], list[Any]], memoryview]] = {
        "plain_whole": (plain_whole, batch),
        "ours_whole": (ours_whole, batch),
        "plain_single": (plain_whole, single),
        "ours_single": (ours_whole, single),
        "plain_lazy": (plain_lazy, batch),
        "ours_lazy": (ours_lazy, batch),
        "ours_body": (ours_body, batch),
    }
    repetitions = max(1, arguments.count // arguments.messages)
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(arguments.rounds):
        for name, (decode, data) in contestants.items():
            started = time.process_time()
            for _ in range(repetitions):
                decode(data)
            spent = time.process_time() - started
            rates[name].append(repetitions * arguments.messages / spent)
    report(rates, arguments.body)


def report(rates: dict[str, list[float]], body_length: int) -> None:
    medians = {name: statistics.median(values) for name, values in rates.items()}

    # A ratio is taken within each round: what disturbs a round disturbs both sides of it.
    def ratio(kind: str) -> float:
        pairs = zip(rates[f"ours_{kind}"], rates[f"plain_{kind}"], strict=True)
        return statistics.median(ours / plain for ours, plain in pairs)

    rows = {"whole: all there is": "whole", "whole, seven properties": "single", "lazy: head and topic": "lazy"}
    print(f"{'':26}{'plain loop':>14}{'rocketfleet':>14}{'ratio':>8}   (messages per second)")
    for title, kind in rows.items():
        print(f"{title:26}{medians[f'plain_{kind}']:14,.0f}{medians[f'ours_{kind}']:14,.0f}{ratio(kind):8.2f}")
    print(f"{'head, topic and body':26}{'':14}{medians['ours_body']:14,.0f}")
    figures = {
        "messages_per_second": round(medians["ours_whole"]),
        "vs_plain_loop": round(ratio("whole"), 3),
        "plain_messages_per_second": round(medians["plain_whole"]),
        "seven_properties_messages_per_second": round(medians["ours_single"]),
        "seven_properties_vs_plain_loop": round(ratio("single"), 3),
        "lazy_messages_per_second": round(medians["ours_lazy"]),
        "lazy_vs_plain_loop": round(ratio("lazy"), 3),
        "body_messages_per_second": round(medians["ours_body"]),
        "body_bytes": body_length,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
