"""Offsets at the broker: never backwards, one at a time, and "none" is not an error nor the other way round."""

import asyncio
from typing import Any

import pytest
from tests.support.clock import Clock
from tests.support.waiting import turns, until
from tests.unit.consumer.model_broker import ADDRESS, ModelBroker, ModelClient, queue

from rocketfleet.client.errors import RequestTimeout, RocketMQError
from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.handover.ownership import CONFIRM_APART
from rocketfleet.consumer.offset_storage.offsets import BrokerOffsets
from rocketfleet.consumer.settings import ConsumerSettings, InitialOffset
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import reply_to
from rocketfleet.wire.enums import ConsumeFromWhere

WHERE = ConsumeFromWhere
UPDATE = RequestCode.UPDATE_CONSUMER_OFFSET
QUERY = RequestCode.QUERY_CONSUMER_OFFSET


class Scene:
    def __init__(self, confirm_apart: float = CONFIRM_APART, **settings: Any) -> None:
        self.broker = ModelBroker(Clock())
        self.broker.wall = 1.0
        self.tally = ConsumerCounters()
        self.client = ModelClient(self.broker)
        self.offsets = BrokerOffsets(
            self.client,  # type: ignore[arg-type]  # a model
            ConsumerSettings("g", (Subscription("t"),), **settings),
            self.tally,
            confirm_apart=confirm_apart,
        )

    @property
    def told(self) -> list[int]:
        return [offset for _, offset in self.broker.committed]


@pytest.mark.parametrize("mode", list(InitialOffset))
@pytest.mark.parametrize("where", [WHERE.LAST_OFFSET, WHERE.FIRST_OFFSET])
async def test_a_stored_offset_wins(mode: InitialOffset, where: ConsumeFromWhere) -> None:
    scene = Scene(consume_from_where=where, initial_offset=mode)
    scene.broker.store(queue(), 10)
    scene.broker.offsets[queue()] = 4
    assert await scene.offsets.start(queue()) == 4


@pytest.mark.parametrize(
    ("settings", "start"),
    [
        ({"consume_from_where": WHERE.LAST_OFFSET}, 10),
        ({"consume_from_where": WHERE.FIRST_OFFSET}, 0),
        ({"consume_from_where": WHERE.TIMESTAMP, "consume_timestamp": 0.007}, 7),
        # The broker answers 0 for a young queue, and Native believes it.
        ({"consume_from_where": WHERE.LAST_OFFSET, "initial_offset": InitialOffset.NATIVE}, 0),
        (
            {
                "consume_from_where": WHERE.TIMESTAMP,
                "consume_timestamp": 0.007,
                "initial_offset": InitialOffset.NATIVE,
            },
            0,
        ),
    ],
)
async def test_without_a_stored_offset_the_settings_decide(settings: dict[str, Any], start: int) -> None:
    scene = Scene(**settings)
    scene.broker.store(queue(), 10)
    assert await scene.offsets.start(queue()) == start


@pytest.mark.parametrize(
    ("settings", "start"),
    [
        ({"consume_from_where": WHERE.LAST_OFFSET}, 10),
        ({"consume_from_where": WHERE.FIRST_OFFSET}, 0),  # the broker moves whoever pulls below the minimum
        ({"consume_from_where": WHERE.TIMESTAMP, "consume_timestamp": 0.008}, 8),
        ({"consume_from_where": WHERE.LAST_OFFSET, "initial_offset": InitialOffset.NATIVE}, 10),
    ],
)
async def test_where_a_queue_starts_is_stored_before_the_first_pull(settings: dict[str, Any], start: int) -> None:
    """Else a member that is killed before its first commit leaves nothing behind, and the next starts at the end."""
    scene = Scene(**settings)
    scene.broker.minimum[queue()] = 3
    scene.broker.store(queue(), 7)
    assert await scene.offsets.start(queue()) == start
    assert scene.broker.offsets[queue()] == start
    scene.broker.store(queue(), 5)
    successor = Scene(**settings)
    successor.broker.offsets = scene.broker.offsets
    assert await successor.offsets.start(queue()) == start


async def test_a_start_that_cannot_be_stored_is_an_error() -> None:
    scene = Scene(consume_from_where=WHERE.FIRST_OFFSET)
    scene.broker.failures[UPDATE] = RequestTimeout(ADDRESS, 15, 3.0)
    with pytest.raises(RequestTimeout):
        await scene.offsets.start(queue())


