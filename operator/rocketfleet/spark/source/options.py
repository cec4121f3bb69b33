"""The options of the source and the sink, checked before anything is connected: a mistake is one sentence.

Spark hands over text, with names in lower case. What is not known is refused, with the nearest name that is: an option
that is silently ignored is one that its user believes in.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Final

from rocketfleet.client.config import ClientConfig, TlsConfig
from rocketfleet.client.variables import (
    ACCESS_KEY_VARIABLE,
    KEY_PASSWORD_VARIABLE,
    NAME_SERVERS_VARIABLE,
    SECRET_KEY_VARIABLE,
    SECURITY_TOKEN_VARIABLE,
)
from rocketfleet.consumer.settings import GROUP_NAME, MAX_GROUP_NAME
from rocketfleet.consumer.subscription import ALL, Subscription
from rocketfleet.spark.source import offsets as offset_text
from rocketfleet.spark.source.errors import SourceError
from rocketfleet.wire.acl import Credentials

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocketfleet.spark.source.offsets import Offsets

DEFAULT_GROUP: Final = "rocketfleet-spark"
DEFAULT_PULL: Final = 32

_CONNECTION: Final = (
    "nameServers",
    "accessKey",
    "secretKey",
    "securityToken",
    "credentialsPath",
    "tls",
    "caFile",
    "certFile",
    "keyFile",
    "keyPassword",
    "tlsServerName",
    "checkHostname",
    "timeout",
)
_READ: Final = (
    "topic",
    "group",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "subExpression",
    "minPartitions",
    "pullBatchSize",
    "failOnDataLoss",
    "includeProperties",
    "filterPushdown",
)
_STREAM_ONLY: Final = ("maxOffsetsPerTrigger", "commitOffsets")
_BATCH_ONLY: Final = ("endingOffsets", "endingTimestamp")
_WRITE: Final = ("topic", "producerGroup", "batchId", "sendBatchSize")
_SPARKS_OWN: Final = frozenset({"checkpointlocation", "queryname", "path"})
"""What Spark passes on of its own among the options of a writer."""


class Where(Enum):
    """Where in a queue a read begins or ends."""

    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"  # where the group stands at the broker
    TIMESTAMP = "timestamp"
    EXPLICIT = "explicit"


@dataclass(frozen=True)
class Position:
    """One end of a read, for all queues."""

    where: Where
    timestamp: int | None = None  # milliseconds since the epoch
    offsets: Offsets = field(default_factory=dict)
    option: str = ""  # which option it came from, for sentences


@dataclass(frozen=True)
class SourceConnection:
    """Where the cluster is and how to prove who we are. It goes to the executors; no secret is in its repr."""

    name_servers: str
    credentials: Credentials | None = None
    tls: TlsConfig | None = None
    timeout: float = 3.0
    credentials_path: str | None = None  # read, and followed, in each process

    def config(self) -> ClientConfig:
        """The settings of a client in this process."""
        return ClientConfig(
            name_servers=(self.name_servers,),
            credentials=self.credentials,
            tls=self.tls,
            timeout=self.timeout,
            credentials_path=self.credentials_path,
        )


@dataclass(frozen=True)
class ReadOptions:
    """A read, batch or streaming."""

    connection: SourceConnection
    topics: tuple[str, ...]
    group: str
    starting: Position
    ending: Position
    expression: str = ALL
    min_partitions: int | None = None
    pull_batch_size: int = DEFAULT_PULL
    fail_on_data_loss: bool = True
    include_properties: bool = False
    filter_pushdown: bool = False
    max_offsets_per_trigger: int | None = None
    commit_offsets: bool = True

    def subscription(self, topic: str) -> Subscription:
        """What is wanted of a topic."""
        return Subscription(topic, self.expression)


@dataclass(frozen=True)
class WriteOptions:
    """A write, batch or streaming."""

    connection: SourceConnection
    topic: str | None
    producer_group: str
    batch_id: str | None = None
    send_batch_size: int = 128


def read_options(given: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """Check the options of a read."""
    known = (*_CONNECTION, *_READ, *_STREAM_ONLY)
    options = _Given(given, known, "read")
    for name in _STREAM_ONLY if not streaming else _BATCH_ONLY:
        if options.has(name):
            raise SourceError(f"{name} is for {'batch' if streaming else 'streaming'} reads: leave it out here")
    topics = tuple(dict.fromkeys(part.strip() for part in options.required("topic").split(",") if part.strip()))
    if not topics:
        raise SourceError("the option topic names no topic: give one, or several separated by commas")
    if streaming and not options.has("group"):
        raise SourceError("a streaming read needs the option group: its offsets are written back under that name")
    group = options.text("group") or DEFAULT_GROUP
    if len(group) > MAX_GROUP_NAME or not GROUP_NAME.fullmatch(group):
        raise SourceError(
            f"the group name {group!r} is not allowed: "
            f"use up to {MAX_GROUP_NAME} letters, digits, '_', '-', '%' and '|'"
        )
    expression = options.text("subExpression") or ALL
    try:
        Subscription(topics[0], expression)
    except ValueError as error:
        raise SourceError(f"subExpression: {error}") from None
    starting = _position(options, "starting", Where.LATEST if streaming else Where.EARLIEST)
    ending = _position(options, "ending", Where.LATEST)
    if not streaming and (starting.where is Where.LATEST or ending.where is Where.EARLIEST):
        raise SourceError(
            "the range is empty: a batch read cannot begin at the end of the queues or end where they begin"
        )
    if None not in (starting.timestamp, ending.timestamp) and starting.timestamp >= ending.timestamp:  # type: ignore[operator]  # neither is None
        raise SourceError(
            f"the range is empty: startingTimestamp {starting.timestamp} is not before "
            f"endingTimestamp {ending.timestamp}"
        )
    return ReadOptions(
        connection=_connection(options),
        topics=topics,
        group=group,
        starting=starting,
        ending=ending,
        expression=expression,
        min_partitions=options.number("minPartitions", 1, 1_000_000),
        pull_batch_size=options.number("pullBatchSize", 1, 1024) or DEFAULT_PULL,
        fail_on_data_loss=options.switch("failOnDataLoss", default=True),
        include_properties=options.switch("includeProperties", default=False),
        filter_pushdown=options.switch("filterPushdown", default=False),
        max_offsets_per_trigger=options.number("maxOffsetsPerTrigger", 1, 1 << 53),
        commit_offsets=options.switch("commitOffsets", default=True),
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Check the options of a write."""
    options = _Given(given, (*_CONNECTION, *_WRITE), "write")
    return WriteOptions(
        connection=_connection(options),
        topic=options.text("topic"),
        producer_group=options.text("producerGroup") or DEFAULT_GROUP,
        batch_id=options.text("batchId"),
        send_batch_size=options.number("sendBatchSize", 1, 10_000) or WriteOptions.send_batch_size,
    )


