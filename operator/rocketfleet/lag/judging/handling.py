"""How handlers get on: attempts that failed, and messages that wait for another one. From counts that only grow. Pure.

Theory. A failed message goes back to the broker, which keeps it in a topic of its own until a delay is over, 10 seconds
after the first failure and two hours after the last, and only then puts it into the group's retry topic. Nobody can ask
how many of a group's messages wait there: so a group whose every message fails seems to have no lag. Two things tell:

| who consumes | attempts | failures |
|---|---|---|
| our workers | what they count themselves | the same |
| others | offsets that move, in the retry topic too | messages that come due there: they failed a while ago |

What counts is the last minute in which anything was attempted, however long ago that was: a group whose messages all
wait for their next try attempts nothing meanwhile, and has not recovered.

**Delayed**: what our workers have sent back has arrived neither in the retry topic nor among the dead letters. It is
known since we began to look, so there may be more; nothing waits for longer than `LONGEST_DELAY`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rocketfleet.lag.figures import Attempts

if TYPE_CHECKING:
    from rocketfleet.lag.figures import GroupLag

SPAN: Final = 60.0
LONGEST_DELAY: Final = 2 * 3600.0 + 600.0


@dataclass(frozen=True, slots=True)
class Handling:
    """What is remembered of a group from one moment to the next."""

    before: GroupLag | None = None  # the last moment; what was not read then is of an earlier one
    steps: tuple[Attempts, ...] = ()  # when something was attempted, the newest last, no more than SPAN of them
    delayed: int = 0
    sent_back_at: float = 0.0

    def after(self, moment: GroupLag) -> tuple[Handling, GroupLag]:
        """With one more moment; and that moment with what is known now."""
        before = self.before
        step = None if before is None else attempted(before, moment)
        steps = self.steps
        if step is not None and (step.tried or step.failed):
            steps = (*(one for one in steps if one.at > step.at - SPAN), step)
        delayed, sent_back_at = self._delayed(moment)
        known = replace(
            moment,
            attempts=together(steps),
            delayed=None if moment.work is None else delayed,
        )
        return Handling(_filled(known, before), steps, delayed, sent_back_at), known

    def reset(self) -> Handling:
        """What was before says nothing about what is. What waits still does."""
        return replace(self, steps=())

    def _delayed(self, moment: GroupLag) -> tuple[int, float]:
        before, at = self.before, moment.observed_at
        if before is None or before.work is None or moment.work is None:
            return self.delayed, self.sent_back_at or at
        sent = max(0, moment.work.sent_back - before.work.sent_back)
        sent_back_at = at if sent else self.sent_back_at
        arrived = _growth(before.retry_end, moment.retry_end), _growth(before.dlq_end, moment.dlq_end)
        if any(one is not None and one < 0 for one in arrived):
            return 0, sent_back_at  # the topic was made again
        left = max(0, self.delayed + sent - sum(one or 0 for one in arrived))
        return 0 if at - sent_back_at > LONGEST_DELAY else left, sent_back_at


def attempted(before: GroupLag, now: GroupLag) -> Attempts | None:
    """What was attempted between two moments; None: that cannot be told."""
    at = now.observed_at
    if before.work is not None and now.work is not None:
        failed = max(0, now.work.failed - before.work.failed)
        return Attempts(at, max(failed, now.work.tried - before.work.tried), failed)
    came, done = _growth(before.retry_end, now.retry_end), _growth(before.retry_done, now.retry_done)
    if came is None or done is None or came < 0 or now.work is not None:
        return None
    places = {row.queue: row.consumer_offset for row in before.queues}
    moved = (
        max(0, row.consumer_offset - old)
        for row in now.queues
        if row.consumer_offset is not None and (old := places.get(row.queue)) is not None
    )
    return Attempts(at, max(0, done) + sum(moved), came)


def _filled(moment: GroupLag, before: GroupLag | None) -> GroupLag:
    """The moment with the last that was known of what it does not know."""
    if before is None:
        return moment
    return replace(
        moment,
        work=moment.work or before.work,
        retry_end=before.retry_end if moment.retry_end is None else moment.retry_end,
        retry_done=before.retry_done if moment.retry_done is None else moment.retry_done,
        dlq_end=before.dlq_end if moment.dlq_end is None else moment.dlq_end,
    )


def together(steps: tuple[Attempts, ...]) -> Attempts | None:
    """Several as one, of the time of the last."""
    if not steps:
        return None
    return Attempts(steps[-1].at, sum(one.tried for one in steps), sum(one.failed for one in steps))


def _growth(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before
