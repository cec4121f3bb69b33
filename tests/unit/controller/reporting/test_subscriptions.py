"""What members and brokers say of a group's subscriptions, against the manifest."""

from typing import Any

import pytest
from tests.unit.controller.model_parts import group_of
from tests.unit.controller.plan_parts import NOW, pod, snapshot
from tests.unit.controller.reconciling.test_observe import Look
from tests.unit.controller.reconciling.test_reconcile import Passes
from tests.unit.controller.stage import Stage, client_id

from rocketfleet.api.status import ConditionType, Truth
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.controller.planning.snapshot import Subscribed
from rocketfleet.controller.reconciling.observe import FILTERS_AGAIN
from rocketfleet.controller.reporting.conditions import ConditionVerdict, verdicts_of
from rocketfleet.controller.reporting.subscriptions import disagreements, read, wanted_topics
from rocketfleet.controller.resources.shared_settings import shared_settings_of
from rocketfleet.wire.bodies import SubscriptionData
from rocketfleet.wire.enums import ExpressionType

GROUP = group_of(
    subscriptions=[
        {"topic": "orders", "expression": "paid || new"},
        {"topic": "x", "expression": "n > 1", "type": "SQL92"},
    ]
)
AS_WANTED = {"orders": "new || paid", "x": "SQL92 n > 1"}


def test_what_means_the_same_reads_the_same() -> None:
    assert wanted_topics(GROUP) == AS_WANTED
    said = [
        SubscriptionData.of("orders", "new||paid", version=1),
        SubscriptionData.of("x", "n > 1", ExpressionType.SQL92, version=1),
        SubscriptionData.of("%RETRY%orders", "*", version=1),
    ]
    assert read(said) == AS_WANTED
    assert read([SubscriptionData(topic="orders", sub_string="", expression_type="")]) == {"orders": "*"}


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (AS_WANTED, []),
        (AS_WANTED | {"orders": "*"}, ["java@1 wants * of orders, the manifest says new || paid"]),
        ({"orders": "new || paid"}, ["java@1 wants nothing of x, the manifest says SQL92 n > 1"]),
        (AS_WANTED | {"y": "*"}, ["java@1 wants * of y, the manifest says nothing"]),
    ],
)
def test_a_member_that_wants_something_else_is_named_with_the_topic(theirs: dict[str, str], said: list[str]) -> None:
    assert disagreements(GROUP, Subscribed({"broker-a": AS_WANTED}, {"java@1": theirs, "java@2": AS_WANTED})) == said


def test_where_no_member_says_it_the_broker_does() -> None:
    (said,) = disagreements(GROUP, Subscribed({"broker-a": AS_WANTED | {"orders": "*"}, "broker-b": AS_WANTED}))
    assert said.startswith("broker-a filters for the whole group by * of orders, the manifest says new || paid")
    both = Subscribed({"broker-a": {}}, {"java@1": AS_WANTED | {"orders": "*"}})
    assert disagreements(GROUP, both) == ["java@1 wants * of orders, the manifest says new || paid"]


def verdict(*pods: Any, **changes: Any) -> ConditionVerdict:
    there = snapshot(*pods, **{"shared": shared_settings_of(GROUP), **changes})
    return verdicts_of(GROUP, there, None, None, NOW)[ConditionType.SUBSCRIPTIONS_CONSISTENT]


def test_the_condition_says_it() -> None:
    assert verdict().status is Truth.UNKNOWN
    well = Subscribed({"broker-a": AS_WANTED}, {"java@1": AS_WANTED})
    assert verdict(subscribed=well)[:2] == (Truth.TRUE, "AsInManifest")
    wrong = Subscribed({"broker-a": AS_WANTED}, {"java@1": {"orders": "*"}})
    found = verdict(subscribed=wrong)
    assert found[:2] == (Truth.FALSE, "MembersDiffer")
    assert "java@1 wants * of orders" in found.message
    before = pod(0, shared=shared_settings_of(group_of()), revision="old")
    found = verdict(before, subscribed=wrong)
    assert found[:2] == (Truth.FALSE, "UpdateUnderWay")
    assert "orders-0" in found.message


async def test_brokers_are_asked_now_and_then_and_when_members_change() -> None:
    look = Look(Stage())
    one = look.stage.add_pod(0)
    look.stage.deal()
    for _ in range(4):
        assert (await look()).snapshot.subscribed == Subscribed({"broker-a": {"orders": "*"}})
        look.stage.now += FILTERS_AGAIN / 4
    assert look.stage.calls.count("subscribed") == 1
    await look()
    assert look.stage.calls.count("subscribed") == 2
    look.stage.members.add("guest@1")
    look.stage.wants["guest@1"] = {"orders": "paid"}
    found = (await look()).snapshot.subscribed
    assert found == Subscribed({"broker-a": {"orders": "*"}}, {"guest@1": {"orders": "paid"}})
    assert look.stage.calls.count("subscribed") == 3
    look.stage.members -= {"guest@1", client_id(one)}
    assert (await look()).snapshot.subscribed is None


async def test_a_guest_that_wants_something_else_is_told_once() -> None:
    passes = Passes()
    await passes.to_rest()
    assert passes.condition(ConditionType.SUBSCRIPTIONS_CONSISTENT)[0] is Truth.TRUE
    passes.stage.members.add("guest@1")
    passes.stage.wants["guest@1"] = {"orders": "paid"}
    for _ in range(20):
        await passes.once()
    assert passes.condition(ConditionType.SUBSCRIPTIONS_CONSISTENT)[0] is Truth.FALSE
    told = [event for event in passes.stage.events if event.reason is EventReason.SUBSCRIPTIONS_DIFFER]
    assert len(told) == 1
    assert "guest@1 wants paid of orders, the manifest says *" in told[0].message
