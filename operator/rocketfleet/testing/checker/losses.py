"""Messages that the broker acknowledged and that were never handled: not begun at all, or begun and never to success.

Not expected: what was sent before a LastOffset group began, what a reset forward skipped, what lay in a topic that was
deleted or on a broker's disk that was lost, and what ended among the dead letters.
"""

from collections.abc import Iterator

from rocketfleet.testing.checker.finding import FindingFamily, HistoryFinding
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.checker.run_record import RunRecord, broker_of
from rocketfleet.testing.history import ChangeName, FaultName, HistoryEvent


def losses(record: RunRecord, promises: Promises) -> Iterator[HistoryFinding]:
    """One finding for each message."""
    dead = {change.message for change in record.changes if change.details.get("what") == ChangeName.DEAD_LETTERED}
    begun_at = _group_began(record) if not promises.from_beginning else None
    judged: set[str] = set()
    for sent in record.sent:
        message = sent.message
        if message in judged or message in dead:
            continue
        judged.add(message)
        handlings = record.by_message.get(message, ())
        if any(handling.succeeded for handling in handlings):
            continue
        if begun_at is not None and sent.details.get("began", sent.at) < begun_at:
            continue
        if _superseded(record, sent):
            continue
        where = f"{message} in {sent.queue} at offset {sent.offset}"
        if not handlings:
            yield HistoryFinding(
                FindingFamily.UNSEEN, f"{where} was never begun", sent.at, sent.at, sent.queue, (message,)
            )
        else:
            members = ", ".join(sorted({handling.member for handling in handlings}))
            yield HistoryFinding(
                FindingFamily.LOST,
                f"{where} was begun by {members} and never handled successfully",
                sent.at,
                handlings[-1].begin,
                sent.queue,
                (message,),
            )


def _group_began(record: RunRecord) -> float | None:
    """From when on what is sent is the group's for certain."""
    moments = [change.at for change in record.changes if change.details.get("what") == ChangeName.GROUP_BEGAN]
    return min(moments, default=None)


def _superseded(record: RunRecord, sent: HistoryEvent) -> bool:
    offset = -1 if sent.offset is None else sent.offset
    began = sent.details.get("began", sent.at)
    if any(reset.offset > offset for reset in record.resets_over(sent.queue, offset, began, record.end)):
        return True
    if any(change.at >= began for change in record.topic_changes(sent.queue, ChangeName.TOPIC_DELETED)):
        return True
    return any(fault.end >= began for fault in record.faults_of(broker_of(sent.queue), FaultName.BROKER_LOST))
