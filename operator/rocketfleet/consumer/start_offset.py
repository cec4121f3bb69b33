"""Where a queue starts when its new owner asks the broker for the group's offset.

The answer has three shapes: an offset, "none stored", or an error; an error is the caller's to retry and never
becomes "none". What follows from them:

| stored | LastOffset | FirstOffset | Timestamp |
|---|---|---|---|
| an offset | that | that | that |
| none, retry topic | 0 | 0 | end of the queue |
| none, any other topic | end of the queue | 0 | first message stored at or after the time |

0 means "the beginning": the broker answers a pull below the minimum with OFFSET_MOVED and the offset to go on from.

The broker's quirk: for a group without an offset on a young queue (minimum 0 and that data still in memory) it
answers 0 instead of "none", so a LastOffset group may start at the beginning. Native keeps that, as Java does. Strict
asks the broker not to (`setZeroIfNotFound=false`) and gets "none".
"""

from enum import Enum, auto

from rocketfleet.client.routes import RETRY_PREFIX
from rocketfleet.wire.bodies import ConsumeFromWhere


class Start(Enum):
    """What to ask the broker for, when no offset is stored."""

    BEGINNING = auto()
    END = auto()
    BY_TIME = auto()


def start_without_offset(where: ConsumeFromWhere, topic: str) -> Start:
    """The row "none stored" of the table above."""
    is_retry = topic.startswith(RETRY_PREFIX)
    if where is ConsumeFromWhere.FIRST_OFFSET:
        return Start.BEGINNING
    if where is ConsumeFromWhere.LAST_OFFSET:
        # A failed message of a group's first hour must not be skipped because its retry queue was just created.
        return Start.BEGINNING if is_retry else Start.END
    return Start.END if is_retry else Start.BY_TIME
