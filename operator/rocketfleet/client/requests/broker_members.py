"""The clients of one broker: being one of them, and asking who the others are and what they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocketfleet.client.errors import response_error
from rocketfleet.client.requests.calls import Caller, ask
from rocketfleet.wire.bodies import (
    CheckClientRequest,
    ConsumerConnection,
    ConsumerList,
    ConsumerRunningInfo,
    ConsumerStatus,
    ProducerConnection,
)
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import request

if TYPE_CHECKING:
    from rocketfleet.wire.bodies import HeartbeatData, SubscriptionData
    from rocketfleet.wire.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """The broker's version, and whether our subscription was news to it."""

    version: int
    subscription_changed: bool


async def heartbeat(
    caller: Caller, address: str, data: HeartbeatData, *, timeout: float | None = None
) -> HeartbeatAnswer:
    """Join the groups named in the heartbeat, or stay in them. The broker forgets a member after two minutes without.

    NOTIFY_CONSUMER_IDS_CHANGED for our own joining can arrive before the answer does.
    """
    response = (await ask(caller, address, request(RequestCode.HEART_BEAT, body=data.encode()), timeout)).response
    return HeartbeatAnswer(response.version, response.fields.get("IS_SUB_CHANGE") == "true")


async def unregister(
    caller: Caller,
    address: str,
    client_id: str,
    *,
    producer_group: str | None = None,
    consumer_group: str | None = None,
    timeout: float | None = None,
) -> None:
    """Leave a group at once. The other members are told."""
    await ask(
        caller,
        address,
        request(
            RequestCode.UNREGISTER_CLIENT,
            {"clientID": client_id, "producerGroup": producer_group, "consumerGroup": consumer_group},
        ),
        timeout,
    )


async def check_subscription(
    caller: Caller,
    address: str,
    group: str,
    client_id: str,
    subscription: SubscriptionData,
    *,
    timeout: float | None = None,
) -> None:
    """Ask whether the broker can evaluate a subscription; a ResponseError says why not. Only SQL92 is worth asking."""
    body = CheckClientRequest(client_id=client_id, group=group, subscription_data=subscription)
    await ask(caller, address, request(RequestCode.CHECK_CLIENT_CONFIG, body=body.encode()), timeout)


async def consumer_ids(caller: Caller, address: str, group: str, *, timeout: float | None = None) -> tuple[str, ...]:
    """The client ids of a group's members as this broker sees them; none if nobody is online."""
    command = request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
    answer = await ask(caller, address, command, timeout, accept=(ResponseCode.SYSTEM_ERROR,))
    if answer.code == ResponseCode.SUCCESS:
        return answer.body(ConsumerList.decode).consumer_id_list
    remark = answer.response.remark
    if remark and "no consumer for this group" in remark:  # the broker has no code of its own for this
        return ()
    raise response_error(answer.code, remark, address, command.code)


async def consumer_connections(
    caller: Caller, address: str, group: str, *, timeout: float | None = None
) -> ConsumerConnection:
    """A group's members and subscriptions; ConsumerNotOnline if nobody is."""
    command = request(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group})
    return (await ask(caller, address, command, timeout)).body(ConsumerConnection.decode)


async def producer_connections(
    caller: Caller, address: str, group: str, *, timeout: float | None = None
) -> ProducerConnection:
    """A producer group's members; a ResponseError if nobody is online."""
    command = request(RequestCode.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": group})
    return (await ask(caller, address, command, timeout)).body(ProducerConnection.decode)


async def running_info(
    caller: Caller,
    address: str,
    group: str,
    client_id: str,
    *,
    stacks: bool = False,
    timeout: float | None = None,
) -> ConsumerRunningInfo:
    """What a member says about itself: its queues, their state, its rates. The broker passes the question on."""
    command = request(
        RequestCode.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": group, "clientId": client_id, "jstackEnable": stacks}
    )
    return (await ask(caller, address, command, timeout)).body(ConsumerRunningInfo.decode)


async def consumer_status(
    caller: Caller,
    address: str,
    group: str,
    topic: str,
    *,
    client_id: str | None = None,
    timeout: float | None = None,
) -> dict[str, dict[MessageQueue, int]]:
    """The offsets that the members themselves hold for a topic, by client id; of one member if it is named."""
    command = request(
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, {"topic": topic, "group": group, "clientAddr": client_id}
    )
    return (await ask(caller, address, command, timeout)).body(ConsumerStatus.decode).consumer_table
