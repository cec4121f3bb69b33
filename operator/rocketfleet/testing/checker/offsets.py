"""Offsets at the broker go forward. What may set them back: a reset, a topic that is made anew, and a broker that is
killed: it has forgotten the seconds in which it had not saved them, until it is told again.
"""

from collections.abc import Iterator, Sequence

from rocketfleet.testing.checker.finding import FindingFamily, HistoryFinding
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.checker.run_record import RunRecord, broker_of
from rocketfleet.testing.history import ChangeName, FaultName


def offsets_gone_back(record: RunRecord, promises: Promises) -> Iterator[HistoryFinding]:
    """One finding for each step back."""
    for queue, commits in record.commits.items():
        highest_at, highest = -1.0, -1
        for at, offset in commits:
            if offset < highest and not _explained(record, promises, queue, commits, highest_at, at, offset):
                yield HistoryFinding(
                    FindingFamily.WENT_BACK,
                    f"the offset of {queue} was {highest} and then {offset}, {at - highest_at:.3f} s later",
                    highest_at,
                    at,
                    queue,
                )
            highest_at, highest = at, offset


def _explained(
    record: RunRecord,
    promises: Promises,
    queue: str,
    commits: Sequence[tuple[float, int]],
    before: float,
    at: float,
    offset: int,
) -> bool:
    if any(reset.offset <= offset for reset in record.resets_over(queue, offset, before, at)):
        return True
    anew = record.topic_changes(queue, ChangeName.TOPIC_DELETED, ChangeName.TOPIC_CREATED)
    if any(before <= change.at <= at for change in anew):
        return True
    broker = broker_of(queue)
    if any(fault.overlaps(before, at) for fault in record.faults_of(broker, FaultName.BROKER_LOST)):
        return True
    for fault in record.faults_of(broker, FaultName.BROKER_KILLED):
        # The step is seen at the first look after its return, however long that takes.
        saved = max((seen for when, seen in commits if when <= fault.start - promises.broker_saves), default=-1)
        if fault.overlaps(before, at) and offset >= saved:
            return True
    return False
