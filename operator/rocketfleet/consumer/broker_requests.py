"""What the broker may ask of a member: so that mqadmin works on ours as on Java's.

- the members changed (40): rebalance;
- reset offsets (220): queues start again from the offsets given;
- consumer status (221): our offsets of a topic;
- running info (307): what we hold and how far we are, which is also how Balanced learns who owns what;
- consume this message now (309): the handler gets it at once and the result is the answer.
"""

import asyncio
import time
import traceback
from collections.abc import Callable
from typing import Any

from rocketfleet.client.client import Client
from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.delivery.pull import name_origin
from rocketfleet.consumer.handler import Handler
from rocketfleet.consumer.handover.holdings import Holding, Holdings
from rocketfleet.consumer.handover.ownership import OwnershipState
from rocketfleet.consumer.results import ConsumeResult, judge
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.bodies import (
    PROP_CLIENT_VERSION,
    PROP_CONSUME_TYPE,
    PROP_NAME_SERVERS,
    PROP_ORDERLY,
    PROP_START_TIMESTAMP,
    PROP_THREADS,
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    ConsumerStatus,
    ConsumeType,
    ProcessQueueInfo,
    ResetOffset,
)
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, reply_to
from rocketfleet.wire.message import ReceivedMessage, decode_messages

_MIB = 1 << 20
_RESULTS = {ConsumeResult.SUCCESS: "CR_SUCCESS", ConsumeResult.COMMIT: "CR_SUCCESS"}
_ORDERLY_RESULTS = {
    ConsumeResult.SUCCESS: "CR_SUCCESS",
    ConsumeResult.COMMIT: "CR_COMMIT",
    ConsumeResult.ROLLBACK: "CR_ROLLBACK",
}


