"""`rocketfleet send`: messages from standard input, an argument or a file to a topic."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketfleet.base.counting import counted
from rocketfleet.cli.access.connection import ConnectionOptions, connection_options
from rocketfleet.cli.output import OutputFormat, asynchronous, output_option, show_json
from rocketfleet.cli.sending.delivery import Delivery, OutgoingBody, SendCounters, at_most, lines_of, repeated
from rocketfleet.cli.sending.pace import SendRate
from rocketfleet.cli.sending.progress import ProgressLine, bar
from rocketfleet.client.client import Client
from rocketfleet.client.errors import NoRoute, RocketMQError, SystemBusy
from rocketfleet.client.requests import broker_topics
from rocketfleet.producer import InvalidMessage, Producer, ProducerOptions, SendFailed
from rocketfleet.producer.checks import check_topic
from rocketfleet.producer.queues.sharding import by_hash
from rocketfleet.producer.retry import RETRY_CODES, RetryPolicy
from rocketfleet.wire.codes import ResponseCode
from rocketfleet.wire.errors import MessageError
from rocketfleet.wire.message import Message, encode_batch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from rocketfleet.producer import SendResult
    from rocketfleet.wire.queue import MessageQueue

PRODUCER_GROUP = "rocketfleet-send"
UNDER_WAY = 32
MOST_IN_A_BATCH = 1000
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
# Who has no rights is told so once: the other brokers have the same rules.
RETRIES = RetryPolicy(codes=RETRY_CODES - {ResponseCode.NO_PERMISSION})
# What the producer adds to each message of a batch: the property UNIQ_KEY, with its separators.
_UNIQUE_ID_BYTES = 64


@dataclass(frozen=True)
class Envelope:
    """What all messages of one call have in common."""

    topic: str
    keys: tuple[str, ...]
    tag: str | None
    properties: dict[str, str]
    shard: str | None
    delay_level: int

    def around(self, body: bytes) -> Message:
        return Message(
            self.topic,
            body,
            tags=self.tag,
            keys=self.keys,
            properties=self.properties,
            delay_level=self.delay_level,
            sharding_key=self.shard,
        )

    def overhead(self) -> int:
        """Bytes that a message of a batch takes beside its body."""
        return len(encode_batch([self.around(b"")])) + _UNIQUE_ID_BYTES


def _properties(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
        pairs[name] = value
    return pairs


@click.command(
    short_help="Send messages to a topic.",
    epilog="""\b
Examples:
  seq 1000 | rocketfleet send orders --tag created
  rocketfleet send orders --body '{"id": 7}' --key 7 --property shop=koeln
  rocketfleet send orders --shard customer-7 < customer-7.log
  rocketfleet send orders --body ping --count 600 --rate 10
