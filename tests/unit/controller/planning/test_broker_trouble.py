"""Why brokers could not be asked, in a word that people can act on: from an error to condition, event and status."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.controller.model_parts import manifest
from tests.unit.controller.reconciling.test_reconcile import Passes
from tests.unit.controller.stage import QUEUES, Stage, away

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.status import ConditionType, Truth
from rocketfleet.client.errors import NoNameServer, NoPermission, NoRoute, PartialFailure, RequestTimeout
from rocketfleet.controller.planning.actions import EventReason
from rocketfleet.controller.planning.broker_trouble import BrokerTrouble, brokers_lost, hindrance_of
from rocketfleet.controller.planning.snapshot import Snapshot
from rocketfleet.controller.reconciling.backend import BackendError
from rocketfleet.controller.reporting.conditions import verdicts_of
from rocketfleet.wire.codes import RequestCode

REFUSED = NoPermission(16, "User:bob has no permission to access Group:orders", "10.0.0.1:10911", 38)
MISSING = NoRoute("orders", "the name server knows no broker that has it; create it, or check the name")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MISSING, BrokerTrouble.TOPIC_NOT_FOUND),
        (REFUSED, BrokerTrouble.NO_PERMISSION),
        (PartialFailure({"a": REFUSED, "b": REFUSED}), BrokerTrouble.NO_PERMISSION),
        (PartialFailure({"a": REFUSED, "b": away()}), BrokerTrouble.UNREACHABLE),
        (NoNameServer({"a": away()}), BrokerTrouble.UNREACHABLE),
        (away(), BrokerTrouble.UNREACHABLE),
        (RequestTimeout("a", RequestCode.GET_CONSUMER_LIST_BY_GROUP, 3.0), BrokerTrouble.UNREACHABLE),
        (
            BackendError("the Secret rmq with the credentials is not in namespace shop: create it"),
            BrokerTrouble.CREDENTIALS,
        ),
    ],
)
def test_an_error_in_a_word(error: Exception, expected: BrokerTrouble) -> None:
    assert hindrance_of(error) is expected


def test_a_topic_is_missing_only_while_its_brokers_are_there() -> None:
    known = frozenset({"broker-a", "broker-b"})
    assert brokers_lost(known, known | {"broker-c"}) is None
    assert brokers_lost(frozenset(), known) is None
    assert "broker-b" in (brokers_lost(known, frozenset({"broker-a"})) or "")
    assert "no broker" in (brokers_lost(known, frozenset()) or "")


async def looked(error: Exception, stage: Stage | None = None) -> Passes:
    passes = Passes(stage)
    passes.stage.broker_error = error  # type: ignore[assignment] # anything can be raised
    await passes.once()
    return passes


def ready(passes: Passes) -> tuple[Truth, str, str]:
    group = passes.stage.group
    assert group.status is not None
    found = next(one for one in group.status.conditions or () if one.type is ConditionType.READY)
    return found.status, found.reason, found.message


async def test_a_missing_topic_is_no_unreachable_broker() -> None:
    passes = await looked(MISSING)
    assert ready(passes)[:2] == (Truth.FALSE, "TopicNotFound")
    assert "create it, or check the name" in ready(passes)[2]
    assert passes.condition(ConditionType.BROKER_REACHABLE)[0] is Truth.TRUE
    assert EventReason.TOPIC_NOT_FOUND in passes.reasons()
    assert EventReason.UNREACHABLE not in passes.reasons()
    status = passes.stage.group.status
    assert status is not None
    assert (status.state, status.ready_summary) == ("TopicNotFound", "0/2")


async def test_missing_rights_are_no_unreachable_broker() -> None:
    passes = await looked(REFUSED)
    assert ready(passes)[:2] == (Truth.FALSE, "NoPermission")
    assert "give spec.cluster.credentials" in ready(passes)[2]
    assert passes.condition(ConditionType.BROKER_REACHABLE)[0] is Truth.TRUE
    assert EventReason.NO_PERMISSION in passes.reasons()


async def test_brokers_that_take_their_topics_with_them_are_unreachable() -> None:
    passes = Passes()
    await passes.to_rest()
    passes.stage.broker_error, passes.stage.registered = MISSING, {"another"}
    await passes.once()
    assert ready(passes)[:2] == (Truth.FALSE, "BrokerUnreachable")
    assert QUEUES[0].broker in ready(passes)[2]
    assert passes.condition(ConditionType.BROKER_REACHABLE)[0] is Truth.FALSE
    assert EventReason.UNREACHABLE in passes.reasons()


async def test_each_hindrance_is_told_once_while_it_lasts() -> None:
    passes = await looked(away())
    await passes.once()
    passes.stage.broker_error = MISSING
    await passes.once()
    await passes.once()
    told = [reason for reason in passes.reasons() if reason.value in set(BrokerTrouble)]
    assert told == [EventReason.UNREACHABLE, EventReason.TOPIC_NOT_FOUND]


def verdicts(**facts: Any) -> dict[ConditionType, Any]:
    seen = Snapshot(reachable=False, hindrance=BrokerTrouble.CREDENTIALS, finalizer=True)
    return verdicts_of(manifest(2), replace(seen, **facts), "the Secret rmq is not there: create it", None, 0.0)


def test_a_secret_that_is_missing_is_named_and_nobody_is_called_unreachable() -> None:
    found = verdicts()
    assert found[ConditionType.READY].reason == "CredentialsUnavailable"
    assert "the Secret rmq" in found[ConditionType.READY].message
    assert found[ConditionType.BROKER_REACHABLE].status is Truth.UNKNOWN
    assert found[ConditionType.PROGRESSING].status is Truth.FALSE


async def test_a_preparation_that_is_refused_is_a_matter_of_rights() -> None:
    passes = Passes()

    async def refuse() -> Any:
        raise REFUSED

    passes.brokers.prepare = refuse  # type: ignore[method-assign]
    await passes.once()
    await passes.once()
    assert ready(passes)[:2] == (Truth.FALSE, "NoPermission")
    assert passes.reconciler.troubled(passes.stage.group.key)


async def test_a_pass_that_the_api_server_refused_something_is_not_a_good_one() -> None:
    passes = Passes()
    key = passes.stage.group.key

    async def refuse(group: ConsumerGroup, ordinal: int, revision: str) -> str:
        raise BackendError("pods is forbidden: exceeded quota")

    passes.reconciler._applier._backend.create_pod = refuse  # type: ignore[method-assign]
    for _ in range(4):
        await passes.once()
    assert ready(passes)[:2] == (Truth.FALSE, "ReconcileFailed")
    assert passes.reconciler.troubled(key)
    shown = dict(passes.reconciler.conditions())[key]
    assert {one.type: one.status for one in shown}[ConditionType.READY] is Truth.FALSE