async def test_a_retry_topic_starts_at_its_beginning() -> None:
    scene = Scene(consume_from_where=WHERE.LAST_OFFSET)
    retry = queue(0, "%RETRY%g")
    scene.broker.store(retry, 4)
    assert await scene.offsets.start(retry) == 0
    assert scene.broker.offsets[retry] == 0


async def test_a_queue_that_is_new_since_the_group_began_starts_at_its_beginning() -> None:
    scene = Scene()
    scene.broker.store(queue(), 10)
    assert await scene.offsets.start(queue()) == 10
    scene.client.topics["t"] = (queue(0), queue(1))
    scene.broker.store(queue(1), 4)
    assert await scene.offsets.start(queue(1)) == 0
    assert scene.broker.offsets[queue(1)] == 0


async def test_without_a_master_a_slave_is_asked_where_the_group_stands() -> None:
    scene = Scene()
    scene.broker.offsets[queue()] = 4
    scene.client.known.clear()
    scene.client.slaves = {1: "slave:1"}
    assert await scene.offsets.start(queue()) == 4
    assert {address for address, _ in scene.broker.asked} == {"slave:1"}


# -- after an interruption --------------------------------------------------------------------------------------------


async def test_an_offset_that_we_sent_or_a_lower_one_is_ours() -> None:
    scene = Scene()
    scene.broker.offsets[queue()] = 10
    await scene.offsets.start(queue())
    await scene.offsets.confirm(queue(), 15)
    for stored in (15, 12, 10, 3):
        scene.broker.offsets[queue()] = stored
        assert await scene.offsets.check(queue())
    scene.broker.offsets[queue()] = 16
    assert not await scene.offsets.check(queue())


async def test_an_offset_whose_update_was_never_answered_is_ours_too() -> None:
    scene = Scene()
    scene.broker.offsets[queue()] = 10
    await scene.offsets.start(queue())
    scene.broker.failures[UPDATE] = RequestTimeout(ADDRESS, 15, 3.0)
    await scene.offsets.persist({queue(): 15})
    scene.broker.offsets[queue()] = 15  # it was handled all the same
    assert await scene.offsets.check(queue())


async def test_what_the_broker_has_forgotten_is_told_again() -> None:
    scene = Scene()
    scene.broker.offsets[queue()] = 10
    await scene.offsets.start(queue())
    await scene.offsets.persist({queue(): 15})
    assert not scene.offsets.is_news(queue(), 15)
    scene.broker.offsets[queue()] = 11
    assert await scene.offsets.check(queue())
    assert scene.offsets.is_news(queue(), 15)
    await scene.offsets.persist({queue(): 15})
    assert scene.broker.offsets[queue()] == 15
    del scene.broker.offsets[queue()]
    assert await scene.offsets.check(queue())
    await scene.offsets.persist({queue(): 15})
    assert scene.broker.offsets[queue()] == 15


async def test_an_offset_of_a_queue_that_was_not_started_says_nothing() -> None:
    scene = Scene()
    assert not await scene.offsets.check(queue())


async def test_a_check_that_fails_is_an_error_and_no_answer() -> None:
    scene = Scene()
    scene.broker.offsets[queue()] = 10
    await scene.offsets.start(queue())
    scene.broker.failures[RequestCode.QUERY_CONSUMER_OFFSET] = RequestTimeout(ADDRESS, 14, 3.0)
    with pytest.raises(RequestTimeout):
        await scene.offsets.check(queue())


# -- confirming -------------------------------------------------------------------------------------------------------


async def test_a_confirmation_says_what_is_stored() -> None:
    scene = Scene()
    scene.broker.offsets[queue()] = 10
    await scene.offsets.start(queue())
    assert await scene.offsets.confirm(queue(), 15) == 15
    assert await scene.offsets.confirm(queue(), 14) == 15


async def test_a_confirmation_of_what_a_reset_has_overtaken_says_where_the_group_was_reset_to() -> None:
    scene = Scene()
    scene.broker.offsets[queue()] = 10
    await scene.offsets.start(queue())
    scene.broker.offsets[queue()] = 2  # reset
    scene.broker.answers[UPDATE] = lambda command: reply_to(command, 0, "Offset has been previously reset")
    assert await scene.offsets.confirm(queue(), 15) == 2