""",
)
@click.argument("topic")
@click.option("--body", metavar="TEXT", help="Send this instead of the lines of standard input.")
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Send the content of this file, whole, as one message.",
)
@click.option("--key", "keys", multiple=True, metavar="KEY", help="Key to find the messages by; may be repeated.")
@click.option("--tag", metavar="TAG", help="The messages' tag.")
@click.option(
    "--property", "properties", multiple=True, metavar="NAME=VALUE", callback=_properties, help="May be repeated."
)
@click.option("--shard", metavar="KEY", help="Send all to the queue that belongs to this key, in order.")
@click.option(
    "--delay-level",
    type=click.IntRange(1),
    metavar="N",
    help="Deliver later: 1 is 1 s, 2 is 5 s, … as the broker has it; beyond its last level, that is taken.",
)
@click.option("--count", type=click.IntRange(1), metavar="N", help="Send only N lines, or the same body N times.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="At most N messages per second.")
@click.option(
    "--batch",
    type=click.IntRange(1, MOST_IN_A_BATCH),
    default=1,
    metavar="N",
    help="Send N at once, to one queue; quicker.",
)
@click.option("--no-create", is_flag=True, help="Refuse a topic that does not exist, even if brokers would create it.")
@output_option
@connection_options
@asynchronous
async def send(
    connection: ConnectionOptions,
    output: OutputFormat,
    topic: str,
    body: str | None,
    file: Path | None,
    keys: tuple[str, ...],
    tag: str | None,
    properties: dict[str, str],
    shard: str | None,
    delay_level: int | None,
    count: int | None,
    rate: float | None,
    batch: int,
    no_create: bool,
) -> int:
    """Send messages to TOPIC: each line of standard input is one, or give --body or --file.

    Lines go round the topic's queues, 32 at a time and in no particular order; with --shard they all go to one queue,
    one after the other. Empty lines are left out, as RocketMQ takes no empty message. A message that could not be sent
    is named by its line, and the exit code is 1 if there was any. Ctrl-C lets what is under way come to its end.

    Where brokers create topics by themselves, a topic that does not exist is created by its first message, and that is
    said on standard error; --no-create refuses it.
    """
    if body is not None and file is not None:
        raise click.UsageError("--body and --file are two ways to say the same: give one")
    if batch > 1 and delay_level is not None:
        raise click.UsageError("delayed messages cannot be sent in batches: leave --batch out")
    envelope = Envelope(topic, keys, tag, properties, shard, delay_level or 0)
    try:
        envelope.overhead()
    except MessageError as error:
        raise click.UsageError(str(error)) from error
    options = ProducerOptions(send_timeout=connection.timeout, retry=RETRIES)
    config = connection.config()
    stop = _Stop()
    bodies, total = _source(body, file, count, options.max_message_size, stop.event)
    async with Client(config) as client, Producer(client, PRODUCER_GROUP, options) as producer:
        missing = await _missing(client, topic)
        if missing is not None and no_create:
            raise click.ClickException(str(missing))
        queues = await producer.queues(topic)  # so that a topic that is not there is said once and not of every line
        queue = by_hash(queues, shard) if shard is not None else None
        outbox = _Outbox(producer, envelope, queue, connection.timeout)
        tally = SendCounters(time.monotonic)
        # While somebody types, a line that redraws itself would be in the way.
        typing = total is None and sys.stdin.isatty()
        progress = ProgressLine(sys.stderr, lambda: _state(tally, total), wanted=not typing)
        if missing is not None:
            outbox.on_first = lambda broker: _say_created(client, topic, broker, progress.say)
        delivery = Delivery(
            outbox.send,
            tally=tally,
            stop=stop.event,
            say=progress.say,
            tick=progress.update,
            most_bytes=options.max_message_size,
            unit="line" if total is None else "message",
            batch=batch,
            batch_overhead=envelope.overhead() if batch > 1 else 0,
            under_way=UNDER_WAY if shard is None else 1,
            pace=None if rate is None else SendRate(rate, time.monotonic),
        )
        stop.listen()
        await delivery.run(bodies)
        seconds = tally.seconds
    progress.clear()
    _report(output, envelope, tally, seconds, outbox)
    if stop.number is not None:
        return 128 + stop.number
    return 1 if tally.failed else 0


class _Outbox:
    """Sends one body, or several as a batch, and remembers where the last one went.

    A broker that sheds load has not stored the message, so it is offered again after a pause, for as long as a send may
    take: whoever pipes a file into a busy broker wants it slower, not with holes.
    """

    def __init__(self, producer: Producer, envelope: Envelope, queue: MessageQueue | None, timeout: float) -> None:
        self._producer = producer
        self._envelope = envelope
        self._queue = queue
        self._timeout = timeout
        self.last: SendResult | None = None
        self.on_first: Callable[[str], Awaitable[None]] | None = None  # called once, with the broker of the first

    async def send(self, bodies: Sequence[bytes]) -> None:
        messages = [self._envelope.around(body) for body in bodies]
        deadline = time.monotonic() + self._timeout
        pause = SHORTEST_PAUSE
        while True:
            try:
                broker = await self._offer(messages)
                break
            except (SendFailed, SystemBusy) as error:
                busy = isinstance(error, SystemBusy) or isinstance(error.__cause__, SystemBusy)
                if not busy or time.monotonic() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        then, self.on_first = self.on_first, None
        if then is not None:
            await then(broker)

    async def _offer(self, messages: Sequence[Message]) -> str:
        """The broker that has stored them."""
        if len(messages) == 1:
            self.last = await self._producer.send(messages[0], queue=self._queue)
            return self.last.queue.broker
        return (await self._producer.send_batch(messages, queue=self._queue)).queue.broker


async def _missing(client: Client, topic: str) -> NoRoute | None:
    """That the topic does not exist; None if it does."""
    check_topic(topic)
    try:
        await client.route(topic)
    except NoRoute as unknown:
        return unknown
    return None


async def _say_created(client: Client, topic: str, broker: str, say: Callable[[str], None]) -> None:
    """A mistyped name is a topic of its own now: better heard of at once."""
    how = ""
    try:
        config = await broker_topics.topic_config(client.remoting, client.master(broker), topic)
    except RocketMQError:  # one who may send need not be allowed to read settings
        pass
    else:
        how = f" with {counted(config.write_queue_nums, 'queue')}"
    say(f"topic {topic} did not exist: {broker} has created it{how}")


class _Stop:
    """The first Ctrl-C or termination asks for an orderly end; a second one ends at once."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.number: int | None = None

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)

    def _stop(self, number: int) -> None:
        self.number = number
        self.event.set()
        for each in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(each)


