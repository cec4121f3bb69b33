"""Who is in the group, and who has left it: what is asked of which broker. What follows is in `test_roster.py`."""

import asyncio

import pytest
from tests.support.clock import Clock
from tests.support.waiting import turns, until
from tests.unit.consumer.model_broker import (
    ADDRESS,
    BROKER,
    ME,
    OTHER_ADDRESS,
    OTHER_BROKER,
    ModelBroker,
    ModelClient,
    queue,
)

from rocketfleet.client import fanout
from rocketfleet.client.errors import ConnectError
from rocketfleet.consumer.handover.membership import Membership, jittered
from rocketfleet.consumer.handover.roster import GRACE_SECONDS, REJOIN_SECONDS, REMEMBERED_SECONDS
from rocketfleet.consumer.settings import ConsumerSettings, Handover
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.bodies import DataVersion
from rocketfleet.wire.codes import RequestCode

SETTINGS = ConsumerSettings("g", (Subscription("t"),))
LIST = RequestCode.GET_CONSUMER_LIST_BY_GROUP
BOTH = [queue(0), queue(0, broker=OTHER_BROKER)]


class Scene:
    def __init__(self, settings: ConsumerSettings = SETTINGS, *, brokers: int = 1) -> None:
        self.clock = Clock()
        self.broker = ModelBroker(self.clock)
        self.client = ModelClient(self.broker)
        self.queues = BOTH[:brokers]
        if brokers == 2:
            self.client.known[OTHER_BROKER] = OTHER_ADDRESS
        self.membership = Membership(
            self.client,  # type: ignore[arg-type]  # a model
            settings,
            settings.subscriptions,
            clock=self.clock,
        )

    async def look(self) -> tuple[str, ...] | None:
        return await self.membership.members(self.queues)

    async def see(self, *members: str) -> None:
        self.broker.members = list(members)
        assert await self.look() == tuple(sorted(members))

    def wait(self, seconds: float = GRACE_SECONDS) -> None:
        self.clock.now += seconds

    @property
    def complete(self) -> bool:
        return not self.membership.awaits

    async def departed(self, *still_there: str) -> frozenset[str]:
        self.broker.members = list(still_there)
        return await self.membership.departed(BROKER)


async def test_who_was_there_and_has_been_missing_for_a_while_has_departed() -> None:
    scene = Scene()
    await scene.see(ME, "a", "b")
    await scene.see(ME, "b")
    assert await scene.departed(ME, "b") == frozenset(), "its connection may just have been reset"
    at_first = scene.membership.has_departed
    scene.wait()
    assert (at_first, scene.membership.has_departed) == (False, True)
    assert await scene.departed(ME, "b") == {"a"}
    await scene.see(ME)
    assert await scene.departed(ME) == {"a"}
    scene.wait()
    assert await scene.departed(ME) == {"a", "b"}


async def test_who_was_never_seen_has_not_departed() -> None:
    scene = Scene()
    await scene.see(ME)
    scene.wait()
    assert await scene.departed(ME) == frozenset()
    assert scene.broker.count(LIST) == 1, "nobody to ask after: not asked"


async def test_who_is_back_keeps_its_locks_even_if_only_the_broker_knows_yet() -> None:
    scene = Scene()
    await scene.see(ME, "a", "b")
    await scene.see(ME)
    scene.wait()
    assert await scene.departed(ME, "a") == {"b"}
    assert await scene.departed(ME) == {"b"}, "a was seen again: it has to leave again first"


async def test_one_that_came_back_and_left_again_has_departed_again() -> None:
    scene = Scene()
    for members in [(ME, "a"), (ME,), (ME, "a"), (ME,)]:
        await scene.see(*members)
        scene.wait()
    assert await scene.departed(ME) == {"a"}


