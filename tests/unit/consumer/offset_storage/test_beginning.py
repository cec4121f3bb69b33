"""Where a group began: what is written down, what follows from it, and what becomes of a beginning that is disturbed.

The brokers are models, so that a writer can die in the middle and a broker be away at the wrong moment.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.clock import Clock
from tests.support.waiting import turns, until
from tests.unit.consumer.model_broker import (
    ADDRESS,
    BROKER,
    GROUP,
    LONG,
    ME,
    OTHER_ADDRESS,
    OTHER_BROKER,
    ModelBroker,
    ModelClient,
    queue,
    queue_of,
)

from rocketfleet.client.errors import RequestTimeout, RocketMQError
from rocketfleet.consumer.offset_storage.beginning import (
    BEGINNING,
    LONG_AGO,
    Beginnings,
    Mark,
    begun_at,
    begun_by_others,
    decode_mark,
    mark_queue,
    starts_at_zero,
    uptime,
)
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command
from rocketfleet.wire.queue import MessageQueue

MARKS = st.builds(Mark, st.integers(1, 1 << 45), st.booleans())


# -- pure -------------------------------------------------------------------------------------------------------------


@given(MARKS)
def test_a_mark_is_read_as_it_was_written(mark: Mark) -> None:
    assert decode_mark(mark.encode()) == mark
    assert mark.encode() != BEGINNING


def test_half_a_beginning_is_none() -> None:
    assert decode_mark(BEGINNING) is None
    assert decode_mark(None) is None


@given(st.lists(st.one_of(st.none(), st.just(BEGINNING), MARKS.map(Mark.encode)), max_size=6))
def test_the_group_began_when_the_earliest_mark_says(stored: list[int | None]) -> None:
    since = begun_at(stored)
    times = [mark.since for mark in map(decode_mark, stored) if mark is not None]
    assert since == (min(times) if times else None)


def test_who_left_offsets_and_no_mark_is_somebody_else() -> None:
    assert begun_by_others([None, None], [None, 5])
    assert begun_by_others([None], [0])
    assert not begun_by_others([None], [None])
    assert not begun_by_others([None], [])
    assert not begun_by_others([BEGINNING, None], [5]), "half of a beginning of ours"
    assert not begun_by_others([Mark(7, late=False).encode()], [5])


def test_a_queue_is_new_where_the_topic_was_when_the_group_began() -> None:
    assert starts_at_zero(Mark(7, late=False), [None, 4])
    assert not starts_at_zero(Mark(7, late=True), [None, 4]), "its ends were not written then"
    assert not starts_at_zero(Mark(7, late=False), [None, None]), "the topic was not there then"
    assert not starts_at_zero(None, [None, 4])


@given(st.text(min_size=1, max_size=30))
def test_a_mark_lies_beyond_all_real_queues_of_the_groups_own_topic(topic: str) -> None:
    where = mark_queue(GROUP, topic, BROKER)
    assert where.topic == "%RETRY%g"
    assert where.broker == BROKER
    assert 1 << 30 <= where.queue_id < 1 << 31, "an int of Java"
    assert where == mark_queue(GROUP, topic, BROKER)


def test_topics_have_marks_of_their_own() -> None:
    assert len({mark_queue(GROUP, f"topic-{number}", BROKER) for number in range(500)}) == 500


@given(st.integers(0, 10**8))
def test_the_uptime_is_read_as_brokers_write_it(seconds: int) -> None:
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    text = f"[ {days} days, {hour} hours, {minute} minutes, {second} seconds ]"
    assert uptime({"runtime": text}) == seconds


def test_an_uptime_that_is_not_told_is_not_known() -> None:
    assert uptime({}) is None
    assert uptime({"runtime": "since Tuesday"}) is None


# -- on brokers -------------------------------------------------------------------------------------------------------


class Scene:
    """Two brokers with two queues each of topic "t"."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.broker = ModelBroker(self.clock)
        self.queues = [queue(0), queue(1), queue(0, broker=OTHER_BROKER), queue(1, broker=OTHER_BROKER)]
        self.topics = {"t": tuple(self.queues)}
        self.known = {BROKER: ADDRESS, OTHER_BROKER: OTHER_ADDRESS}
        self.broker.up = {ADDRESS: LONG, OTHER_ADDRESS: LONG}

    def member(self, name: str = ME, departed: Callable[[], Awaitable[frozenset[str]]] | None = None) -> Beginnings:
        client = ModelClient(self.broker, name)
        client.topics, client.known = self.topics, self.known
        return Beginnings(
            client,  # type: ignore[arg-type]  # a model
            GROUP,
            departed=departed,
            wall_clock=lambda: self.broker.wall,
            try_again=0.002,
        )

    def store(self, where: MessageQueue, count: int) -> None:
        self.broker.store(where, count, at=self.broker.wall)

    def pass_time(self, seconds: float = 10.0) -> None:
        self.broker.wall += seconds
        for address in self.broker.up:
            self.broker.up[address] = (self.broker.up[address] or 0.0) + seconds

    def mark(self, topic: str = "t", broker: str = BROKER) -> Mark | None:
        return decode_mark(self.broker.offsets.get(mark_queue(GROUP, topic, broker)))

    def holder(self, topic: str = "t", broker: str = BROKER) -> str | None:
        return self.broker.holder(mark_queue(GROUP, topic, broker))

    def offsets(self) -> dict[MessageQueue, int]:
        return {where: offset for where, offset in self.broker.offsets.items() if where.topic == "t"}

    def expand(self, topic: str = "t", broker: str = BROKER) -> MessageQueue:
        there = self.topics.get(topic, ())
        new = queue(sum(one.broker == broker for one in there), topic, broker)
        self.topics[topic] = (*there, new)
        return new


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def nobody() -> frozenset[str]:
    return frozenset()


