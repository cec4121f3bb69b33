"""The operator dies after every single write, and another one goes on from what is there: the end is the same.

Each write of an undisturbed run, to the API server or to a broker, is a moment at which the operator may end: what it
had written is there, whatever else it meant to do is not, and what it remembered is gone. From each of these moments
another operator begins, at once or when a drain that was asked for is long over. It must come to the end state of the
run that nobody disturbed, with as many pods created and removed, and not many more writes.

These are the intermediate-state bugs of Sieve (Sun et al., OSDI '22), enumerated, not sampled.
"""

import asyncio

import pytest
from tests.unit.controller.faults.operator_process import Run
from tests.unit.controller.faults.scenarios import (
    STORIES,
    Ending,
    Moment,
    Story,
    Undisturbed,
    end_state,
    pods_made,
    tell,
    undisturbed,
)
from tests.unit.controller.faults.virtual_time import run

AT_ONCE, LATE = 0.1, 12.0  # seconds until the next operator begins
MORE_WRITES = 8  # what the next operator writes once more: a status, who has begun


def go_on(plain: Undisturbed, moment: Moment, after: float) -> Ending:
    """The rest of the story, with another operator."""

    async def main() -> Ending:
        world = moment.world.fork()
        life = asyncio.create_task(world.live())
        await asyncio.sleep(after)
        life.cancel()
        async with Run(world) as one:
            await tell(plain.story, one, moment.steps)
        return Ending(end_state(world), pods_made(world, plain.began), moment.number + len(world.writes), world.wrongs)

    return run(moment.time, main)


@pytest.mark.parametrize("after", [AT_ONCE, LATE], ids=["at once", "later"])
@pytest.mark.parametrize("story", STORIES, ids=str)
def test_whenever_the_operator_dies_the_next_one_comes_to_the_same_end(story: Story, after: float) -> None:
    plain = undisturbed(story.name)
    bad = {}
    for moment in plain.moments:
        found = go_on(plain, moment, after).judged(plain, more_writes=MORE_WRITES)
        if found:
            bad[f"after write {moment.number}, {moment.what}"] = found
    print(f"{story}: the operator died at {len(plain.moments)} moments, {len(bad)} ends were others")
    assert not bad, "\n".join(f"{where}: {what}" for where, what in bad.items())
    assert plain.moments, "nothing was written: nothing is tested"