class BrokerRequests:
    """The handlers of the broker's requests, registered with the client for as long as the consumer runs."""

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        subscriptions: dict[str, Subscription],
        holdings: Holdings,
        handler: Handler,
        rebalance_soon: Callable[[], None],
        workers: Callable[[], int],
        *,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._settings = settings
        self._subscriptions = subscriptions
        self._holdings = holdings
        self._handler = handler
        self._rebalance_soon = rebalance_soon
        self._workers = workers
        self._clock = clock
        self._started_at = int(time.time() * 1000)
        on = client.remoting.on_request
        self._registered = [
            on(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, self._members_changed),
            on(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, self._reset),
            on(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, self._status),
            on(RequestCode.GET_CONSUMER_RUNNING_INFO, self._running_info),
            on(RequestCode.CONSUME_MESSAGE_DIRECTLY, self._consume_directly),
        ]

    def close(self) -> None:
        for remove in self._registered:
            remove()

    def _members_changed(self, _peer: str, command: Command) -> None:
        if command.fields.get("consumerGroup") in (None, self._settings.group):
            self._rebalance_soon()

    def _reset(self, _peer: str, command: Command) -> None:
        if command.fields.get("group") != self._settings.group:
            return
        for queue, offset in ResetOffset.decode(command.body).offset_table.items():
            holding = self._holdings.get(queue)
            if holding is not None and holding.lane is not None:
                self._holdings.restart(holding.lane, offset)

    def _status(self, _peer: str, command: Command) -> Command | None:
        if command.fields.get("group") != self._settings.group:
            return None
        topic = command.fields.get("topic")
        offsets = {h.queue: lane.window.committable for h, lane in self._holdings.lanes() if h.queue.topic == topic}
        return reply_to(command, body=ConsumerStatus(message_queue_table=offsets).encode())

    def _running_info(self, _peer: str, command: Command) -> Command | None:
        if command.fields.get("consumerGroup") != self._settings.group:
            return None
        info = self.running_info(stacks=command.fields.get("jstackEnable") == "true")
        return reply_to(command, body=info.encode())

    def running_info(self, *, stacks: bool = False) -> ConsumerRunningInfo:
        """What this member holds and how it is set up, in the form in which the broker passes it on."""
        properties = {
            PROP_NAME_SERVERS: ";".join(self._client.config.name_servers),
            PROP_CONSUME_TYPE: ConsumeType.PUSH,
            PROP_ORDERLY: "true" if self._settings.is_orderly else "false",
            PROP_THREADS: str(self._workers()),
            PROP_START_TIMESTAMP: str(self._started_at),
            PROP_CLIENT_VERSION: "V5_5_0",
            "rocketfleet.handover": self._settings.handover.value,
        }
        return ConsumerRunningInfo(
            properties=properties,
            subscription_set=tuple(subscription.data for subscription in self._subscriptions.values()),
            mq_table={
                holding.queue: self._queue_info(holding, lane)
                for holding, lane in self._holdings.lanes()
                if holding.state is not OwnershipState.GONE
            },
            jstack=_stacks() if stacks else None,
        )

    def _queue_info(self, holding: Holding, lane: Lane) -> ProcessQueueInfo:
        window = lane.window
        committable, count = window.committable, window.count
        now, wall = self._clock(), time.time()

        def moment(clocked: float) -> int:
            return int((wall - max(0.0, now - clocked)) * 1000) if clocked else 0

        return ProcessQueueInfo(
            commit_offset=committable,
            cached_msg_min_offset=committable if count else 0,
            cached_msg_max_offset=window.next_offset - 1 if count else 0,
            cached_msg_count=count,
            cached_msg_size_in_mib=window.size // _MIB,
            locked=self._settings.locks_queues and now < window.lease_until,
            last_lock_timestamp=moment(holding.locked_at),
            dropped=window.dropped,
            last_pull_timestamp=moment(holding.puller.last_pull) if holding.puller else 0,
            last_consume_timestamp=moment(lane.consumed_at),
        )

    async def _consume_directly(self, _peer: str, command: Command) -> Command | None:
        if command.fields.get("consumerGroup") != self._settings.group:
            return None
        started = time.monotonic()
        result: tuple[str, str | None]
        try:
            messages = decode_messages(command.body, command.fields.get("brokerName", ""))
            name_origin(messages)
        except Exception as error:
            result = "CR_THROW_EXCEPTION", _described(error)
        else:
            result = await self._result_of(messages)
        body = ConsumeMessageDirectlyResult(
            order=self._settings.is_orderly,
            auto_commit=self._settings.auto_commit,
            consume_result=result[0],
            remark=result[1],
            spent_time_mills=int((time.monotonic() - started) * 1000),
        )
        return reply_to(command, ResponseCode.SUCCESS, body=body.encode())

    async def _result_of(self, messages: list[ReceivedMessage]) -> tuple[str, str | None]:
        """What the handler makes of messages, in the broker's words; and the exception, if there was one."""
        if not messages:
            return "CR_THROW_EXCEPTION", "the request has no message in it"
        argument = messages if self._handler.takes_batch else messages[0]
        # In a task of its own: the handler may cancel what it runs in.
        calling = asyncio.ensure_future(
            _called_async(self._handler.call, argument)
            if self._handler.is_async
            else asyncio.to_thread(_called, self._handler.call, argument)
        )
        try:
            await asyncio.wait([calling])
        finally:
            calling.cancel()
        if calling.cancelled():
            return "CR_THROW_EXCEPTION", "the handler was cancelled"
        answer, error = calling.result()
        try:
            if error is None:
                verdict, _ = judge(answer[0] if issubclass(type(answer), list | tuple) and answer else answer)
                return (_ORDERLY_RESULTS if self._settings.is_orderly else _RESULTS).get(verdict, "CR_LATER"), None
        except BaseException as trouble:
            error = trouble
        return "CR_THROW_EXCEPTION", _described(error)


# What is raised is returned: raised out of a thread, StopIteration would never arrive; raised out of a task, SystemExit
# would end the event loop.


def _called(call: Callable[[Any], Any], argument: object) -> tuple[Any, BaseException | None]:
    try:
        return call(argument), None
    except BaseException as error:
        return None, error


async def _called_async(call: Callable[[Any], Any], argument: object) -> tuple[Any, BaseException | None]:
    try:
        return await call(argument), None
    except BaseException as error:
        return None, error


def _described(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception_only(error)).strip()
    except BaseException:
        return type(error).__name__


def _stacks() -> str:
    import sys
    import threading

    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():  # noqa: SLF001 - the only way to see other threads
        parts.append(f"{names.get(ident, ident)}\n{''.join(traceback.format_stack(frame))}")
    return "\n".join(parts)