class _Given:
    """What the user gave, by the names of the documentation."""

    def __init__(self, given: Mapping[str, str], known: Iterable[str], use: str) -> None:
        self._values = {name.lower(): value for name, value in given.items()}
        names = {name.lower(): name for name in known}
        for name in sorted(self._values.keys() - names.keys() - _SPARKS_OWN):
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {names[near[0]]}?" if near else f"there are {', '.join(sorted(names.values()))}"
            raise SourceError(f"a {use} of rocketmq has no option {name!r}: {hint}")

    def has(self, name: str) -> bool:
        return name.lower() in self._values

    def text(self, name: str) -> str | None:
        """The value; None if it was not given or is blank."""
        return self._values.get(name.lower(), "").strip() or None

    def required(self, name: str) -> str:
        value = self.text(name)
        if value is None:
            raise SourceError(f"the option {name} is missing")
        return value

    def number(self, name: str, low: int, high: int) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        if not value.isascii() or not value.isdigit() or not low <= int(value) <= high:
            raise SourceError(f"{name} is {value!r}: give a whole number from {low} to {high}")
        return int(value)

    def switch(self, name: str, *, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in {"true", "false"}:
            raise SourceError(f"{name} is {value!r}: give true or false")
        return value.lower() == "true"


def _position(options: _Given, end: str, default: Where) -> Position:
    by_offset, by_time = f"{end}Offsets", f"{end}Timestamp"
    text, time = options.text(by_offset), options.text(by_time)
    if text is not None and time is not None:
        raise SourceError(f"{by_offset} and {by_time} are both given: give one of them")
    if time is not None:
        return Position(Where.TIMESTAMP, timestamp=_milliseconds(time, by_time), option=by_time)
    if text is None:
        return Position(default, option=by_offset)
    keywords = {Where.EARLIEST, Where.LATEST} if end == "ending" else {Where.EARLIEST, Where.LATEST, Where.COMMITTED}
    for where in keywords:
        if text.lower() == where.value:
            return Position(where, option=by_offset)
    return Position(Where.EXPLICIT, offsets=offset_text.parse(text, by_offset), option=by_offset)


def _milliseconds(text: str, option: str) -> int:
    """A time: milliseconds since the epoch, or as ISO 8601 with its zone."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise SourceError(
            f"{option} is {text!r}: give milliseconds since 1970, or date, time and zone as 2026-01-31T08:00:00Z"
        )
    return int(parsed.timestamp() * 1000)


def _connection(options: _Given) -> SourceConnection:
    """Secrets may come from the driver's environment instead: options are shown in plans and in Spark's UI."""
    environment = os.environ
    name_servers = options.text("nameServers") or environment.get(NAME_SERVERS_VARIABLE, "").strip()
    if not name_servers:
        raise SourceError("the option nameServers is missing: give host:port, several separated by semicolons")
    path = options.text("credentialsPath")
    access_key = options.text("accessKey") or (None if path else environment.get(ACCESS_KEY_VARIABLE))
    secret_key = options.text("secretKey") or (None if path else environment.get(SECRET_KEY_VARIABLE))
    if path and (access_key or secret_key):
        raise SourceError("credentialsPath and accessKey or secretKey are both given: give one of them")
    if bool(access_key) != bool(secret_key):
        missing = f"secretKey (or {SECRET_KEY_VARIABLE})" if access_key else f"accessKey (or {ACCESS_KEY_VARIABLE})"
        raise SourceError(f"credentials are incomplete: give {missing} too")
    credentials = None
    if access_key and secret_key:
        token = options.text("securityToken") or environment.get(SECURITY_TOKEN_VARIABLE) or None
        credentials = Credentials(access_key, secret_key, token)
    timeout = options.number("timeout", 1, 3600)
    made = SourceConnection(name_servers, credentials, _tls(options), float(timeout or 3), path)
    try:
        made.config()
    except ValueError as error:
        raise SourceError(f"nameServers: {error}") from None
    return made


def _tls(options: _Given) -> TlsConfig | None:
    names = ("caFile", "certFile", "keyFile", "tlsServerName")
    checked = options.switch("checkHostname", default=True)
    if not options.switch("tls", default=False) and not any(options.text(name) for name in names) and checked:
        return None
    try:
        return TlsConfig(
            ca_file=options.text("caFile"),
            cert_file=options.text("certFile"),
            key_file=options.text("keyFile"),
            key_password=options.text("keyPassword") or os.environ.get(KEY_PASSWORD_VARIABLE) or None,
            server_name=options.text("tlsServerName"),
            check_hostname=checked,
        )
    except ValueError as error:
        raise SourceError(str(error)) from None
