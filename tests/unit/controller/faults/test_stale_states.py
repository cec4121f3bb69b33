"""What is read is older than what is there: each read, and each moment that it may be of.

Three ways to see an old state, each at every point of an undisturbed run:

- A single read of the API server, an object or a list, is answered from each older state that would answer otherwise.
- The watch stands still: from one change on, everything is told seconds late.
- The operator dies after a write, and the next one finds an API server that is behind: its first lists, and all that it
  is told for seconds, are of an older state ("time travel"): that of the beginning, or of a moment ago. It
  may write more then, and make a pod that is one too many for an update, but comes to the same end.

Kubernetes itself answers a read without `resourceVersion` from the newest state, so the first and the last are worse
than what it promises. Only what it says of a single object, when it has just refused a write to it, is believed there.

These are the stale-state bugs of Sieve (Sun et al., OSDI '22), enumerated, not sampled.
"""

import asyncio
from collections.abc import Iterator

import pytest
from tests.unit.controller.faults.api_server import GROUPS, Asked, Change
from tests.unit.controller.faults.operator_process import LATENCY, WATCHED, Faults, Run, Verdict
from tests.unit.controller.faults.scenarios import (
    STORIES,
    Ending,
    Moment,
    Read,
    Story,
    Undisturbed,
    at_rest,
    end_state,
    pods_made,
    tell,
    undisturbed,
)
from tests.unit.controller.faults.virtual_time import run
from tests.unit.controller.faults.world import now

BEHIND = 3.0  # seconds: the operator has planned many times by then
MORE_WRITES = 16


class OneOldRead(Faults):
    """The read with this number is answered as it would have been at this version."""

    def __init__(self, number: int, version: int) -> None:
        self.number, self.version = number, version
        self._asked = -1

    def api(self, asked: Asked) -> Verdict:
        if not asked.writes:
            self._asked += 1
            if self._asked == self.number:
                return Verdict(as_of=self.version)
        return super().api(asked)


class Standstill(Faults):
    """From the change with this number on, everything is told only when so many seconds have passed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.until = 0.0

    def told(self, number: int, change: Change) -> float | None:
        if number == self.number:
            self.until = now() + BEHIND
        return max(LATENCY, self.until - now() + LATENCY * (number - self.number) / 1000)


class Behind(Faults):
    """An API server that is as it was at this version, until so many seconds have passed."""

    def __init__(self, version: int, until: float) -> None:
        self.version, self.until = version, until

    def api(self, asked: Asked) -> Verdict:
        if not asked.writes and not asked.key[2] and now() < self.until:
            return Verdict(as_of=self.version)
        return super().api(asked)

    def told(self, number: int, change: Change) -> float | None:
        return max(LATENCY, self.until - now() + LATENCY * number / 1000)


def with_faults(plain: Undisturbed, faults: Faults) -> Ending:
    """The whole story."""
    rested, time = at_rest(plain.story.name)

    async def main() -> Ending:
        world = rested.fork()
        async with Run(world, faults) as one:
            await one.settle()
            before = len(world.writes)
            await tell(plain.story, one, 0)
        return Ending(end_state(world), pods_made(world, plain.began), len(world.writes) - before, world.wrongs)

    return run(time, main)


def restarted(plain: Undisturbed, moment: Moment, version: int) -> Ending:
    """The rest of it, with an operator that begins at an API server that is behind."""

    async def main() -> Ending:
        world = moment.world.fork()
        life = asyncio.create_task(world.live())
        await asyncio.sleep(0.1)
        life.cancel()
        async with Run(world, Behind(version, now() + BEHIND)) as one:
            await tell(plain.story, one, moment.steps)
        return Ending(end_state(world), pods_made(world, plain.began), moment.number + len(world.writes), world.wrongs)

    return run(moment.time, main)


def older_answers(plain: Undisturbed, read: Read) -> Iterator[int]:
    """Versions at which this read would have been answered otherwise, one of each such answer."""
    log = plain.moments[-1].world.server.log
    touched = [change for change in log if change.version <= read.version and concerns(read.what, change)]
    for before, _ in zip([0, *(change.version for change in touched)], touched, strict=False):
        if before >= plain.began or touched[0].version > plain.began:
            yield before


def older_lists(plain: Undisturbed, moment: Moment) -> list[int]:
    """Versions at which lists were others. Of an object that is being deleted, or gone, those at which that was to be
    seen: who does not know of it would prepare the group at its brokers once more, and nobody would clear up after it.
    That it is known is what Kubernetes promises, and no operator could tell by itself.
    """
    told = [change for change in moment.world.server.log if change.key[0] in WATCHED]
    deleted = [one.version for one in told if one.key[0] == GROUPS and one.body["metadata"].get("deletionTimestamp")]
    first = deleted[0] if deleted else plain.began
    return sorted({first, *(change.version for change in told if change.version > first)})


def concerns(what: str, change: Change) -> bool:
    plural, _, name = what.removeprefix("GET ").partition("/")
    return change.key[0] == plural and name in ("", change.key[2])


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_an_old_answer_to_any_read_changes_nothing_in_the_end(story: Story) -> None:
    plain = undisturbed(story.name)
    bad, count = {}, 0
    for read in plain.reads:
        for version in older_answers(plain, read):
            count += 1
            found = with_faults(plain, OneOldRead(read.number, version)).judged(plain, more_writes=MORE_WRITES)
            if found:
                bad[f"read {read.number}, {read.what}, as of {version} instead of {read.version}"] = found
    print(f"{story}: {len(plain.reads)} reads, {count} older answers, {len(bad)} ends were others")
    assert not bad, "\n".join(f"{where}: {what}" for where, what in bad.items())


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_a_watch_that_stands_still_anywhere_changes_nothing_in_the_end(story: Story) -> None:
    plain = undisturbed(story.name)
    bad = {}
    begins = [number for number, news in enumerate(plain.news) if news]  # what is no news may be late as it likes
    for number in begins:
        found = with_faults(plain, Standstill(number)).judged(plain, more_writes=MORE_WRITES)
        if found:
            bad[f"from change {number} on"] = found
    print(f"{story}: the watch stood still at {len(begins)} changes, {len(bad)} ends were others")
    assert not bad, "\n".join(f"{where}: {what}" for where, what in bad.items())
    assert begins


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_an_operator_that_begins_in_the_past_comes_to_the_same_end(story: Story) -> None:
    plain = undisturbed(story.name)
    bad, count = {}, 0
    for moment in plain.moments:
        versions = older_lists(plain, moment)
        for version in sorted({*versions[:1], *versions[-2:-1]}):
            count += 1
            found = restarted(plain, moment, version).judged(plain, more_writes=None)
            if found:
                bad[f"after write {moment.number}, {moment.what}, as of {version}"] = found
    print(f"{story}: {count} restarts in the past, {len(bad)} ends were others")
    assert not bad, "\n".join(f"{where}: {what}" for where, what in bad.items())
