"""All families of findings over one history."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from rocketfleet.testing.checker.backlog import backlog
from rocketfleet.testing.checker.doubles import doubles
from rocketfleet.testing.checker.finding import HistoryFinding, excerpt
from rocketfleet.testing.checker.history_verdict import HistoryVerdict
from rocketfleet.testing.checker.losses import losses
from rocketfleet.testing.checker.offsets import offsets_gone_back
from rocketfleet.testing.checker.order import disorder
from rocketfleet.testing.checker.promises import Promises
from rocketfleet.testing.checker.repetitions import repetitions
from rocketfleet.testing.checker.run_record import RunRecord, take_apart
from rocketfleet.testing.checker.unowned import unowned_queues
from rocketfleet.testing.history import EventHistory

_EXCERPTS = 10  # of each family; a run that went wrong as a whole has thousands of findings
_PROMISES = Promises()


def check(history: EventHistory, promises: Promises = _PROMISES) -> HistoryVerdict:
    """Compare a history with what is promised. The history is taken for complete: what is not in it did not happen."""
    record = take_apart(history)
    repeated, excused = repetitions(record, promises)
    families = (
        losses(record, promises),
        repeated,
        disorder(record, promises),
        doubles(record, promises),
        offsets_gone_back(record, promises),
        unowned_queues(record, promises),
        backlog(record, promises),
    )
    handled = sum(any(one.succeeded for one in handlings) for handlings in record.by_message.values())
    return HistoryVerdict(
        len({event.message for event in record.sent}),
        handled,
        tuple(chain.from_iterable(_with_excerpts(record, family) for family in families)),
        excused,
    )


def _with_excerpts(record: RunRecord, findings: Iterable[HistoryFinding]) -> Iterable[HistoryFinding]:
    for number, finding in enumerate(sorted(findings, key=lambda finding: (finding.family, finding.begin))):
        yield replace(finding, excerpt=excerpt(record, finding)) if number < _EXCERPTS else finding
