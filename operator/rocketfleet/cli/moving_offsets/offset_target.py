"""What `--to` can mean: latest, earliest, a time, or a file. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Final

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_RELATIVE = re.compile(r"-(?:\d+[smhdw])+")
_PART = re.compile(r"(\d+)([smhdw])")
_OTHER_WORDS: Final = {
    "now": "latest", "end": "latest", "last": "latest", "newest": "latest",
    "beginning": "earliest", "start": "earliest", "first": "earliest", "oldest": "earliest",
}  # fmt: skip
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class TargetError(Exception):
    """The text means nothing; the sentence says what would."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The end of each queue: what is there is skipped."""


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first message of each queue that is still there."""


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first message stored at or after a time, in milliseconds since the epoch."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class FromFile:
    """The offsets of a snapshot."""

    path: Path


Target = Latest | Earliest | AtTime | FromFile


def parse_target(text: str, now: float) -> Target:
    """Read `--to`. A file whose name is one of the words, or a time, is meant by ./NAME."""
    match text:
        case "latest":
            return Latest()
        case "earliest":
            return Earliest()
    moment = parse_time(text, now)
    if moment is None:
        return FromFile(Path(text))
    if moment > now:
        raise TargetError(
            f"{text} is in the future, where there is no message yet: --to latest is the nearest there is"
        )
    return AtTime(int(moment * 1000))


def likely_meant(text: str) -> str | None:
    """What was probably meant by a text that is no file either; None if there is no telling."""
    word = text.lower()
    if _RELATIVE.fullmatch(f"-{word.lstrip('+-')}"):
        return f"-{word.lstrip('+-')}"
    if word in _OTHER_WORDS:
        return _OTHER_WORDS[word]
    return next(iter(get_close_matches(word, ["latest", "earliest"], n=1)), None)


def parse_time(text: str, now: float) -> float | None:
    """Seconds since the epoch of an RFC 3339 time or of a time ago (-90m, -1d12h); None if it is neither."""
    if _RELATIVE.fullmatch(text):
        moment = now - sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(text))
        if moment < 0:
            raise TargetError(f"{text} is before 1970: --to earliest is the beginning of each queue")
        return moment
    if not _DATE.match(text):
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        raise TargetError(f"{text} begins like a time, but {error}: write it as 2026-01-31T08:00:00Z") from error
    if read.tzinfo is None:
        raise TargetError(f"{text} has no time zone: write {datetime.isoformat(read)}Z for UTC, or add +02:00")
    return max(read.timestamp(), 0.0)


def time_text(moment: float) -> str:
    """Seconds since the epoch as RFC 3339, to the second, in UTC."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
