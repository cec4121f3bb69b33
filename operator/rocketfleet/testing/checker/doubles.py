"""One owner at a time: no two members are inside handlers of messages of one queue at the same moment.

A handler that has begun cannot be stopped from outside. So where a member is cut off for longer than is tolerated, or
frozen until its lease is out, the promise ends at that moment for what it has in its handlers, and for what it begins
until it can know better; others may have the queue from then on. A handler that takes longer than a handover waits is
given up on.
"""

from collections.abc import Iterator

from rocketfleet.testing.checker.finding import FindingFamily, HistoryFinding
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.checker.run_record import RecordedHandling, RunRecord, broker_of
from rocketfleet.testing.history import FaultName

_KNOWS_BETTER = 1.0  # seconds after its connection is back in which a member may still begin what it had pulled


def doubles(record: RunRecord, promises: Promises) -> Iterator[HistoryFinding]:
    """One finding for each handling that began while another member was inside one."""
    if not promises.exclusive:
        return
    for queue, handlings in record.by_queue.items():
        inside: dict[str, tuple[float, RecordedHandling]] = {}  # member → until when, and with what
        for handling in handlings:
            until = _exclusive_until(record, promises, handling)
            for member, (end, other) in inside.items():
                # Its own claim may have ended before the other began: it goes on with what it had pulled.
                if member != handling.member and handling.begin < end and other.begin < until:
                    yield HistoryFinding(
                        FindingFamily.DOUBLE,
                        f"{handling.member} began offset {handling.offset} of {queue} while {member} was inside its "
                        f"handler with offset {other.offset} for {end - handling.begin:.3f} s more",
                        handling.begin,
                        end,
                        queue,
                        (other.message, handling.message),
                    )
            if handling.member not in inside or until > inside[handling.member][0]:
                inside[handling.member] = until, handling


def _exclusive_until(record: RunRecord, promises: Promises, handling: RecordedHandling) -> float:
    """Until when nobody else may be inside a handler of the queue because of this handling."""
    member, broker = handling.member, broker_of(handling.queue)
    begin, until = handling.begin, min(handling.end, handling.begin + promises.handover_timeout)
    if not record.struck(member) and not record.struck(broker):
        return until
    for fault in record.faults_of(member, FaultName.CUT, FaultName.LOSSY):
        if (
            fault.lasted >= promises.tolerated_cut
            and fault.concerns(broker)
            and fault.overlaps(begin - _KNOWS_BETTER, until)
        ):
            until = min(until, fault.start + promises.tolerated_cut)
    for fault in record.faults_of(member, FaultName.FROZEN):
        if fault.lasted >= promises.shortest_lease and fault.overlaps(begin, until):
            until = min(until, fault.start + promises.shortest_lease)
    for fault in record.faults_of(
        broker,
        FaultName.BROKER_KILLED,
        FaultName.BROKER_LOST,
        FaultName.BROKER_STOPPED,
        FaultName.BROKER_FROZEN,
        FaultName.BROKER_CUT,
    ):
        if fault.lasted >= promises.broker_hold and fault.overlaps(begin, until):
            until = min(until, fault.start + promises.broker_hold)
    for one in (member, broker):
        for fault in record.faults_of(one, FaultName.CLOCK_JUMPED):
            # The owner learns at its next renewal that its lock has ended.
            jump = abs(fault.event.details.get("seconds", 0.0))
            if jump >= promises.clock_jump and begin - promises.renewal_seconds <= fault.start <= until:
                until = min(until, fault.start)
    return until
