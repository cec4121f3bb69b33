"""Who is in the group, and who has left it."""

import asyncio

import pytest
from tests.unit.consumer.model_broker import ADDRESS, BROKER, ME, Clock, ModelBroker, ModelClient
from tests.unit.consumer.waiting import turns, until

from rocketfleet.client import fanout
from rocketfleet.client.errors import ConnectError
from rocketfleet.consumer.membership import _REMEMBERED, REJOIN_SECONDS, Membership, jittered
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.codes import RequestCode

SETTINGS = ConsumerSettings("g", (Subscription("t"),))


class Scene:
    def __init__(self) -> None:
        self.clock = Clock()
        self.broker = ModelBroker(self.clock)
        self.client = ModelClient(self.broker)
        self.membership = Membership(
            self.client,  # type: ignore[arg-type]  # a model
            SETTINGS,
            SETTINGS.subscriptions,
            clock=self.clock,
        )

    async def see(self, *members: str) -> None:
        self.broker.members = list(members)
        assert await self.membership.members([BROKER]) == members

    @property
    def complete(self) -> bool:
        return not self.membership.awaits

    async def departed(self, *still_there: str) -> frozenset[str]:
        self.broker.members = list(still_there)
        return await self.membership.departed(BROKER)


async def test_who_was_there_and_is_no_longer_has_departed() -> None:
    scene = Scene()
    await scene.see(ME, "a", "b")
    await scene.see(ME, "b")
    assert await scene.departed(ME, "b") == {"a"}
    await scene.see(ME)
    assert await scene.departed(ME) == {"a", "b"}


async def test_who_was_never_seen_has_not_departed() -> None:
    scene = Scene()
    await scene.see(ME)
    assert await scene.departed(ME) == frozenset()
    assert scene.broker.count(RequestCode.GET_CONSUMER_LIST_BY_GROUP) == 1, "nobody to ask after: not asked"


async def test_who_is_back_keeps_its_locks_even_if_only_the_broker_knows_yet() -> None:
    scene = Scene()
    await scene.see(ME, "a", "b")
    await scene.see(ME)
    assert await scene.departed(ME, "a") == {"b"}
    assert await scene.departed(ME) == {"b"}, "a was seen again: it has to leave again first"


async def test_one_that_came_back_and_left_again_has_departed_again() -> None:
    scene = Scene()
    for members in [(ME, "a"), (ME,), (ME, "a"), (ME,)]:
        await scene.see(*members)
    assert await scene.departed(ME) == {"a"}


async def test_we_never_depart_ourselves() -> None:
    scene = Scene()
    await scene.see(ME, "a")
    scene.membership.note(["a"])
    assert await scene.departed("a") == frozenset()


async def test_the_departed_are_forgotten_when_their_locks_are_long_out() -> None:
    scene = Scene()
    assert 2 * SETTINGS.lock_lives < _REMEMBERED
    await scene.see(ME, "a")
    await scene.see(ME)
    scene.clock.now += _REMEMBERED - 1
    await scene.see(ME)
    assert await scene.departed(ME) == {"a"}
    scene.clock.now += 2
    await scene.see(ME)
    assert await scene.departed(ME) == frozenset()


async def test_the_first_broker_by_name_that_answers_is_asked() -> None:
    scene = Scene()
    scene.client.known = {"broker-a": "a:1", "broker-b": "b:1"}
    await scene.membership.members(["broker-b", "broker-a", "broker-b"])
    assert [address for address, _ in scene.broker.asked] == ["a:1"]
    scene.broker.asked.clear()
    del scene.client.known["broker-a"]
    await scene.membership.members(["broker-b", "broker-a"])
    assert [address for address, _ in scene.broker.asked] == ["b:1"]


async def test_if_no_broker_answers_the_members_are_unknown_which_is_not_nobody() -> None:
    scene = Scene()
    await scene.see(ME, "a")
    scene.broker.failures[RequestCode.GET_CONSUMER_LIST_BY_GROUP] = ConnectError("a:1", "refused")
    assert await scene.membership.members([BROKER]) is None
    assert await scene.membership.members([]) is None
    del scene.broker.failures[RequestCode.GET_CONSUMER_LIST_BY_GROUP]
    assert await scene.departed(ME) == frozenset(), "an error is not a departure"


async def test_after_a_broker_restarted_its_members_have_time_to_come_back() -> None:
    scene = Scene()
    await scene.see(ME, "a", "b")
    scene.membership.disconnected(BROKER)
    scene.broker.members = []
    assert await scene.membership.members([BROKER]) == (), "not even we are back: the caller sees to that"
    scene.broker.members = ["b"]
    assert await scene.membership.members([BROKER]) == ("b",)
    assert await scene.departed("b") == frozenset()
    scene.broker.members = [ME]
    assert await scene.membership.members([BROKER]) == (ME, "a", "b")


async def test_a_restarted_brokers_list_is_complete_when_all_are_back() -> None:
    scene = Scene()
    await scene.see(ME, "a", "b")
    scene.membership.disconnected(BROKER)
    scene.broker.members = [ME]
    assert await scene.membership.members([BROKER]) == (ME, "a", "b")
    waits = not scene.complete
    assert waits
    assert await scene.departed(ME) == frozenset(), "nobody's locks are released meanwhile"
    scene.broker.members = [ME, "b", "c"]
    assert await scene.membership.members([BROKER]) == (ME, "b", "c", "a")
    scene.broker.members = [ME, "b", "c", "a"]
    assert await scene.membership.members([BROKER]) == (ME, "b", "c", "a")
    assert scene.complete
    await scene.see(ME, "b")
    assert await scene.departed(ME, "b") == {"a", "c"}, "who leaves later has left"


async def test_who_does_not_come_back_to_a_restarted_broker_has_departed() -> None:
    scene = Scene()
    await scene.see(ME, "a")
    scene.membership.disconnected(BROKER)
    scene.broker.members = [ME]
    assert await scene.membership.members([BROKER]) == (ME, "a")
    scene.clock.now += REJOIN_SECONDS
    await scene.see(ME)
    assert scene.complete
    assert await scene.departed(ME) == {"a"}


async def test_a_member_that_dies_while_the_broker_lives_is_not_waited_for() -> None:
    scene = Scene()
    await scene.see(ME, "a")
    scene.membership.disconnected(BROKER)
    await scene.see(ME, "a")
    await scene.see(ME)
    assert await scene.departed(ME) == {"a"}


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
