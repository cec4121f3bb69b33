"""Offsets at the broker go forward. What may set them back: a reset, a topic that is made anew, and a broker that is
killed: it has forgotten the seconds in which it had not saved them, until it is told again.
"""

from collections.abc import Iterator, Sequence

from rocketfleet.testing.checker.finding import FindingFamily, HistoryFinding
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.checker.run_record import CommitSeen, RunRecord, began, broker_of
from rocketfleet.testing.history import ChangeName, FaultName


def offsets_gone_back(record: RunRecord, promises: Promises) -> Iterator[HistoryFinding]:
    """One finding for each step back."""
    for queue, commits in record.commits.items():
        before: CommitSeen | None = None
        for seen in commits:
            if before is not None and seen.offset < before.offset:
                if seen.by_leaver:
                    continue  # it left earlier, and somebody has committed since
                if not _explained(record, promises, queue, commits, before, seen):
                    yield HistoryFinding(
                        FindingFamily.WENT_BACK,
                        f"the offset of {queue} was {before.offset} and then {seen.offset}, "
                        f"{seen.at - before.at:.3f} s later",
                        before.at,
                        seen.at,
                        queue,
                    )
            before = seen


def _explained(
    record: RunRecord,
    promises: Promises,
    queue: str,
    commits: Sequence[CommitSeen],
    before: CommitSeen,
    seen: CommitSeen,
) -> bool:
    begin, end, offset = before.began, seen.at, seen.offset
    if any(reset.offset <= offset for reset in record.resets_over(queue, offset, begin, end)):
        return True
    anew = record.topic_changes(queue, ChangeName.TOPIC_DELETED, ChangeName.TOPIC_CREATED)
    if any(begin <= change.at and began(change) <= end for change in anew):
        return True
    broker = broker_of(queue)
    if any(fault.overlaps(begin, end) for fault in record.faults_of(broker, FaultName.BROKER_LOST)):
        return True
    for fault in record.faults_of(broker, FaultName.BROKER_KILLED):
        # The step is seen at the first look after its return, however long that takes.
        saved = max((one.offset for one in commits if one.at <= fault.start - promises.broker_saves), default=-1)
        if fault.overlaps(begin, end) and offset >= saved:
            return True
    return False
