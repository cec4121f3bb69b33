"""Where a history is: a directory of Parquet files, or a topic written as `rocketmq://host:port/topic`. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rocketfleet.spark.source.errors import SourceError

SCHEME: Final = "rocketmq://"


class HistoryError(SourceError):
    """The history cannot be read, or says nothing; the message is one sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class ParquetHistory:
    """A directory, as Spark names it: a path, or a URL of a file system that Spark knows."""

    path: str

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class TopicHistory:
    """A topic, and the name servers that know it, separated by semicolons."""

    name_servers: str
    topic: str

    def __str__(self) -> str:
        return f"topic {self.topic} at {self.name_servers}"


History = ParquetHistory | TopicHistory


def parse_history(text: str) -> History:
    """What the user wrote. Name servers may be separated by commas too: a semicolon means something to a shell."""
    if not text.startswith(SCHEME):
        if not text.strip():
            raise HistoryError("the history is not named: give a directory, or rocketmq://host:port/topic")
        return ParquetHistory(text)
    servers, _, topic = text.removeprefix(SCHEME).partition("/")
    servers = ";".join(part.strip() for part in servers.replace(",", ";").split(";") if part.strip())
    if not servers or not topic or "/" in topic:
        raise HistoryError(f"{text!r} does not name a topic: write rocketmq://host:port/topic")
    return TopicHistory(servers, topic)
