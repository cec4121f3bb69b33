"""The order within a queue of an orderly group: no message is begun before all before it were handled successfully.

What is compared is the first begin of a message with the first success of each before it. So a repetition is no
disorder, as long as nothing was skipped. Messages that were never handled are findings of another family. A batch is
begun as one. After a reset, or when a topic was made anew, a queue begins anew.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator

from rocketfleet.testing.checker.finding import FindingFamily, HistoryFinding
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.checker.run_record import RecordedHandling, RunRecord
from rocketfleet.testing.history import ChangeName


def disorder(record: RunRecord, promises: Promises) -> Iterator[HistoryFinding]:
    """One finding for each message that was begun too early."""
    if not promises.orderly:
        return
    for queue, handlings in record.by_queue.items():
        beginnings = sorted(
            [
                *(reset.at for reset in record.resets if reset.queue == queue),
                *(change.at for change in record.topic_changes(queue, ChangeName.TOPIC_CREATED)),
            ]
        )
        epochs: dict[int, list[RecordedHandling]] = {}
        for handling in handlings:
            epochs.setdefault(bisect_right(beginnings, handling.begin), []).append(handling)
        for epoch in epochs.values():
            yield from _disorder(queue, epoch)


def _disorder(queue: str, handlings: list[RecordedHandling]) -> Iterator[HistoryFinding]:
    first: dict[int, RecordedHandling] = {}
    done: dict[int, RecordedHandling] = {}
    for handling in handlings:
        first.setdefault(handling.offset, handling)
        if handling.succeeded and (handling.offset not in done or handling.end < done[handling.offset].end):
            done[handling.offset] = handling
    latest: RecordedHandling | None = None  # of all before, the one that was done last
    of_call: RecordedHandling | None = None  # the same of the call that is being looked at
    call: object = None
    for offset in sorted(first):
        begun = first[offset]
        if call is None or begun.begun.details.get("call") != call:
            latest, of_call = _later(latest, of_call), None
            call = begun.begun.details.get("call")
        if latest is not None and begun.begin < latest.end:
            yield HistoryFinding(
                FindingFamily.OUT_OF_ORDER,
                f"offset {offset} of {queue} was begun by {begun.member} {latest.end - begun.begin:.3f} s before "
                f"offset {latest.offset} was done by {latest.member}",
                begun.begin,
                latest.end,
                queue,
                (latest.message, begun.message),
            )
        of_call = _later(of_call, done.get(offset))


def _later(one: RecordedHandling | None, other: RecordedHandling | None) -> RecordedHandling | None:
    return max(
        (handling for handling in (one, other) if handling is not None),
        key=lambda handling: handling.end if handling.end < math.inf else -math.inf,
        default=None,
    )
