"""Whoever is connected anew asks for new locks only when no release in its name can be on its way any more."""

import math
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rocketfleet.consumer.handover.holdings import Holding
from rocketfleet.consumer.handover.lock_keeper import LOOK_HOLDS, OTHERS_BACK, OWNERS_FIRST, LockKeeper, may_ask
from rocketfleet.consumer.handover.ownership import CONFIRM_APART, Lock
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.queue import MessageQueue


@pytest.mark.parametrize("lock", Lock)
def test_what_is_held_or_in_doubt_is_asked_for_at_once(lock: Lock) -> None:
    assert may_ask(lock, listed=0.0, with_master=0.0) == (lock is not Lock.NONE)


def test_a_new_lock_waits_for_old_releases_and_for_owners() -> None:
    assert may_ask(Lock.NONE, listed=CONFIRM_APART, with_master=OWNERS_FIRST)
    assert not may_ask(Lock.NONE, listed=LOOK_HOLDS, with_master=math.inf)
    assert not may_ask(Lock.NONE, listed=math.inf, with_master=OWNERS_FIRST - 0.1)


async def test_the_keeper_notes_when_a_broker_has_listed_us() -> None:
    now = 100.0
    settings = ConsumerSettings("g", (Subscription("t"),))
    nothing = cast("Any", None)
    group = cast("Any", SimpleNamespace(took_office=lambda _broker: -math.inf))
    keeper = LockKeeper(nothing, settings, nothing, group, clock=lambda: now)
    here, there = Holding(MessageQueue("t", "a", 0)), Holding(MessageQueue("t", "b", 0))
    assert keeper._may_ask(here, now)
    keeper.listed("a", again=False)
    assert not keeper._may_ask(here, now)
    assert keeper._may_ask(there, now)
    assert keeper._may_ask(here, now + CONFIRM_APART)
    keeper.listed("a", again=True)
    assert not keeper._may_ask(here, now + CONFIRM_APART), "others may be on their way back"
    assert keeper._may_ask(here, now + OTHERS_BACK + CONFIRM_APART)
