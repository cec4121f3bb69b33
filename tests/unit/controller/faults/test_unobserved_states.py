"""One thing that the watch never tells: the next list tells it, and the end is the same.

Each change that the operator was told of in an undisturbed run, and that was news to it, is left out once. Changes that
were no news, mostly the echo of its own writes, cannot matter: the view keeps nothing of them. When nothing happens any
more the lists are read again, as the operator does every hour and whenever kopf has lost its place in a watch.

These are the unobserved-state bugs of Sieve (Sun et al., OSDI '22), enumerated, not sampled.
"""

import pytest
from tests.unit.controller.faults.api_server import Change
from tests.unit.controller.faults.operator_process import Faults, Run
from tests.unit.controller.faults.scenarios import (
    STORIES,
    Ending,
    Story,
    Undisturbed,
    at_rest,
    end_state,
    pods_made,
    undisturbed,
    wait,
)
from tests.unit.controller.faults.virtual_time import run

MORE_WRITES = 12


class Unheard(Faults):
    """The change with this number is never told."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.what = ""

    def told(self, number: int, change: Change) -> float | None:
        if number == self.number:
            self.what = f"{change.kind} {'/'.join(change.key)}"
            return None
        return super().told(number, change)


def go_on(plain: Undisturbed, faults: Unheard) -> Ending:
    """The story without that change."""
    rested, time = at_rest(plain.story.name)

    async def main() -> Ending:
        world = rested.fork()
        async with Run(world, faults) as one:
            await one.settle()
            before = len(world.writes)
            for number, step in enumerate(plain.story.steps, 1):
                step(world)
                await wait(plain.story, one, number)
                if plain.story.pause is None or number == len(plain.story.steps):
                    await one.operator.relist()
                    await one.settle()
        return Ending(end_state(world), pods_made(world, plain.began), len(world.writes) - before, world.wrongs)

    return run(time, main)


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_whatever_a_watch_leaves_out_the_end_is_the_same(story: Story) -> None:
    plain = undisturbed(story.name)
    bad = {}
    heard = [number for number, news in enumerate(plain.news) if news]
    for number in heard:
        faults = Unheard(number)
        found = go_on(plain, faults).judged(plain, more_writes=MORE_WRITES)
        assert faults.what, "nothing was left out"
        if found:
            bad[f"without change {number}, {faults.what}"] = found
    print(f"{story}: {len(heard)} of {len(plain.news)} changes were news, {len(bad)} ends were others")
    assert not bad, "\n".join(f"{where}: {what}" for where, what in bad.items())
    assert heard, "nothing was news: nothing is tested"
