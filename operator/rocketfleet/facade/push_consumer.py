"""`PushConsumer` as rocketmq-client-python has it, over `Consumer`.

The consumer lives on an event loop of its own in a daemon thread; callbacks run in its worker threads. 2.0.0's names
lead, 0.4.4's are here too (`set_namesrv_addr`, `set_namesrv_domain`). What differs, on purpose:

- `with PushConsumer(…) as consumer:` gives the consumer; the original gives None.
- A callback belongs to the topic that it was subscribed with. The original calls the last one for every topic.
- A callback that returns nothing has handled its message, as in 0.4.4; 2.0.0 wants a ConsumeStatus.
- Queues are handed over under the broker's lock, and `shutdown` waits for callbacks that have begun and for the broker
  to confirm the offsets. For a group that has Java members too, call `set_handover("Eager")`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from rocketfleet.allocation.strategies import StrategyName
from rocketfleet.base.loop_thread import LoopThread
from rocketfleet.client.errors import RocketMQError
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.results import ConsumeResult
from rocketfleet.consumer.settings import ConsumeMode, ConsumerSettings, Handover, InitialOffset
from rocketfleet.consumer.subscription import Subscription, tags_problem
from rocketfleet.facade.connecting import Connecting
from rocketfleet.facade.consts import ConsumeStatus, MessageModel
from rocketfleet.facade.exceptions import ConsumerException, NullPointerException, PushConsumerStartFailed
from rocketfleet.facade.message import ReceivedMessage, Text, number_of, text_of
from rocketfleet.facade.settings import Settings
from rocketfleet.wire.enums import MessageModel as Model

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocketfleet.wire import message as wire

_log = logging.getLogger(__name__)
_UNTIL_READY = 5.0  # seconds that `start` waits at most for queues that others still hold


class PushConsumer(Connecting):
    """A member of a group. Set it up, subscribe, start."""

    def __init__(
        self, group_id: Text, orderly: bool = False, message_model: MessageModel = MessageModel.CLUSTERING
    ) -> None:
        if group_id is None:
            raise NullPointerException("a consumer needs a group")
        self._settings = Settings(text_of(group_id, "a group"))
        self._orderly = orderly
        self._model = MessageModel(message_model)
        self._handover = Handover.EXCLUSIVE
        self._threads: int | None = None
        self._callbacks: dict[str, tuple[str, Callable[[ReceivedMessage], Any]]] = {}
        self._thread: LoopThread | None = None
        self._consumer: Consumer | None = None

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Join the group and begin to consume; a second start does nothing."""
        if self._consumer is not None:
            return
        if not self._callbacks:
            raise PushConsumerStartFailed("nothing is subscribed: call subscribe(topic, callback) first")
        self._thread = LoopThread(f"consumer {self._settings.group}")
        try:
            self._consumer = self._thread.call(self._begin())
        except (RocketMQError, ValueError, OSError) as error:
            self._end_thread()
            raise PushConsumerStartFailed(str(error)) from error
        except BaseException:
            self._end_thread()
            raise

    def shutdown(self) -> None:
        """Drain and leave the group. Without a start it does nothing."""
        consumer, self._consumer = self._consumer, None
        if consumer is None:
            return
        assert self._thread is not None
        try:
            self._thread.call(consumer.stop())
        finally:
            self._end_thread()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    # -- what to consume ----------------------------------------------------------------------------------------------

    def subscribe(
        self, topic: Text, callback: Callable[[ReceivedMessage], ConsumeStatus | None], expression: Text = "*"
    ) -> None:
        """Call back with the topic's messages that match the expression: `*`, or tags joined by `||`."""
        self._unstarted()
        if not callable(callback):
            raise TypeError(f"the callback must be a function, not {type(callback).__name__}")
        tags = text_of(expression, "an expression")
        if problem := tags_problem(tags):  # the original takes it, so it is no error here
            _log.warning("%s: %s", text_of(topic, "a topic"), problem)
        self._callbacks[text_of(topic, "a topic")] = (tags, callback)

    # -- settings -----------------------------------------------------------------------------------------------------

    def set_message_model(self, model: MessageModel) -> None:
        """Whether the group shares the messages or every member gets all."""
        self._unstarted()
        self._model = MessageModel(model)

    def set_group(self, group_id: Text) -> None:
        """The consumer group."""
        self._unstarted().group = text_of(group_id, "a group")

    def set_instance_name(self, name: Text) -> None:
        """A part of the client's id, instead of a random one. Two members of a group must not share it."""
        self._unstarted().instance_name = text_of(name, "an instance name")

    def set_thread_count(self, thread_count: int) -> None:
        """How many callbacks may run at once."""
        self._unstarted()
        self._threads = number_of(thread_count, "a thread count")

    def set_message_batch_max_size(self, max_size: int) -> None:
        """Callbacks get one message each, in the original too; the number changes nothing."""
        number_of(max_size, "a batch size")

    def set_message_trace(self, message_trace: bool) -> None:
        """Traces are not sent by this client; to ask for none is fine."""
        if message_trace:
            raise ConsumerException("this client sends no message traces: leave set_message_trace out")

    def set_handover(self, handover: str) -> None:
        """`Exclusive` (default), or `Eager` for groups that have members in other languages. Not in the original."""
        self._unstarted()
        self._handover = Handover(handover)

    # -- underneath ---------------------------------------------------------------------------------------------------

    def _unstarted(self) -> Settings:
        if self._consumer is not None:
            raise ConsumerException("the consumer runs: set it up before start()")
        return self._settings

    async def _begin(self) -> Consumer:
        settings = ConsumerSettings(
            group=self._settings.group,
            subscriptions=tuple(
                Subscription(topic, expression, any_tag=True) for topic, (expression, _) in self._callbacks.items()
            ),
            message_model=Model.CLUSTERING if self._model is MessageModel.CLUSTERING else Model.BROADCASTING,
            consume_mode=ConsumeMode.ORDERLY if self._orderly else ConsumeMode.CONCURRENT,
            handover=self._handover,
            initial_offset=InitialOffset.NATIVE,  # as the original: a young topic is read from its beginning
        )
        if self._threads is not None:
            settings = replace(settings, consume_thread_min=self._threads, consume_thread_max=self._threads)
        # The original's strategy, for its users share groups with it.
        consumer = Consumer(self._settings.client(), settings, self._handle, strategy=StrategyName.AVERAGELY)
        await consumer.start()
        # A new group starts at the end of its queues: messages sent right after `start` must not lie before that.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_UNTIL_READY):
                while not consumer.ready:  # noqa: ASYNC110 - readiness has many parts and no event of its own
                    await asyncio.sleep(0.02)
        return consumer

    def _handle(self, message: wire.ReceivedMessage) -> ConsumeResult:
        _, callback = self._callbacks[message.topic]
        status = callback(ReceivedMessage(message))
        if status is None or status == ConsumeStatus.CONSUME_SUCCESS:
            return ConsumeResult.SUCCESS
        if status == ConsumeStatus.RECONSUME_LATER:
            return ConsumeResult.RETRY
        raise ValueError(f"a callback returns a ConsumeStatus, not {status!r}")

    def _end_thread(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()
