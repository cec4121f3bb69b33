"""Throws broken bytes at everything in `rocketfleet.wire` that reads bytes from a peer.

Valid frames, messages, batches, ids and JSON bodies are mutated: bits flipped, numbers replaced by nasty ones, pieces
cut out, doubled or taken from another input. Two things must hold for whatever comes out: no exception but a WireError,
and no more memory than a multiple of the input. What is read successfully must also be writable again.

    python tests/unit/wire/fuzz.py --inputs 1000000 --seed 1

The same seed gives the same inputs; `--only N` repeats input N alone.
"""

import argparse
import faulthandler
import random
import sys
import time
import tracemalloc
from collections.abc import Callable
from unittest.mock import patch

from rocketfleet.wire import bodies, fastjson
from rocketfleet.wire.command import Command, HeaderForm, decode, encode
from rocketfleet.wire.errors import FrameError, WireError
from rocketfleet.wire.frame import FrameDecoder
from rocketfleet.wire.message import (
    decode_batch,
    decode_messages,
    decode_properties,
    encode_batch,
    encode_properties,
    received,
    sysflag,
)
from rocketfleet.wire.message.batch import write_batch
from rocketfleet.wire.message.compression import Compression
from rocketfleet.wire.message.message_id import UniqueIds, decode_offset_id, decode_unique_id, unique_id_time
from rocketfleet.wire.message.stored import encode_stored
from rocketfleet.wire.queue import MessageQueue

MEMORY_FACTOR = 100
MEMORY_BASE = 4 * 1024 * 1024
"""The bound: an input of n bytes may take MEMORY_FACTOR * n + MEMORY_BASE. The factor is that of many small JSON
objects (a dict for three bytes of text); the base covers decompression, which is bounded on its own, below."""

DECOMPRESSION_BOUND = 1024 * 1024

NASTY = [0, 1, -1, 2, 3, 4, 7, 8, 88, 127, 128, 255, 256, 0x7FFF, -0x8000, 0xFFFFFF, 0x1000000, 0x7FFFFFFF, -0x80000000]
TOKENS = [
    b'{"', b"{", b"}", b"[", b"]", b":", b",", b'"', b"\\", b"\\u", b"\\ud800", b"null", b"true", b"NaN", b"-",
    b"1e999", b"9" * 30, b"{1:", b"{{", b"\x00", b"\x01", b"\x02", b"\xff", b"\xed\xa0\x80", b"[[[[[[[[",
]  # fmt: skip

BODIES: list[type[bodies.Body]] = [
    member
    for name in bodies.__all__
    if isinstance(member := getattr(bodies, name), type)
    and issubclass(member, bodies.Body)
    and member is not bodies.Body
]


# -- what is fed ------------------------------------------------------------------------------------------------------


def feed_stream(data: bytes, chance: random.Random) -> None:
    decoder = FrameDecoder()
    position = 0
    while position < len(data):
        size = chance.choice((1, 3, 8, 50, 1 << 20))
        try:
            payloads: list[memoryview] = decoder.feed(data[position : position + size])
        except FrameError as error:
            payloads = list(error.frames)
            position = len(data)
        position += size
        for payload in payloads:
            feed_command(bytes(payload), chance)


def feed_command(data: bytes, chance: random.Random) -> None:
    command = decode(data)
    _ = command.is_response, command.is_oneway, repr(command)
    again = decode(encode(command)[4:])
    assert (again.code, again.opaque, again.flag) == (command.code, command.opaque, command.flag)
    assert again.fields == command.fields


def feed_messages(data: bytes, chance: random.Random) -> None:
    for message in decode_messages(memoryview(data), "broker"):
        quick = message.tags, message.keys, message.msg_id
        held = message.properties
        assert quick == (message.tags, message.keys, message.msg_id)
        _ = message.born_host, message.store_host, message.offset_msg_id, message.queue, held
        assert len(message.raw_body) == message.body_length
        try:
            _ = message.body
        except WireError:
            continue


def feed_batch(data: bytes, chance: random.Random) -> None:
    messages = decode_batch(data, "topic")
    _ = encode_batch(messages) if all("\x01" not in "".join(m.properties.values()) for m in messages) else b""


