"""Which fault explains that a message came again after it had been handled.

A handled message is safe as soon as the broker has an offset beyond it. Until then there is one window, from the begin
of its handler to that moment, in which the death of its member, or the loss of its connection for longer than is
tolerated, makes it come again. Two facts say when the window is closed, and the earlier one counts:

- somebody saw at the broker that the offset was beyond the message;
- everything that the member had begun in the queue was done, and the time to commit it was over. This is a promise and
  no observation: whoever commits later than promised is not excused by a kill that came in between. A fault that was on
  in the meantime puts it off.

A fault explains a repetition only if it was on in this window and before the repetition, struck this member or this
queue's broker, and is one that the promises except: a cut that was too short, a freeze that ended within the lease, or
a kill after the offset was safe explain nothing.
"""

from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.checker.run_record import RecordedHandling, RunRecord, broker_of
from rocketfleet.testing.history import ChangeName, FaultName

_OF_MEMBERS = (FaultName.KILLED, FaultName.FROZEN, FaultName.CUT, FaultName.LOSSY, FaultName.SLOWED)
_OF_BROKERS = (
    FaultName.BROKER_KILLED,
    FaultName.BROKER_STOPPED,
    FaultName.BROKER_LOST,
    FaultName.BROKER_FROZEN,
    FaultName.BROKER_CUT,
    FaultName.SLOWED,
)


def safe_from(record: RunRecord, promises: Promises, handling: RecordedHandling) -> float:
    """When the window of a handling was closed at the latest."""
    promised = record.committable(handling) + promises.commit_seconds
    faults = [
        *record.faults_of(handling.member, *_OF_MEMBERS),
        *record.faults_of(broker_of(handling.queue), *_OF_BROKERS),
    ]
    for fault in sorted(faults, key=lambda fault: fault.start):
        if fault.overlaps(handling.begin, promised):
            promised = max(promised, fault.end + promises.recovery)
    return min(record.confirmed(handling), promised)


def why_again(record: RunRecord, promises: Promises, before: RecordedHandling, again: RecordedHandling) -> str | None:
    """What explains that a message was handled again after `before`, in a word or two; None if nothing does."""
    begin, safe = before.begin, safe_from(record, promises, before)
    end, forgettable = (min(moment, again.begin) for moment in (safe, safe + promises.broker_saves))
    member, broker = before.member, broker_of(before.queue)
    for fault in record.faults_of(member, FaultName.KILLED):
        if fault.overlaps(begin, end):
            return "member killed"
    for fault in record.faults_of(member, FaultName.FROZEN):
        if fault.overlaps(begin, end) and fault.lasted >= promises.shortest_lease:
            return "member frozen"
    for fault in record.faults_of(member, FaultName.CUT, FaultName.LOSSY):
        if fault.overlaps(begin, end) and fault.lasted >= promises.tolerated_cut and fault.concerns(broker):
            return "member cut off" if fault.name == FaultName.CUT else "packets of the member lost"
    for fault in record.faults_of(broker, FaultName.BROKER_CUT, FaultName.BROKER_FROZEN):
        if fault.overlaps(begin, end) and fault.lasted >= promises.tolerated_cut:
            return "broker cut off" if fault.name == FaultName.BROKER_CUT else "broker frozen"
    for fault in record.faults_of(broker, FaultName.BROKER_KILLED, FaultName.BROKER_LOST):
        # It forgets what it had not saved; a member that is still there tells it again. What failed is on its way back
        # to the broker for a moment.
        busy = before.end + (promises.commit_seconds if before.failed else 0.0)
        if fault.overlaps(begin, forgettable) and (
            busy >= fault.start
            or not _could_tell(record, promises, member, fault.start, min(again.begin, fault.end + promises.recovery))
        ):
            return "broker killed"
    for one in (member, broker):
        for fault in record.faults_of(one, FaultName.CLOCK_JUMPED):
            jump = abs(fault.event.details.get("seconds", 0.0))
            if jump >= promises.clock_jump and begin - promises.renewal_seconds <= fault.start <= end:
                return "clock jumped"
    lasted = before.end - begin
    if lasted >= promises.consume_timeout or (again.member != member and lasted >= promises.handover_timeout):
        return "handled for too long"
    return None


def was_asked_back(record: RunRecord, before: RecordedHandling, again: RecordedHandling) -> bool:
    """Whether a reset of the queue explains it."""
    resets = record.resets_over(again.queue, again.offset, before.begin, again.begin)
    if any(reset.offset <= again.offset for reset in resets):
        return True
    changes = record.topic_changes(again.queue, ChangeName.TOPIC_DELETED, ChangeName.TOPIC_CREATED)
    return any(before.begin <= change.at <= again.begin for change in changes)


def _could_tell(record: RunRecord, promises: Promises, member: str, begin: float, end: float) -> bool:
    """Whether a member was there, and not cut off, all the time."""
    lives = record.lives.get(member, ())
    if not any(joined <= begin and gone > end for joined, gone in lives):
        return False
    hindrances = record.faults_of(member, FaultName.FROZEN, FaultName.CUT, FaultName.LOSSY)
    return not any(fault.overlaps(begin, end) and fault.lasted >= promises.tolerated_cut for fault in hindrances)
