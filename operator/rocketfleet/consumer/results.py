"""What a handler may answer, and what it means.

A handler that returns nothing has handled its message. One that raises has not: the message comes again later, as it
does with `RETRY`, or with `Retry(level)` if the handler wants to choose the delay. An orderly handler may also ask
for a moment's pause (`SUSPEND`), and, where offsets are committed by the handler, say `COMMIT` or `ROLLBACK`.

`judge` turns whatever came back into one of the verdicts, so that the services know only those. What makes no sense is
told to the handler's author: a `Retry` when it is made, everything else when it is judged.
"""

import math
from dataclasses import dataclass
from enum import Enum, auto
from numbers import Integral, Real
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Final


class ConsumeResult(Enum):
    SUCCESS = auto()
    RETRY = auto()  # concurrent: send back to the broker; orderly: as SUSPEND
    SUSPEND = auto()  # orderly: the same message again, after a pause
    COMMIT = auto()  # orderly without auto-commit: everything since the last commit is done
    ROLLBACK = auto()  # orderly without auto-commit: everything since the last commit comes again


SUCCESS: Final = ConsumeResult.SUCCESS
RETRY: Final = ConsumeResult.RETRY
SUSPEND: Final = ConsumeResult.SUSPEND
COMMIT: Final = ConsumeResult.COMMIT
ROLLBACK: Final = ConsumeResult.ROLLBACK

DEAD_LETTER_LEVEL: Final = -1
"""As a level: to the dead letters at once."""
_HIGHEST_LEVEL: Final = (1 << 31) - 1  # what a request can carry; the broker takes one beyond its last for its last


@dataclass(frozen=True, slots=True)
class Retry:
    """Come again, after the delay of this level (1 is the broker's first); 0: the broker's own choice, -1: dead letter.

    In an orderly group `seconds` is how long the queue pauses.
    """

    level: int = 0
    seconds: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", _checked_level(self.level))
        object.__setattr__(self, "seconds", _checked_seconds(self.seconds))


def _checked_level(level: object) -> int:
    if isinstance(level, bool) or not isinstance(level, Integral):
        raise TypeError(f"Retry(level) takes a whole number, not {_kind(level)}: 1 is the broker's first delay")
    number = int(level)
    if not DEAD_LETTER_LEVEL <= number <= _HIGHEST_LEVEL:
        raise ValueError(
            "Retry(level) must not be less than -1, the dead letters, "
            f"nor more than {_HIGHEST_LEVEL}: 1 is the broker's first delay"
        )
    return number


def _checked_seconds(seconds: object) -> float | None:
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, Real):
        hint = ", use its total_seconds()" if hasattr(seconds, "total_seconds") else ""
        raise TypeError(f"Retry(seconds=…) takes a number of seconds, not {_kind(seconds)}{hint}")
    try:
        number = float(seconds)
    except OverflowError:
        number = math.inf
    if not 0.0 <= number < math.inf:  # so written, it is false for NaN too
        raise ValueError(f"Retry(seconds=…) must be zero or more and finite, not {number}")
    return number


def judge(answer: object) -> tuple[ConsumeResult, Retry]:
    """The verdict on one message, and how to retry it if so. What makes no sense is a TypeError naming it."""
    if answer is None or answer is True or answer is ConsumeResult.SUCCESS:
        return ConsumeResult.SUCCESS, BY_BROKER
    if answer is False:
        return ConsumeResult.RETRY, BY_BROKER
    kind = type(answer)  # and not isinstance, which asks the answer, and that may lie or raise
    if kind is ConsumeResult:
        return answer, BY_BROKER  # type: ignore[return-value]  # as was just seen
    if issubclass(kind, Retry):
        # Made anew, which checks it anew: a subclass, or somebody's setattr, may have got around the first check.
        return ConsumeResult.RETRY, Retry(answer.level, answer.seconds)  # type: ignore[attr-defined]  # as above
    raise TypeError(f"the handler returned {_kind(answer)}: {_ADVICE.get(kind, _USUAL_ADVICE)}")


def _kind(value: object) -> str:
    return type(value).__name__


_USUAL_ADVICE: Final = (
    "return nothing or SUCCESS when the message is handled, RETRY or Retry(level) when it has to come again"
)
_ADVICE: Final[dict[type, str]] = {
    CoroutineType: "nobody awaits it; write the handler with `async def`, or await inside of it and return the result",
    GeneratorType: "nobody runs it; a handler must not `yield`",
    AsyncGeneratorType: "nobody runs it; a handler must not `yield`",
}


BY_BROKER: Final = Retry()