def feed_json(data: bytes, chance: random.Random) -> None:
    value = fastjson.loads(data)
    for cls in chance.sample(BODIES, 3):
        try:
            body = cls.from_json(value)
        except WireError:
            continue
        assert cls.decode(body.encode()) == body or b"NaN" in body.encode()


def feed_properties(data: bytes, chance: random.Random) -> None:
    held = decode_properties(data.decode("utf-8", "replace"))
    assert decode_properties(encode_properties(held)) == held


def feed_ids(data: bytes, chance: random.Random) -> None:
    text = data.decode("utf-8", "replace")
    for read in (decode_offset_id, decode_unique_id, lambda unique_id: unique_id_time(unique_id, 1_800_000_000)):
        try:
            read(text)
        except WireError:
            continue


Feed = Callable[[bytes, random.Random], None]


def corpus() -> list[tuple[Feed, list[bytes]]]:
    """For each reader, inputs that it reads."""
    queue = MessageQueue("orders", "broker-a", 3)
    properties = {"TAGS": "created", "KEYS": "a b", "UNIQ_KEY": "7F00000104D2000000634DC05D020000", "mine": "ü"}
    batch = write_batch([(0, b"one", properties), (5, b"two" * 30, {})])
    hosts = ("127.0.0.1:10911", "[2001:db8::1]:10911")
    messages = [
        encode_stored("orders", b"body" * 50, properties, born_host=a, store_host=b) for a in hosts for b in hosts
    ]
    messages += [encode_stored("orders", b"body" * 50, properties, sys_flag=kind.flag) for kind in Compression]
    messages.append(encode_stored("t" * 200, b"", {}))
    messages.append(encode_stored("orders", batch, properties, sys_flag=sysflag.INNER_BATCH | sysflag.NEED_UNWRAP))
    messages.append(
        encode_stored("t", batch, sys_flag=sysflag.INNER_BATCH | sysflag.NEED_UNWRAP | Compression.ZSTD.flag)
    )
    messages.append(b"".join(messages))
    fields = {"topic": "orders", "queueId": "3", "nextBeginOffset": "17", "i": encode_properties(properties)}
    commands = [encode(Command(11, fields, messages[0], 77, 1, "FOUND", form=form)) for form in HeaderForm] + [
        encode(Command(10, form=form)) for form in HeaderForm
    ]
    subscription = bodies.SubscriptionData.of("orders", "a || b", version=5)
    stats = bodies.ConsumeStats({queue: bodies.OffsetWrapper(5, 4, 5, 1)}, 1.5)
    samples: list[bodies.Body] = [
        stats,
        bodies.ConsumeStatsList(({"group": (stats,)},)),
        bodies.TopicStatsTable({queue: bodies.TopicOffset(1, 2, 3)}),
        bodies.TopicRouteData((bodies.QueueData("broker-a", 4, 4, 6),), (bodies.BrokerData("c", "b", {0: "1:2"}),)),
        bodies.ClusterInfo({"b": bodies.BrokerData("c", "b", {0: "1:2"})}, {"c": ("b",)}),
        bodies.HeartbeatData(
            "me", (bodies.ProducerData("p"),), (bodies.ConsumerData("g", "x", "y", "z", (subscription,)),)
        ),
        bodies.LockBatchRequest("g", "me", (queue,)),
        bodies.LockBatchResponse((queue,)),
        bodies.ConsumerRunningInfo({"a": "b"}, (subscription,), {queue: bodies.ProcessQueueInfo(5)}),
        bodies.ConsumerConnection((bodies.ClientConnection("me", "1:2", "PYTHON", 5),), {"orders": subscription}),
        bodies.ResetOffset({queue: 5}),
        bodies.ConsumerOffsets({"orders@g": {0: 5}}, data_version=bodies.DataVersion(1, 2, 3)),
        bodies.SubscriptionGroups({"g": bodies.SubscriptionGroupConfig("g")}),
        bodies.TopicConfigs({"t": bodies.TopicConfig("t", attributes={"+message.type": "FIFO"})}),
        bodies.QueryAssignmentResponse((bodies.MessageQueueAssignment(queue, "POP", {"a": "b"}),)),
        bodies.BatchAckRequest("b", (bodies.BatchAck(bit_set=b"\x05"),)),
        *(cls() for cls in BODIES),
    ]
    json_bodies = [sample.encode() for sample in samples] + [
        b'{"brokerAddrs":{0:"1:2",1:"3:4"}}',
        b"{null:[],1.5:{1:2}}",
    ]
    unique = UniqueIds(b"\x7f\0\0\1", 1, 2, lambda: 1_800_000_000.0).next().encode()
    return [
        (feed_stream, [*commands, b"".join(commands)]),
        (feed_command, [command[4:] for command in commands]),
        (feed_messages, messages),
        (feed_batch, [batch]),
        (feed_json, json_bodies),
        (feed_properties, [encode_properties(properties).encode()]),
        (feed_ids, [unique, b"7F00000100002A9F0000000000002357"]),
    ]