def _source(
    body: str | None, file: Path | None, count: int | None, limit: int, stop: asyncio.Event
) -> tuple[AsyncIterator[OutgoingBody], int | None]:
    """What is to be sent, and how many that will be, if that is known."""
    if body is not None or file is not None:
        data = os.fsencode(body) if body is not None else b"" if file is None else file.read_bytes()
        if not data:
            raise InvalidMessage("the body is empty; RocketMQ takes no empty messages")
        return repeated(data, count or 1), count or 1
    if sys.stdin is None:
        raise click.UsageError("standard input is closed: give --body or --file")
    descriptor = sys.stdin.fileno()
    if os.isatty(descriptor):
        click.echo("Each line is a message; Ctrl-D ends.", err=True)
    lines = lines_of(descriptor, limit, stop)
    return (lines if count is None else at_most(lines, count)), None


def _state(tally: SendCounters, total: int | None) -> str:
    done = tally.sent + tally.failed
    seconds = tally.seconds
    rate = f"{done / seconds:,.0f}/s" if seconds > 0 else ""
    failed = f"  {tally.failed:,} failed" if tally.failed else ""
    drawn = f"{bar(done, total)}  " if total is not None else ""
    return f"{drawn}{tally.sent:,} sent{failed}  {rate}"


def _report(output: OutputFormat, envelope: Envelope, tally: SendCounters, seconds: float, outbox: _Outbox) -> None:
    last = outbox.last if tally.sent == 1 else None
    if output == "json":
        document: dict[str, object] = {
            "topic": envelope.topic,
            "sent": tally.sent,
            "failed": tally.failed,
            "empty": tally.empty,
            "seconds": round(seconds, 3),
            "rate": round(tally.sent / seconds, 1) if seconds > 0 else None,
        }
        if last is not None:
            document["message"] = {
                "id": last.msg_id,
                "broker": last.queue.broker,
                "queue": last.queue.queue_id,
                "offset": last.queue_offset,
                "status": last.status.value,
            }
        show_json(document)
        return
    click.echo(tally.summary(envelope.topic, seconds))
    if last is not None:
        click.echo(f"id {last.msg_id}, queue {last.queue.queue_id} of {last.queue.broker}, offset {last.queue_offset}")