async def test_the_departed_are_forgotten_when_their_locks_are_long_out() -> None:
    scene = Scene()
    assert 2 * SETTINGS.lock_lives < REMEMBERED_SECONDS
    await scene.see(ME, "a")
    await scene.see(ME)
    scene.wait(REMEMBERED_SECONDS - 1)
    await scene.see(ME)
    assert await scene.departed(ME) == {"a"}
    scene.wait(2)
    await scene.see(ME)
    assert await scene.departed(ME) == frozenset()


async def test_every_broker_is_asked_and_who_is_in_any_list_is_a_member() -> None:
    scene = Scene(brokers=2)
    scene.broker.lists = {ADDRESS: [ME, "a"], OTHER_ADDRESS: ["b", ME]}
    assert await scene.look() == ("a", "b", ME)
    assert sorted(address for address, command in scene.broker.asked if command.code == LIST) == [
        ADDRESS,
        OTHER_ADDRESS,
    ]
    assert scene.membership.queues == tuple(BOTH)
    assert scene.membership.brokers == (BROKER, OTHER_BROKER)


async def test_a_broker_that_does_not_answer_leaves_it_to_the_others() -> None:
    scene = Scene(brokers=2)
    await scene.see(ME, "a")
    scene.broker.down.add(ADDRESS)
    await scene.see(ME, "a")
    await scene.see(ME)
    scene.wait()
    assert await scene.membership.departed(BROKER) == frozenset(), "nobody is released where nobody answers"
    assert await scene.membership.departed(OTHER_BROKER) == {"a"}
    assert scene.membership.relay == OTHER_BROKER


async def test_a_list_without_us_counts_if_another_broker_knows_us() -> None:
    """It restarted, say: those who are connected to it live, whether we are or not."""
    scene = Scene(brokers=2)
    scene.broker.lists = {ADDRESS: ["a"], OTHER_ADDRESS: [ME]}
    assert await scene.look() == ("a", ME)
    assert scene.membership.relay == OTHER_BROKER


async def test_where_there_is_no_master_a_slave_is_asked() -> None:
    scene = Scene()
    scene.client.known.clear()
    scene.client.slaves = {1: "slave:1"}
    await scene.see(ME, "a")
    assert [address for address, command in scene.broker.asked if command.code == LIST] == ["slave:1"]


async def test_without_queues_all_brokers_are_asked() -> None:
    scene = Scene(brokers=2)
    scene.queues = []
    scene.broker.lists = {ADDRESS: [ME], OTHER_ADDRESS: [ME, "a"]}
    assert await scene.look() == ("a", ME)


async def test_if_no_broker_answers_the_members_are_unknown_which_is_not_nobody() -> None:
    scene = Scene()
    await scene.see(ME, "a")
    scene.broker.failures[LIST] = ConnectError("a:1", "refused")
    assert await scene.look() is None
    scene.wait()
    del scene.broker.failures[LIST]
    assert await scene.departed(ME) == frozenset(), "an error is not a departure"
    scene.client.known.clear()
    scene.queues = []
    assert await scene.look() is None


async def test_after_a_broker_restarted_its_members_have_time_to_come_back() -> None:
    scene = Scene()
    await scene.see(ME, "a", "b")
    scene.membership.interrupted(BROKER)
    scene.broker.members = []
    assert await scene.look() == (), "not even we are back: the caller sees to that"
    scene.broker.members = ["b"]
    assert await scene.look() == ()
    scene.wait()
    assert await scene.departed("b") == frozenset()
    scene.broker.members = [ME]
    assert await scene.look() == ("a", "b", ME)


async def test_a_restarted_brokers_list_is_complete_when_all_are_back() -> None:
    scene = Scene()
    await scene.see(ME, "a", "b")
    scene.membership.interrupted(BROKER)
    scene.broker.members = [ME]
    assert await scene.look() == ("a", "b", ME)
    waits = not scene.complete
    assert waits
    scene.wait()
    assert await scene.departed(ME) == frozenset(), "nobody's locks are released meanwhile"
    scene.broker.members = [ME, "b", "c"]
    assert await scene.look() == ("a", "b", "c", ME)
    scene.broker.members = [ME, "b", "c", "a"]
    assert await scene.look() == ("a", "b", "c", ME)
    assert scene.complete
    await scene.see(ME, "b")
    scene.wait()
    assert await scene.departed(ME, "b") == {"a", "c"}, "who leaves later has left"


