"""Where a queue starts when its new owner asks the broker for the group's offset.

The answer has three shapes: an offset, "none stored", or an error; an error is the caller's to retry and never
becomes "none". What follows from them:

| stored | LastOffset | FirstOffset | Timestamp |
|---|---|---|---|
| an offset | that | that | that |
| none, retry topic | 0 | 0 | 0 |
| none, any other topic | where the group began (`beginning.py`) | 0 | first message stored at or after the time |

A retry topic is the group's own, and nothing in it may be skipped: its queue is created, and messages may fail, before
its first owner looks. (Java starts Timestamp groups at its end, and gets away with it by the broker's quirk below.)

0 means "the beginning": the broker answers a pull below the minimum with OFFSET_MOVED and the offset to go on from.

The broker's quirk: for a group without an offset on a young queue (minimum 0 and that data still in memory) it
answers 0 instead of "none", so a LastOffset group may start at the beginning. Native keeps that, as Java does. Strict
asks the broker not to (`setZeroIfNotFound=false`) and gets "none".

Only the table is shared. Whoever reads it asks the brokers in its own way: a member takes 0 for the beginning, since to
ask for it takes one more right (`offsets.py`); a broadcasting one knows from its file when it began, and may ask a
slave (`local_offsets.py`); the operator writes down where the queue begins now, from which lag is told
(`controller/rocketmq/group_preparation.py`); a Spark query needs offsets that lie within the queue
(`spark/source/cluster.py`).
"""

from enum import Enum, auto

from rocketfleet.wire.enums import ConsumeFromWhere
from rocketfleet.wire.topics import RETRY_PREFIX


class Start(Enum):
    """What to ask the broker for, when no offset is stored."""

    BEGINNING = auto()
    END = auto()
    BY_TIME = auto()


def start_without_offset(where: ConsumeFromWhere, topic: str) -> Start:
    """The row "none stored" of the table above."""
    if where is ConsumeFromWhere.FIRST_OFFSET or topic.startswith(RETRY_PREFIX):
        return Start.BEGINNING
    return Start.END if where is ConsumeFromWhere.LAST_OFFSET else Start.BY_TIME
