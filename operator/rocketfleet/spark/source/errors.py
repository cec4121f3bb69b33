"""What the source says when something is wrong: one sentence, and how it gets through Spark's machinery unharmed.

An error that a Python data source raises travels as text: the worker writes its traceback to the JVM, which puts it
into an exception of its own, which PySpark raises on the driver. Nobody wants the traceback of "unknown option".
PySpark's workers leave it out if a variable is set in their environment when the error arrives; so it is set, in the
worker that is about to end with that error anyway. `sentence_of` finds the sentence again on the driver.
"""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from rocketfleet.client.errors import RocketMQError
from rocketfleet.wire.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

_NO_TRACEBACK = "SPARK_HIDE_TRACEBACK"


class SourceError(Exception):
    """Something that the user of the source can put right; the message is one sentence that says how."""


_OURS = re.compile(rf"{re.escape(SourceError.__module__)}\.{SourceError.__name__}: (?P<sentence>[^\n]+)")


def in_one_sentence(call: Callable[P, T]) -> Callable[P, T]:
    """Let a method that Spark calls fail with a SourceError, and with nothing but its sentence."""

    @functools.wraps(call)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except (SourceError, RocketMQError, WireError) as error:
            raise spoken(error) from None

    return guarded


def spoken(error: Exception) -> SourceError:
    """The error as it leaves a worker."""
    os.environ[_NO_TRACEBACK] = "1"
    return error if isinstance(error, SourceError) else SourceError(one_line(str(error)))


def one_line(text: str) -> str:
    """The text without line ends, which would cut it off on its way."""
    return " ".join(text.split())


def sentence_of(error: BaseException) -> str | None:
    """What the source said, out of whatever Spark has made of it; None if it was not the source that failed."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, SourceError):
            return str(seen)
        found = _OURS.search(str(seen))
        if found:
            return found["sentence"].strip()
        seen = seen.__cause__
    return None
