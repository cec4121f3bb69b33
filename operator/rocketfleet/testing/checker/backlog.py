"""At the end, when everything is healed and the group had its time: nothing is left behind.

Judged only where the record says that it is the end, and has both ends and offsets; messages that nobody handled are
findings of another family anyway.
"""

from collections.abc import Iterator

from rocketfleet.testing.checker.finding import FindingFamily, HistoryFinding
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.checker.run_record import RunRecord
from rocketfleet.testing.history import ChangeName, EventKind


def backlog(record: RunRecord, _promises: Promises) -> Iterator[HistoryFinding]:
    """One finding for each queue."""
    if not record.history.kind(EventKind.END_OF_RUN):
        return
    ends = {
        event.queue: event for event in record.history.kind(EventKind.END_OFFSET) if event.offset is not None
    }  # the last one counts
    for queue, end in ends.items():
        seen = record.commits.get(queue)
        if not seen or any(record.topic_changes(queue, ChangeName.TOPIC_DELETED)):
            continue
        at, committed, *_ = seen[-1]
        assert end.offset is not None
        if committed < end.offset:
            yield HistoryFinding(
                FindingFamily.STUCK,
                f"{queue} ends at offset {end.offset} and the group is at {committed} when all is healed",
                min(at, end.at),
                max(at, end.at),
                queue,
            )
