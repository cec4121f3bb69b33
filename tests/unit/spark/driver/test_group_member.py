"""The driver's member: what it says when brokers refuse it."""

from types import SimpleNamespace
from typing import Any

import pytest

from rocketfleet.client.errors import NoPermission, RocketMQError
from rocketfleet.spark.driver.group_member import GroupMember
from rocketfleet.wire.codes import RequestCode, ResponseCode


def test_a_heartbeat_that_is_refused_is_told_with_the_cause() -> None:
    cause = NoPermission(ResponseCode.NO_PERMISSION, "User:bob has no permission", "b:1", RequestCode.HEART_BEAT)
    member: Any = object.__new__(GroupMember)  # without a connection
    member._settings = SimpleNamespace(group="g", subscriptions=())
    member._link = SimpleNamespace(call=lambda answer: answer)
    member._cluster = SimpleNamespace(queues=lambda topics, fresh: ())
    member._membership = SimpleNamespace(heartbeat=lambda: False, refusals={"broker-a": cause})
    with pytest.raises(RocketMQError, match=r"no broker took the heartbeat of group g: .*User:bob has no permission"):
        member._beat()
