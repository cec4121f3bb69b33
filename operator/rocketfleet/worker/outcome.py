"""How a member or a driver ended: its exit code, and where each queue stood. Reports and last words come from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rocketfleet.consumer.handover.holdings import FinalOffset
from rocketfleet.control import exit_codes
from rocketfleet.control.messages import DrainOutcome, DrainReport, FinalOffsetReport
from rocketfleet.wire.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended. `sentence` says why, where a driver failed."""

    code: int
    final: Mapping[MessageQueue, FinalOffset] = field(default_factory=dict)
    seconds: float = 0.0
    sentence: str | None = None

    @property
    def confirmed(self) -> bool:
        return all(end.confirmed for end in self.final.values())

    @property
    def unfinished(self) -> int:
        """Messages whose handlers were cut short: they are not committed, and come again."""
        return sum(end.unfinished for end in self.final.values())

    def report(self, group: str, client_id: str) -> DrainReport:
        """What /drain answers."""
        return DrainReport(
            confirmed=self.confirmed,
            queues=tuple(
                FinalOffsetReport(queue, end.offset, client_id, end.confirmed, end.unfinished)
                for queue, end in sorted(self.final.items())
            ),
            unfinished=self.unfinished,
            exit_code=self.code,
            seconds=round(self.seconds, 3),
            group=group,
            client_ids=(client_id,),
        )

    @property
    def last_words(self) -> DrainOutcome:
        """One that never joined has confirmed nothing, although it had no queue."""
        offsets = {queue: end.offset for queue, end in self.final.items()}
        return DrainOutcome(exit_codes.is_confirmed(self.code), offsets, unfinished=self.unfinished)