async def the_dead() -> frozenset[str]:
    return frozenset({"dead"})


async def test_a_group_begins_at_the_end_of_every_queue_and_writes_down_when(scene: Scene) -> None:
    for number, where in enumerate(scene.queues):
        scene.store(where, number)
    scene.pass_time()
    since = await scene.member().ensure("t")
    assert scene.offsets() == {where: number for number, where in enumerate(scene.queues)}
    assert since == int(scene.broker.wall * 1000)
    for broker in scene.known:
        assert scene.mark(broker=broker) == Mark(since, late=False)
        assert scene.holder(broker=broker) is None


async def test_only_the_brokers_given_are_asked_where_a_client_knows_others_too(scene: Scene) -> None:
    scene.topics["t"] = tuple(scene.queues[:2])
    client = ModelClient(scene.broker, ME)
    client.topics, client.known = scene.topics, scene.known
    scene.broker.up[OTHER_ADDRESS] = None  # it belongs to another group, and is away
    limited = Beginnings(client, GROUP, brokers={BROKER}, wall_clock=lambda: scene.broker.wall)  # type: ignore[arg-type]  # a model
    await limited.ensure("t")
    assert scene.mark() is not None
    assert scene.mark(broker=OTHER_BROKER) is None
    assert OTHER_ADDRESS not in {address for address, _ in scene.broker.asked}