# -- how it is broken -------------------------------------------------------------------------------------------------


def mutate(data: bytes, other: bytes, chance: random.Random) -> bytes:
    """A broken variant of the input, of at most a few times its size."""
    broken = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        place = chance.randrange(len(broken) + 1)
        length = chance.choice((1, 2, 4, 8, 20, 100))
        kind = chance.randrange(9)
        if kind == 0 and broken:
            broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        elif kind == 1 and broken:
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        elif kind == 2:
            width = chance.choice((1, 2, 4, 8))
            number = chance.choice(NASTY) & ((1 << 8 * width) - 1)
            broken[place : place + width] = number.to_bytes(width, "big")
        elif kind == 3:
            del broken[place : place + length]
        elif kind == 4:
            del broken[place:]
        elif kind == 5:
            broken[place:place] = broken[place : place + length] * chance.choice((1, 2, 10))
        elif kind == 6:
            start = chance.randrange(len(other) + 1)
            broken[place : place + chance.choice((0, length))] = other[start : start + length]
        elif kind == 7:
            broken[place:place] = chance.choice(TOKENS) * chance.choice((1, 1, 1, 5, 300))
        else:
            broken[place:place] = chance.randbytes(length)
    return bytes(broken)


def fuzz(inputs: int, seed: int, only: int | None = None, progress: Callable[[int], None] | None = None) -> int:
    """Run; return how many inputs were read without complaint. Raises AssertionError at the first finding."""
    readers = corpus()
    was_tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    accepted = 0
    bound = patch.object(received, "MAX_DECOMPRESSED_LENGTH", DECOMPRESSION_BOUND)  # so that memory says something
    bound.start()
    try:
        for number in range(inputs) if only is None else (only,):
            if number % 10_000 == 0:
                faulthandler.dump_traceback_later(300, exit=True)  # an input that never ends shows where
                if progress:
                    progress(number)
            chance = random.Random(f"{seed}/{number}")  # each input is its own: it can be repeated alone
            feed, samples = readers[number % len(readers)]
            data = mutate(chance.choice(samples), chance.choice(samples), chance)
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            try:
                feed(data, chance)
                accepted += 1
            except WireError:
                pass
            except Exception as error:
                raise AssertionError(finding(feed, seed, number, data, f"raised {error!r}")) from error
            used = tracemalloc.get_traced_memory()[1] - before
            if used > MEMORY_FACTOR * len(data) + MEMORY_BASE:
                raise AssertionError(finding(feed, seed, number, data, f"took {used} bytes of memory"))
    finally:
        faulthandler.cancel_dump_traceback_later()
        bound.stop()
        if not was_tracing:
            tracemalloc.stop()
    return accepted


def finding(feed: Feed, seed: int, number: int, data: bytes, what: str) -> str:
    shown = data if len(data) <= 2000 else data[:2000] + b"..."
    return f"{feed.__name__} of {len(data)} bytes {what}; repeat it with --seed {seed} --only {number}; {shown!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many inputs (default: 100000)")
    parser.add_argument("--seed", type=int, default=1, help="which inputs (default: 1)")
    parser.add_argument("--only", type=int, help="repeat one input alone")
    arguments = parser.parse_args()
    started = time.monotonic()
    accepted = fuzz(
        arguments.inputs,
        arguments.seed,
        arguments.only,
        lambda done: print(f"{done} inputs", file=sys.stderr, flush=True),
    )
    spent = time.monotonic() - started
    print(f"{arguments.inputs} inputs, seed {arguments.seed}: nothing found; {accepted} were readable; {spent:.0f} s")


if __name__ == "__main__":
    main()
