"""What becomes of a message that failed, as the broker decides it, and the words for the log. Pure.

A concurrent group sends a failed message back; the broker delivers it again until it has been retried
`max_reconsume_times` times, then files it under the dead letters. So a message has one attempt more than retries. An
orderly group counts by itself, and without a limit unless it is given one. Broadcasting has nobody to send it back to.
"""

from typing import Final

from rocketfleet.consumer.results import DEAD_LETTER_LEVEL
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.wire.topics import DEAD_LETTER_PREFIX

DEFAULT_MAX_RECONSUME_TIMES: Final = 16


def retries(settings: ConsumerSettings) -> int | None:
    """How often a message is retried; None is without end."""
    if settings.is_broadcasting:
        return 0
    if settings.max_reconsume_times >= 0:
        return settings.max_reconsume_times
    return None if settings.is_orderly else DEFAULT_MAX_RECONSUME_TIMES


def is_dead_letter(settings: ConsumerSettings, reconsume_times: int, level: int = 0) -> bool:
    """Whether a message that was retried so often goes to the dead letters when it fails once more."""
    limit = retries(settings)
    return not settings.is_broadcasting and (
        level <= DEAD_LETTER_LEVEL or (limit is not None and reconsume_times >= limit)
    )


def dead_letters(settings: ConsumerSettings) -> str:
    """The topic of the group's dead letters."""
    return DEAD_LETTER_PREFIX + settings.group


def attempt(settings: ConsumerSettings, reconsume_times: int) -> str:
    """`attempt 2 of 17`."""
    limit = retries(settings)
    return f"attempt {reconsume_times + 1}" + ("" if limit is None else f" of {limit + 1}")


def consequence(settings: ConsumerSettings, reconsume_times: int) -> str:
    """What happens next to a message whose handler raised."""
    if settings.is_broadcasting:
        return "broadcasting does not retry, it is dropped"
    if is_dead_letter(settings, reconsume_times):
        return f"it goes to the dead letters {dead_letters(settings)}"
    return "the queue waits and tries it again" if settings.is_orderly else "it will be delivered again"