async def test_an_update_that_was_never_answered_may_still_come_and_is_watched_for() -> None:
    """The broker handles it after the final commit: the final offset would be gone, and nobody would know."""
    scene = Scene(confirm_apart=0.005)
    scene.broker.offsets[queue()] = 10
    await scene.offsets.start(queue())
    scene.broker.failures[UPDATE] = RequestTimeout(ADDRESS, 15, 3.0)
    await scene.offsets.persist({queue(): 12})
    del scene.broker.failures[UPDATE]
    accept = scene.broker.answers[UPDATE]
    late = iter([12, 12])

    def overtaken(command: Any) -> Any:
        answer = accept(command)
        if (before := next(late, None)) is not None:
            scene.broker.offsets[queue()] = before  # the late one comes in right behind
        return answer

    scene.broker.answers[UPDATE] = overtaken
    assert await scene.offsets.confirm(queue(), 15) == 15
    assert scene.broker.offsets[queue()] == 15
    scene.broker.asked.clear()
    await scene.offsets.confirm(queue(), 15)
    assert [command.code for _, command in scene.broker.asked] == [QUERY, UPDATE], "all is answered: not read back"


async def test_an_offset_that_does_not_stay_is_an_error() -> None:
    scene = Scene(confirm_apart=0.0)
    scene.broker.offsets[queue()] = 10
    await scene.offsets.start(queue())
    scene.broker.failures[UPDATE] = RequestTimeout(ADDRESS, 15, 3.0)
    await scene.offsets.persist({queue(): 12})
    del scene.broker.failures[UPDATE]
    scene.broker.answers[UPDATE] = reply_to
    with pytest.raises(RocketMQError, match="does not stay"):
        await scene.offsets.confirm(queue(), 15)


async def test_an_error_is_never_taken_for_none() -> None:
    scene = Scene()
    scene.broker.failures[RequestCode.QUERY_CONSUMER_OFFSET] = RequestTimeout(ADDRESS, 14, 3.0)
    with pytest.raises(RequestTimeout):
        await scene.offsets.start(queue())
    assert scene.broker.count(RequestCode.GET_MAX_OFFSET) == 0


async def test_commits_never_go_back() -> None:
    scene = Scene()
    scene.broker.offsets[queue()] = 10
    await scene.offsets.start(queue())
    for offset in (9, 10, 12, 11, 12, 15):
        await scene.offsets.persist({queue(): offset})
    assert scene.told == [12, 15]
    await scene.offsets.confirm(queue(), 14)
    assert scene.told == [12, 15]
    await scene.offsets.confirm(queue(), 15)
    assert scene.told == [12, 15, 15], "a confirmation asks for a receipt in any case"


async def test_a_broker_that_does_not_answer_is_told_next_time_and_the_others_now() -> None:
    scene = Scene()
    other = queue(1)
    scene.broker.failures[UPDATE] = RequestTimeout(ADDRESS, 15, 3.0)
    await scene.offsets.persist({queue(): 5, other: 6})
    assert scene.told == []
    del scene.broker.failures[UPDATE]
    await scene.offsets.persist({queue(): 5, other: 6})
    assert sorted(scene.told) == [5, 6]


async def test_a_lower_offset_on_its_way_is_waited_for() -> None:
    """The broker has many threads: sent at once, the lower one might be stored last."""
    scene = Scene()
    gate = scene.broker.gates[UPDATE] = asyncio.Event()
    lower = asyncio.create_task(scene.offsets.persist({queue(): 5}))
    await until(lambda: scene.broker.count(UPDATE) == 1)
    lower.cancel()  # whoever sent it no longer waits, and the broker does not know
    higher = asyncio.create_task(scene.offsets.confirm(queue(), 8))
    another = asyncio.create_task(scene.offsets.confirm(queue(1), 3))
    await until(lambda: scene.broker.count(UPDATE) == 2)
    await turns()
    assert scene.broker.count(UPDATE) == 2, "another queue's does not wait"
    gate.set()
    await asyncio.gather(higher, another)
    assert [offset for which, offset in scene.broker.committed if which == queue()] == [5, 8]
    assert scene.broker.offsets[queue()] == 8
    assert scene.offsets._sending == {}