async def test_a_group_that_skips_messages_says_how_many_and_how_to_read_them(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.store(scene.queues[0], 5)
    scene.store(scene.queues[1], 2)
    await scene.member().ensure("t")
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said.startswith("7 messages of topic t were there before group g began")
    assert "--consume-from-where FirstOffset, or `rocketfleet reset-offsets g --to earliest`" in said
    caplog.clear()
    await scene.member().ensure("t")  # the second member skips nothing
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


async def test_a_group_that_skips_nothing_says_nothing(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    await scene.member().ensure("t")
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


async def test_the_beginning_is_marked_before_anything_else_is_written_and_again_after_it(scene: Scene) -> None:
    await scene.member().ensure("t")
    marks = [index for index, (where, _) in enumerate(scene.broker.committed) if where.topic == "%RETRY%g"]
    written = [offset for _, offset in scene.broker.committed]
    assert marks == [0, 1, 6, 7]
    assert written[:2] == [BEGINNING, BEGINNING]


async def test_a_group_that_has_begun_does_not_begin_again(scene: Scene) -> None:
    since = await scene.member().ensure("t")
    scene.pass_time()
    scene.store(scene.queues[0], 5)
    committed, later = len(scene.broker.committed), scene.member("later")
    assert await later.ensure("t") == since
    assert len(scene.broker.committed) == committed
    asked = len(scene.broker.asked)
    assert await later.ensure("t") == since
    assert len(scene.broker.asked) == asked, "known by now: nobody is asked"


async def test_a_queue_with_an_offset_needs_no_start(scene: Scene) -> None:
    assert await scene.member().start(scene.queues[0]) is None


async def test_two_members_that_begin_at_once_begin_once(scene: Scene) -> None:
    gate = scene.broker.gates[RequestCode.GET_MAX_OFFSET] = asyncio.Event()
    first = asyncio.create_task(scene.member("one", nobody).ensure("t"))
    await until(lambda: scene.broker.count(RequestCode.GET_MAX_OFFSET) == 4)
    second = asyncio.create_task(scene.member("two", nobody).ensure("t"))
    asked = scene.broker.count(RequestCode.LOCK_BATCH_MQ)
    await until(lambda: scene.broker.count(RequestCode.LOCK_BATCH_MQ) > asked + 2)
    assert not second.done()
    gate.set()
    assert await first == await second
    for where in scene.queues:
        assert [one for one, _ in scene.broker.committed].count(where) == 1


async def test_members_that_begin_in_any_order_agree(scene: Scene) -> None:
    since = await asyncio.gather(*(scene.member(f"m{number}", nobody).ensure("t") for number in range(6)))
    assert len(set(since)) == 1
    for where in scene.queues:
        assert [one for one, _ in scene.broker.committed].count(where) == 1


@pytest.mark.parametrize("written", [0, 1, 3])
async def test_a_writer_that_dies_half_way_leaves_no_half_beginning(scene: Scene, written: int) -> None:
    for where in scene.queues:
        scene.store(where, 3)
    slow = scene.queues[written:]
    ends = scene.broker.answers[RequestCode.GET_MAX_OFFSET]
    stuck = asyncio.Event()

    async def answer(command: Command) -> Command:
        if queue_of(command) in slow:
            await stuck.wait()
        answered = ends(command)
        return answered if isinstance(answered, Command) else await answered

    scene.broker.answers[RequestCode.GET_MAX_OFFSET] = answer
    dead = asyncio.create_task(scene.member("dead", nobody).ensure("t"))
    await until(lambda: len(scene.offsets()) == written and scene.broker.count(RequestCode.GET_MAX_OFFSET) == 4)
    scene.broker.answers[RequestCode.GET_MAX_OFFSET] = ends
    scene.pass_time()
    for where in scene.queues:
        scene.store(where, 2)
    assert scene.holder() == "dead"
    since = await scene.member("heir", the_dead).ensure("t")
    assert since == int(scene.broker.wall * 1000), "nothing was delivered before"
    assert scene.offsets() == {where: 3 if where not in slow else 5 for where in scene.queues}
    assert scene.mark() == Mark(since, late=False)
    dead.cancel()
    await asyncio.gather(dead, return_exceptions=True)


async def test_a_writer_that_dies_with_everything_but_the_last_mark_is_no_other_client(scene: Scene) -> None:
    for broker in scene.known:
        scene.broker.offsets[mark_queue(GROUP, "t", broker)] = BEGINNING
    for where in scene.queues:
        scene.broker.offsets[where] = 0
    since = await scene.member().ensure("t")
    assert since == int(scene.broker.wall * 1000)


async def test_a_group_that_others_began_has_begun(scene: Scene) -> None:
    scene.store(scene.queues[1], 7)
    scene.broker.offsets[scene.queues[0]] = 4
    member = scene.member()
    assert await member.ensure("t") == LONG_AGO
    assert scene.offsets() == {scene.queues[0]: 4}, "no ends are written"
    assert scene.mark() == Mark(LONG_AGO, late=False)
    assert await member.start(scene.queues[1]) == 0, "new, where the topic was"
    assert await member.start(scene.queues[2]) == 0, "and where it was not"


async def test_a_broker_that_was_away_at_the_beginning_skips_nothing_since(scene: Scene) -> None:
    there = scene.queues[2]
    scene.store(there, 5)
    scene.broker.down.add(OTHER_ADDRESS)
    scene.pass_time()
    member = scene.member()
    since = await member.ensure("t")
    assert set(scene.offsets()) == set(scene.queues[:2])
    scene.broker.down.clear()
    scene.pass_time()
    scene.store(there, 3)
    assert await scene.member("another").start(there) == 5, "history is left out, what came since is not"
    assert scene.mark(broker=OTHER_BROKER) == Mark(since, late=True)
    new = scene.expand(broker=OTHER_BROKER)
    scene.store(new, 2)
    scene.broker.offsets[there] = 5
    assert await scene.member("a third").start(new) == 0


async def test_a_broker_that_fails_in_the_middle_is_marked_so(scene: Scene) -> None:
    there = scene.queues[3]
    scene.store(there, 5)
    scene.pass_time()
    ends = scene.broker.answers[RequestCode.GET_MAX_OFFSET]

    def answer(command: Command) -> Command | Awaitable[Command]:
        if queue_of(command) == there:
            raise RequestTimeout(OTHER_ADDRESS, RequestCode.GET_MAX_OFFSET, 3.0)
        return ends(command)

    scene.broker.answers[RequestCode.GET_MAX_OFFSET] = answer
    member = scene.member()
    since = await member.ensure("t")
    assert scene.mark(broker=BROKER) == Mark(since, late=False)
    assert scene.mark(broker=OTHER_BROKER) == Mark(since, late=True)
    scene.pass_time()
    scene.store(there, 1)
    assert await member.start(there) == 5, "not 0, though its sibling has an offset"


async def test_a_queue_by_which_the_topic_was_expanded_starts_at_its_beginning(scene: Scene) -> None:
    await scene.member().ensure("t")
    new = scene.expand()
    scene.store(new, 4)
    scene.pass_time(3600)
    assert await scene.member("later").start(new) == 0


async def test_a_topic_that_is_created_late_starts_at_its_beginning(scene: Scene) -> None:
    await scene.member().ensure("late")
    scene.pass_time()
    new = scene.expand("late")
    scene.store(new, 4)
    assert await scene.member("later").start(new) == 0


async def test_a_topic_that_was_there_before_we_saw_it_starts_where_the_group_began(scene: Scene) -> None:
    """Its route was not known when the group began: what lies in it may be older."""
    new = scene.expand("late")
    route = scene.topics.pop("late")
    scene.store(new, 4)
    scene.pass_time()
    await scene.member().ensure("late")
    scene.topics["late"] = route
    scene.pass_time()
    scene.store(new, 2)
    assert await scene.member("later").start(new) == 4


async def test_a_broker_that_was_added_starts_where_the_group_began(scene: Scene) -> None:
    del scene.known[OTHER_BROKER]
    scene.topics["t"] = scene.topics["t"][:2]
    await scene.member().ensure("t")
    scene.known[OTHER_BROKER] = OTHER_ADDRESS
    scene.pass_time()
    new = scene.expand(broker=OTHER_BROKER)
    scene.store(new, 4)
    assert await scene.member("later").start(new) == 0


async def test_a_broker_that_is_behind_our_clock_is_believed(scene: Scene) -> None:
    """Messages are found by when a broker stored them: by our time, those of its next minute would be skipped."""
    client = ModelClient(scene.broker)
    client.topics, client.known = scene.topics, scene.known
    ahead = Beginnings(client, GROUP, wall_clock=lambda: scene.broker.wall + 60.0)  # type: ignore[arg-type]  # a model
    assert await ahead.ensure("t") == int(scene.broker.wall * 1000)


async def test_a_broker_that_does_not_say_its_time_is_not_needed(scene: Scene) -> None:
    scene.broker.up[ADDRESS] = None
    assert await scene.member().ensure("t") == int(scene.broker.wall * 1000)


async def test_one_broker_at_least_has_to_keep_the_mark(scene: Scene) -> None:
    scene.broker.without_retry = {ADDRESS}
    since = await scene.member().ensure("t")
    assert scene.mark() is None
    assert scene.mark(broker=OTHER_BROKER) == Mark(since, late=False)
    assert await scene.member("later").ensure("t") == since
    new = scene.expand()
    scene.store(new, 3)
    assert await scene.member("later").start(new) == 0, "by time: the queue is new"
    nowhere = Scene()
    nowhere.broker.without_retry = {ADDRESS, OTHER_ADDRESS}
    with pytest.raises(RocketMQError, match="no retry topic yet"):
        await nowhere.member().ensure("t")
    assert nowhere.offsets() == {}, "nothing is written without a mark before it"
    assert nowhere.holder() is None


async def test_without_any_master_it_fails_at_once(scene: Scene) -> None:
    scene.known.clear()
    async with asyncio.timeout(10.0):
        with pytest.raises(RocketMQError, match="none has a master now"):
            await scene.member().ensure("t")


async def test_brokers_that_do_not_answer_are_an_error_and_not_a_beginning(scene: Scene) -> None:
    scene.broker.down = {ADDRESS, OTHER_ADDRESS}
    member = scene.member()
    async with asyncio.timeout(10.0):
        with pytest.raises(RocketMQError):
            await member.ensure("t")
    scene.broker.down.clear()
    await member.ensure("t")


async def test_the_lock_of_a_live_member_is_waited_for(scene: Scene) -> None:
    scene.broker.locks[mark_queue(GROUP, "t", BROKER)] = ("alive", scene.clock())
    waiting = asyncio.create_task(scene.member(ME, the_dead).ensure("t"))
    await until(lambda: scene.broker.count(RequestCode.LOCK_BATCH_MQ) >= 3)
    assert not waiting.done()
    assert scene.holder() == "alive"
    del scene.broker.locks[mark_queue(GROUP, "t", BROKER)]
    await waiting


async def test_the_lock_is_given_back_when_beginning_fails(scene: Scene) -> None:
    scene.broker.failures[RequestCode.UPDATE_CONSUMER_OFFSET] = RequestTimeout(ADDRESS, 15, 3.0)
    with pytest.raises(RocketMQError):
        await scene.member().ensure("t")
    assert scene.holder() is None


async def test_all_topics_begin_and_each_for_itself(scene: Scene) -> None:
    scene.topics["u"] = (queue(0, "u"),)
    await scene.member().ensure_all(["t", "u", "not-there-yet"])
    assert None not in [scene.mark(topic) for topic in ("t", "u", "not-there-yet")]
    await turns()


# -- any order of things ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    do: str  # "send", "expand", "away", "back", "begin"
    broker: str
    number: int


STEPS = st.builds(
    Step,
    st.sampled_from(["send", "send", "send", "expand", "away", "back", "begin"]),
    st.sampled_from([BROKER, OTHER_BROKER]),
    st.integers(0, 3),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(STEPS, max_size=20), st.lists(STEPS, max_size=20))
def test_nothing_sent_after_the_beginning_is_skipped_whatever_happens(before: list[Step], after: list[Step]) -> None:
    asyncio.run(a_story(before, after))


async def a_story(before: list[Step], after: list[Step]) -> None:
    """A member is there throughout. Were there none, and the one broker with a mark away when the next comes, nobody
    could know that the group has begun."""
    scene = Scene()
    first_after: dict[MessageQueue, int] = {}
    begun = False
    for number, one in enumerate([*before, Step("begin", BROKER, 0), *after]):
        scene.pass_time(2.0)
        address = scene.known[one.broker]
        if one.do == "send" and address not in scene.broker.down:
            here = [where for where in scene.topics["t"] if where.broker == one.broker]
            where = here[one.number % len(here)]
            if begun:
                first_after.setdefault(where, scene.broker.end(where))
            scene.store(where, 1 + one.number)
        elif one.do == "expand":
            scene.expand(broker=one.broker)
        elif one.do == "away" and not scene.broker.down:
            scene.broker.down.add(address)
        elif one.do == "back":
            scene.broker.down.discard(address)
            if begun:
                await start_all(scene, f"m{number}", first_after)
        elif one.do == "begin":
            await scene.member(f"m{number}").ensure("t")
            begun = True
    scene.broker.down.clear()
    scene.pass_time(2.0)
    await start_all(scene, "at last", first_after)


async def start_all(scene: Scene, name: str, first_after: dict[MessageQueue, int]) -> None:
    member = scene.member(name)
    for where in scene.topics["t"]:
        if scene.known[where.broker] in scene.broker.down:
            continue
        start = await member.start(where)
        if start is not None:
            scene.broker.offsets[where] = start
        start = scene.broker.offsets[where]
        assert start <= first_after.get(where, scene.broker.end(where)), where
