"""Keeping one lane's window filled: the pull loop of a queue.

One long poll at a time, from where the window ends. What the broker may answer:

- found: buffered, offered to the workers, and on;
- caught up, or nothing matched the filter: the window's end moves to where the broker says, so that the committable
  offset passes what nobody wants, and on;
- offset moved: what was asked for has been deleted, and the window's end moves up to the minimum; or the group was
  reset, or the stored offset lies beyond the end, and the queue is started again from where the broker says.

The broker also says which replica to ask next time, and it is asked.

Unlike Java's, a pull carries no offset to commit. The broker handles pulls and commits in different threads, so an
offset that a pull carried can be stored after a higher one that was confirmed in the meantime, and then the next owner
repeats messages. Offsets have their own requests, one after the other (`offsets.py`).

Each pull carries its own subscription. The broker keeps one for the whole group, the newest, and would filter by that:
while members with other tags join or leave, messages would be skipped.

An error is waited out with a growing pause; one queue's trouble is nobody else's. A pull that the broker refuses
because it does not know our subscription asks for a heartbeat first.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from rocketfleet.client.client import Client
from rocketfleet.client.errors import ClientClosed, ResponseError, RocketMQError
from rocketfleet.client.requests.broker_messages import pull_request, pulled
from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.delivery.flow import QueueLimits, reason_to_wait
from rocketfleet.consumer.delivery.lane import Lane
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.wire.codes import ResponseCode
from rocketfleet.wire.errors import WireError
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.wire.message.properties import RETRY_TOPIC
from rocketfleet.wire.topics import RETRY_PREFIX

_log = logging.getLogger(__name__)
_SUSPEND = 2
_SUBSCRIPTION = 4  # the pull carries its own
_STALE_SUBSCRIPTION = (ResponseCode.SUBSCRIPTION_NOT_EXIST, ResponseCode.SUBSCRIPTION_NOT_LATEST)


@dataclass(frozen=True, slots=True)
class PullTimings:
    """Seconds."""

    suspend: float = 15.0  # for how long the broker holds a pull back that finds nothing
    timeout: float = 30.0  # a long poll may come back seconds after its time
    first_pause: float = 0.1
    longest_pause: float = 3.0
    full_check: float = 1.0  # after which a full window is looked at again, even if nobody called


_TIMINGS = PullTimings()


@dataclass(slots=True)
class PullHooks:
    """What the loop asks of its surroundings."""

    offer: Callable[[Lane], None]  # messages were buffered
    restart: Callable[[Lane, int], None]  # the stored offset was wrong: start again from here
    stale_subscription: Callable[[], None]  # the broker does not know our subscription: heartbeat
    limits: Callable[[str], QueueLimits]  # the limits of a topic's queues now


class Puller:
    """The loop of one lane. Ends when the queue is given up."""

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        subscription: Subscription,
        lane: Lane,
        hooks: PullHooks,
        *,
        clock: Callable[[], float],
        tally: ConsumerCounters,
        timings: PullTimings = _TIMINGS,
    ) -> None:
        self._client = client
        self._settings = settings
        self._subscription = subscription
        self._wanted = subscription.wanted
        self._expression = subscription.data.sub_string
        self._is_retry = subscription.topic.startswith(RETRY_PREFIX)
        self._lane = lane
        self._hooks = hooks
        self._clock = clock
        self._tally = tally
        self._progress = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._replica = 0  # the broker id that was suggested for the next pull
        self._suspend_millis = round(timings.suspend * 1000)
        self._timeout = timings.timeout
        self._first_pause, self._longest_pause = timings.first_pause, timings.longest_pause
        self._full_check = timings.full_check
        self._pause = self._first_pause
        self.last_pull = 0.0
        self.last_turn = clock()  # when the loop last came round, whether it pulled or waited

    async def run(self) -> None:
        window = self._lane.window
        window.on_progress = self._on_progress
        try:
            while not window.leaving:
                self.last_turn = self._clock()
                if not await self._room():
                    continue
                try:
                    await self._once()
                except ClientClosed:
                    return
                except RocketMQError as error:
                    await self._wait_out(error)
                else:
                    self._pause = self._first_pause
                    if self._settings.pull_interval:
                        await asyncio.sleep(self._settings.pull_interval)
        finally:
            if window.on_progress == self._on_progress:
                window.on_progress = None

    def _on_progress(self) -> None:
        # From a worker's thread. Cheap while nobody waits: a flag that is set stays set.
        if not self._progress.is_set():
            try:
                self._loop.call_soon_threadsafe(self._progress.set)
            except RuntimeError:
                _log.debug("the event loop is closed")

    async def _room(self) -> bool:
        """Wait until there is room and the lease holds. False: look again."""
        window = self._lane.window
        if self._clock() >= window.lease_until:
            await asyncio.sleep(self._first_pause)
            return False
        if not self._is_full():
            return True
        self._progress.clear()
        if not self._is_full():
            self._progress.set()
            return True  # the last worker was done between the first look and the clearing, and will not call again
        try:
            async with asyncio.timeout(self._full_check):
                await self._progress.wait()
        except TimeoutError:
            pass
        finally:
            self._progress.set()
        return False

    def _is_full(self) -> bool:
        window, settings = self._lane.window, self._settings
        reason = reason_to_wait(
            self._hooks.limits(self._lane.queue.topic),
            count=window.count,
            size=window.size,
            span=None if settings.is_orderly else window.span,
            uncommitted=(0, 0) if settings.auto_commit else window.uncommitted,
        )
        return reason is not None

    async def _once(self) -> None:
        lane, window, settings = self._lane, self._lane.window, self._settings
        found = self._client.reader(lane.queue.broker, self._replica)
        offset = window.next_offset
        command = pull_request(
            settings.group,
            lane.queue,
            offset,
            max_messages=settings.messages_per_pull,
            sys_flag=_SUSPEND | _SUBSCRIPTION,
            subscription=self._expression,
            suspend_millis=self._suspend_millis,
            sub_version=self._subscription.version,
            expression_type=self._subscription.type.wire,
        )
        self.last_pull = self._clock()
        answer = pulled(await self._client.remoting.call(found.address, command, self._timeout), found.address)
        self._tally.pulls += 1
        self._replica = answer.suggest_broker_id
        if answer.code == ResponseCode.SUCCESS:
            try:
                messages = answer.messages(lane.queue.broker)
            except WireError as error:
                _log.error("%s offset %d: %s; it is pulled again", lane.queue, offset, error, extra={"offset": offset})
                await asyncio.sleep(self._longest_pause)
                return
            self._tally.pulled += len(messages)
            if self._is_retry:
                name_origin(messages)
            if self._wanted is not None:
                messages = self._wanted(messages)
            if window.put(messages, answer.next_begin_offset) and messages:
                self._hooks.offer(lane)
        elif answer.code == ResponseCode.PULL_OFFSET_MOVED:
            self._moved(offset, answer.next_begin_offset, answer.min_offset)
        else:
            window.put((), answer.next_begin_offset)

    def _moved(self, asked: int, following: int, minimum: int) -> None:
        queue = self._lane.queue
        if asked < following <= minimum:
            # Deleted under us. What is buffered was pulled in time and stays good.
            _log.warning("%s: offsets %d to %d no longer exist; going on at %d", queue, asked, following - 1, following)
            self._lane.window.put((), following)
        elif following != asked:
            _log.warning(
                "%s: moved by the broker from offset %d to %d (a reset, or an offset beyond the end)",
                queue,
                asked,
                following,
                extra={"offset": asked},
            )
            self._hooks.restart(self._lane, following)

    async def _wait_out(self, error: RocketMQError) -> None:
        if isinstance(error, ResponseError) and error.code in _STALE_SUBSCRIPTION:
            self._hooks.stale_subscription()
        self._replica = 0  # a slave that fails is left; the master says again whom to ask
        _log.warning("pulling %s failed, next try in %.1f s: %s", self._lane.queue, self._pause, error)
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 2, self._longest_pause)


def name_origin(messages: list[ReceivedMessage]) -> None:
    """Give retried messages the topic that they first came from, by which a handler knows them. As Java does."""
    for message in messages:
        if message.topic.startswith(RETRY_PREFIX):
            message.topic = message.properties.get(RETRY_TOPIC, message.topic)
