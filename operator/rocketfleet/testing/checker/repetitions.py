"""Messages that were handled successfully more than once, and what explains it.

Every success after the first is judged by itself, against the handling before it. A message may lie in more than one
place: what a concurrent handler failed comes again from the retry topic, and a sender that got no answer stores its
message twice.
"""

from collections.abc import Sequence
from itertools import pairwise

from rocketfleet.testing.checker.excuses import was_asked_back, why_again
from rocketfleet.testing.checker.finding import FindingFamily, HistoryFinding
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.checker.run_record import RecordedHandling, RunRecord


def repetitions(record: RunRecord, promises: Promises) -> tuple[list[HistoryFinding], dict[str, int]]:
    """The findings, and how many repetitions were excused by what."""
    findings: list[HistoryFinding] = []
    excused: dict[str, int] = {}
    for message, handlings in record.by_message.items():
        successes = [handling for handling in handlings if handling.succeeded]
        for before, again in pairwise(successes):
            earlier = [one for one in handlings if one is not again and one.begin <= again.begin]
            cause = "not promised" if promises.repeats else _cause(record, promises, before, again, earlier)
            if cause is not None:
                excused[cause] = excused.get(cause, 0) + 1
                continue
            apart = again.begin - before.end
            when = f"{apart:.3f} s later" if apart >= 0 else "meanwhile"
            findings.append(
                HistoryFinding(
                    FindingFamily.REPEATED,
                    f"{message} in {again.queue} at offset {again.offset} was handled by {before.member}, "
                    f"and {when} again by {again.member}; no fault explains it",
                    before.begin,
                    again.end,
                    again.queue,
                    (message,),
                )
            )
    return findings, excused


def _cause(
    record: RunRecord,
    promises: Promises,
    before: RecordedHandling,
    again: RecordedHandling,
    earlier: Sequence[RecordedHandling],
) -> str | None:
    if was_asked_back(record, before, again):
        return "offsets reset"
    if before.place == again.place:
        # What failed in between asked for it again; but that it came at all after the success has to be explained.
        failed = [one for one in earlier if one.place == again.place and one.failed and one.begin >= before.begin]
        return next(filter(None, (why_again(record, promises, before, one) for one in (*failed, again))), None)
    if again.tries == before.tries == 0:
        return "stored twice by its sender"
    # It went back to the broker, and its old place was not safe, or the broker has it twice.
    return next(filter(None, (why_again(record, promises, one, again) for one in earlier)), None)