async def test_who_does_not_come_back_to_a_restarted_broker_has_departed() -> None:
    scene = Scene()
    await scene.see(ME, "a")
    scene.membership.interrupted(BROKER)
    scene.broker.members = [ME]
    assert await scene.look() == ("a", ME)
    scene.wait(REJOIN_SECONDS)
    await scene.see(ME)
    assert scene.complete
    scene.wait()
    assert await scene.departed(ME) == {"a"}


async def test_a_member_that_dies_while_the_broker_lives_is_not_waited_for() -> None:
    scene = Scene()
    await scene.see(ME, "a")
    scene.membership.interrupted(BROKER)
    await scene.see(ME, "a")
    await scene.see(ME)
    scene.wait()
    assert await scene.departed(ME) == {"a"}


async def test_one_broker_that_restarts_hides_nobody_while_another_has_known_all_along() -> None:
    scene = Scene(brokers=2)
    await scene.see(ME, "a")
    scene.membership.interrupted(BROKER)
    scene.broker.lists = {ADDRESS: [ME], OTHER_ADDRESS: [ME]}
    assert await scene.look() == (ME,), "the other broker would know"
    assert scene.complete


# -- releasing --------------------------------------------------------------------------------------------------------


async def test_what_falls_to_us_is_released_once_at_each_broker() -> None:
    scene = Scene(brokers=2)
    await scene.see(ME, "a")
    await scene.see(ME)
    assert await scene.membership.to_release(BROKER) == frozenset()
    scene.wait()
    assert await scene.membership.to_release(BROKER) == {"a"}
    scene.membership.released("a", BROKER)
    asked = scene.broker.count(LIST)
    assert await scene.membership.to_release(BROKER) == frozenset()
    assert scene.broker.count(LIST) == asked, "done: nobody is asked"
    assert await scene.membership.to_release(OTHER_BROKER) == {"a"}


async def test_what_does_not_fall_to_us_is_left_to_others() -> None:
    scene = Scene()
    survivors = ["zb", "zc", "zd"]
    await scene.see(ME, "za", *survivors)
    await scene.see(ME, *survivors)
    scene.wait()
    assert await scene.membership.to_release(BROKER) == frozenset()
    assert await scene.departed(ME, *survivors) == {"za"}


async def test_who_is_back_just_now_is_not_released() -> None:
    scene = Scene()
    await scene.see(ME, "a")
    await scene.see(ME)
    scene.wait()
    scene.broker.members = [ME, "a"]
    assert await scene.membership.to_release(BROKER) == frozenset()


async def test_who_departs_once_more_is_released_once_more() -> None:
    scene = Scene()
    for _ in range(3):
        await scene.see(ME, "a")
        await scene.see(ME)
        scene.wait()
        assert await scene.membership.to_release(BROKER) == {"a"}
        scene.membership.released("a", BROKER)


async def test_who_is_known_to_be_dead_is_released_at_once_unless_a_broker_lists_it() -> None:
    scene = Scene()
    scene.membership.presume_departed(["a", "b"])
    await scene.see(ME, "b")
    assert await scene.membership.to_release(BROKER) == {"a"}


# -- newcomers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("up", "wait"), [(4.0, REJOIN_SECONDS - 4.0), (None, REJOIN_SECONDS), (REJOIN_SECONDS, 0.0), (1e6, 0.0)]
)
async def test_a_newcomer_at_a_broker_that_has_just_started_waits(up: float | None, wait: float) -> None:
    scene = Scene()
    scene.broker.up[ADDRESS] = up
    assert scene.membership.whole_in == 0.0, "not looked yet"
    await scene.see(ME)
    assert scene.membership.whole_in == wait
    scene.wait(wait)
    await scene.see(ME)
    assert scene.membership.whole_in == 0.0
    assert scene.broker.count(RequestCode.GET_BROKER_RUNTIME_INFO) == 1, "asked once"


