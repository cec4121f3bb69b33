"""What a handler may answer, and what it means.

A handler that returns nothing has handled its message. One that raises has not: the message comes again later, as it
does with `RETRY`, or with `Retry(level)` if the handler wants to choose the delay. An orderly handler may also ask
for a moment's pause (`SUSPEND`), and, where offsets are committed by the handler, say `COMMIT` or `ROLLBACK`.

`judge` turns whatever came back into one of the verdicts, so that the services know only those.
"""

from dataclasses import dataclass
from enum import Enum, auto
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


@dataclass(frozen=True, slots=True)
class Retry:
    """Come again, after the delay of this level (1 is the broker's first); 0: the broker's own choice, -1: dead letter.

    In an orderly group `seconds` is how long the queue pauses.
    """

    level: int = 0
    seconds: float | None = None


def judge(answer: object) -> tuple[ConsumeResult, Retry]:
    """The verdict on one message, and how to retry it if so. What makes no sense is a TypeError naming it."""
    if answer is None or answer is True or answer is ConsumeResult.SUCCESS:
        return ConsumeResult.SUCCESS, _BY_BROKER
    if answer is False:
        return ConsumeResult.RETRY, _BY_BROKER
    if isinstance(answer, ConsumeResult):
        return answer, _BY_BROKER
    if isinstance(answer, Retry):
        return ConsumeResult.RETRY, answer
    raise TypeError(
        f"the handler returned {type(answer).__name__}: return nothing or SUCCESS when the message is handled, "
        "RETRY or Retry(level) when it has to come again"
    )


_BY_BROKER: Final = Retry()