async def test_a_lower_offset_that_failed_does_not_stop_the_higher_one() -> None:
    scene = Scene()
    gate = scene.broker.gates[UPDATE] = asyncio.Event()

    accept = scene.broker.answers[UPDATE]

    def refuse_once(command: Any) -> Any:
        scene.broker.answers[UPDATE] = accept
        return reply_to(command, 1, "no")

    scene.broker.answers[UPDATE] = refuse_once
    lower = asyncio.create_task(scene.offsets.persist({queue(): 5}))
    await until(lambda: scene.broker.count(UPDATE) == 1)
    higher = asyncio.create_task(scene.offsets.confirm(queue(), 8))
    gate.set()
    await asyncio.gather(lower, higher)
    assert scene.told == [8]


async def test_a_reset_starts_a_new_count_even_while_an_old_offset_is_on_its_way() -> None:
    scene = Scene()
    gate = scene.broker.gates[UPDATE] = asyncio.Event()
    old = asyncio.create_task(scene.offsets.confirm(queue(), 100))
    await until(lambda: scene.broker.count(UPDATE) == 1)
    scene.offsets.reset(queue(), 10)
    gate.set()
    await old
    await scene.offsets.confirm(queue(), 10)
    assert scene.told == [100, 10]
    assert scene.broker.offsets[queue()] == 10


async def test_a_commit_that_was_waiting_when_the_queue_was_given_up_is_not_sent() -> None:
    """By then the next owner may be ahead of it."""
    scene = Scene()
    gate = scene.broker.gates[UPDATE] = asyncio.Event()
    final = asyncio.create_task(scene.offsets.confirm(queue(), 12))
    await until(lambda: scene.broker.count(UPDATE) == 1)
    late = [asyncio.create_task(scene.offsets.confirm(queue(), offset)) for offset in (12, 13)]
    later = asyncio.create_task(scene.offsets.persist({queue(): 14}))
    await turns()
    scene.offsets.forget(queue())
    gate.set()
    await asyncio.gather(final, later, *late)
    assert scene.told == [12]


async def test_what_the_broker_drops_because_of_a_reset_does_not_count_as_told() -> None:
    scene = Scene()
    scene.broker.answers[UPDATE] = lambda command: reply_to(command, 0, "Offset has been previously reset")
    await scene.offsets.confirm(queue(), 5)
    assert scene.offsets.is_news(queue(), 5)


async def test_commits_are_counted_and_what_was_not_sent_is_not() -> None:
    scene = Scene()
    await scene.offsets.persist({queue(): 5})
    await scene.offsets.persist({queue(): 5})
    await scene.offsets.confirm(queue(), 5)
    assert scene.tally.commits == len(scene.told) == 2


async def test_a_first_offset_that_the_broker_loses_is_stored_again() -> None:
    scene = Scene()
    losses = 2

    def lose(command: Any) -> Any:
        nonlocal losses
        answer = scene.broker._update_offset(command)
        if losses:
            losses -= 1
            del scene.broker.offsets[queue()]  # as a broker does when two first ones come at the same time
        return answer

    scene.broker.answers[UPDATE] = lose
    await scene.offsets.persist({queue(): 5})
    assert scene.broker.offsets[queue()] == 5
    assert scene.told == [5, 5, 5]
    await scene.offsets.persist({queue(): 6})
    assert scene.told == [5, 5, 5, 6]
    assert scene.broker.count(RequestCode.QUERY_CONSUMER_OFFSET) == 3, "known to be stored: not read back any more"


async def test_a_broker_that_keeps_no_offset_is_an_error_and_tried_again() -> None:
    scene = Scene()
    scene.broker.answers[UPDATE] = reply_to
    with pytest.raises(RocketMQError, match="does not keep the offset"):
        await scene.offsets.confirm(queue(), 5)
    assert scene.offsets.is_news(queue(), 5)


async def test_a_queue_that_has_an_offset_is_not_read_back() -> None:
    scene = Scene()
    scene.broker.offsets[queue()] = 4
    await scene.offsets.start(queue())
    scene.broker.asked.clear()
    await scene.offsets.confirm(queue(), 5)
    assert [command.code for _, command in scene.broker.asked] == [QUERY, UPDATE]


@pytest.mark.parametrize("moved", [3, 40])
async def test_a_reset_that_came_as_the_queue_was_given_up_stands(moved: int) -> None:
    """Its pull took the reset up, and nobody heard the answer."""
    scene = Scene()
    scene.broker.offsets[queue()] = 4
    await scene.offsets.start(queue())
    await scene.offsets.persist({queue(): 10})
    scene.broker.offsets[queue()] = moved
    assert await scene.offsets.confirm(queue(), 12) == moved
    assert scene.broker.offsets[queue()] == moved