def elected(scene: Scene, seconds: float, *, number: int = 2) -> None:
    """Let the master have been elected so many seconds ago, by its own clock."""
    scene.client.versions[ADDRESS] = DataVersion(
        state_version=number, timestamp=int((scene.broker.wall - seconds) * 1000)
    )


async def test_a_newcomer_at_a_master_that_was_elected_just_now_waits() -> None:
    scene = Scene()
    elected(scene, 4.0)
    await scene.see(ME)
    assert scene.membership.whole_in == pytest.approx(REJOIN_SECONDS - 4.0)
    assert scene.membership.took_office(BROKER) == pytest.approx(scene.clock.now - 4.0)


async def test_a_newcomer_believes_another_brokers_list_and_knows_who_is_new_in_office() -> None:
    scene = Scene(brokers=2)
    elected(scene, 4.0)
    await scene.see(ME)
    assert scene.membership.whole_in == 0.0
    assert scene.membership.took_office(BROKER) == pytest.approx(scene.clock.now - 4.0)
    assert scene.membership.took_office(OTHER_BROKER) < scene.clock.now - REJOIN_SECONDS


async def test_where_nobody_is_elected_the_uptime_counts() -> None:
    for version in (None, DataVersion(0, 1 << 62), ConnectError("name server", "the test took it down")):
        scene = Scene()
        scene.client.versions = {} if version is None else {ADDRESS: version}
        await scene.see(ME)
        assert scene.membership.whole_in == 0.0


async def test_a_newcomer_does_not_wait_if_one_broker_has_been_up_for_long() -> None:
    scene = Scene(brokers=2)
    scene.broker.up[ADDRESS] = 1.0
    await scene.see(ME)
    assert scene.membership.whole_in == 0.0


async def test_a_newcomer_does_not_wait_where_there_is_nobody_to_wait_for() -> None:
    scene = Scene()
    scene.broker.up[ADDRESS] = 0.0
    scene.membership.first_of_its_group = True
    await scene.see(ME)
    assert scene.membership.whole_in == 0.0


async def test_without_locks_no_newcomer_waits() -> None:
    scene = Scene(ConsumerSettings("g", (Subscription("t"),), handover=Handover.EAGER))
    scene.broker.up[ADDRESS] = 0.0
    await scene.see(ME)
    assert scene.membership.whole_in == 0.0


async def test_leaving_waits_for_a_heartbeat_on_its_way_even_if_nobody_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene()
    monkeypatch.setattr(scene.client, "each_replica", lambda call: fanout.each([ADDRESS], call), raising=False)
    gate = scene.broker.gates[RequestCode.HEART_BEAT] = asyncio.Event()
    beat = asyncio.create_task(scene.membership.heartbeat())
    await until(lambda: scene.broker.count(RequestCode.HEART_BEAT) == 1)
    beat.cancel()
    await asyncio.gather(beat, return_exceptions=True)
    leave = asyncio.create_task(scene.membership.leave())
    await turns()
    assert scene.broker.count(RequestCode.UNREGISTER_CLIENT) == 0
    gate.set()
    await leave
    assert scene.broker.count(RequestCode.UNREGISTER_CLIENT) == 1
    await scene.membership.heartbeat()
    assert scene.broker.count(RequestCode.HEART_BEAT) == 1, "who has left does not beat any more"


def test_beats_are_a_little_off_each_other() -> None:
    beats = {jittered(10.0) for _ in range(50)}
    assert len(beats) > 1
    assert all(9.0 <= beat <= 11.0 for beat in beats)
