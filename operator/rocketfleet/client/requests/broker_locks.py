"""Queue locks at one broker's master.

A lock belongs to a group and a client id, whatever the connection; it lives in the broker's memory and expires after 60
seconds unless it is taken again. The answer says which queues are ours now, and not who holds the others. Releasing in
another's name works too, which is how survivors free what a dead member held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketfleet.client.requests.calls import Caller, ask
from rocketfleet.wire.bodies import LockBatchRequest, LockBatchResponse, UnlockBatchRequest
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocketfleet.wire.queue import MessageQueue


async def lock(
    caller: Caller,
    address: str,
    group: str,
    client_id: str,
    queues: Iterable[MessageQueue],
    *,
    timeout: float | None = None,
) -> frozenset[MessageQueue]:
    """Lock queues, or renew their locks; returns those that are ours now."""
    body = LockBatchRequest(consumer_group=group, client_id=client_id, mq_set=tuple(sorted(queues)))
    answer = await ask(caller, address, request(RequestCode.LOCK_BATCH_MQ, body=body.encode()), timeout)
    return frozenset(answer.body(LockBatchResponse.decode).lock_ok_mq_set)


async def unlock(
    caller: Caller,
    address: str,
    group: str,
    client_id: str,
    queues: Iterable[MessageQueue],
    *,
    timeout: float | None = None,
) -> None:
    """Release queues. What is not held by this client id is left alone."""
    body = UnlockBatchRequest(consumer_group=group, client_id=client_id, mq_set=tuple(sorted(queues)))
    await ask(caller, address, request(RequestCode.UNLOCK_BATCH_MQ, body=body.encode()), timeout)
