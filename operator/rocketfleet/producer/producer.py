"""The producer: from `send` to a stored message, and what has to run beside it.

A send is checked and encoded once, then attempted: choose a queue, ask its broker, judge the answer. The first
attempt of an ordinary send costs no task, no timer and no lock of its own; everything that is rare (a topic seen for
the first time, a retry, a transaction) stands apart from that path.

Sends that name their queue, by number, by sharding key or by an own selector, are attempted once, as in Java: another
queue would break the order they ask for, and whether to wait or to give up is the caller's to decide.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import NoRoute, RocketMQError, TopicNotExist, response_error
from rocketfleet.client.transport.remoting import Remoting
from rocketfleet.producer import checks, request, transaction
from rocketfleet.producer.batching.accumulating import Accumulating, BatchKey, Waiting
from rocketfleet.producer.errors import InvalidMessage, ProducerClosed, SendFailed, SendTimeout
from rocketfleet.producer.ids import process_ids
from rocketfleet.producer.options import ProducerOptions
from rocketfleet.producer.queues.choice import QueueRing, choose
from rocketfleet.producer.queues.faults import FaultTable
from rocketfleet.producer.queues.publishing import Publishing
from rocketfleet.producer.queues.sharding import Selector, ShardingKey, by_hash
from rocketfleet.producer.request import PreparedSend, SendSettings, build
from rocketfleet.producer.result import STATUS_OF_CODE, BatchResult, SendResult, SendStatus, read_batch, read_single
from rocketfleet.producer.retry import Blame, blame
from rocketfleet.producer.transaction import TransactionListener, TransactionResult
from rocketfleet.producer.upkeep import ProducerUpkeep
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command
from rocketfleet.wire.message import Message, UniqueIds, properties
from rocketfleet.wire.queue import MessageQueue

_COMPRESS_ASIDE = 128 * 1024  # from here on, compressing would hold up the event loop noticeably
Stored = tuple[SendStatus, MessageQueue, Mapping[str, str]]
"""How and where a request was stored, and the fields of the answer."""


@dataclass(frozen=True, slots=True)
class _RunningProducer:
    """What a producer is made of, from when it has started."""

    client: Client
    remoting: Remoting
    ids: UniqueIds
    publishing: Publishing
    rings: Mapping[str, QueueRing]  # of `publishing`
    upkeep: ProducerUpkeep
    unsubscribe: Callable[[], None]
    accumulating: Accumulating | None


class Producer:
    """`async with Producer(config, group="orders") as producer: await producer.send(Message("topic", b"body"))`

    `cluster` is a ClientConfig, for a client of the producer's own, or a running Client, to share one. Belongs to the
    event loop in which it is started; for code without one there is SyncProducer.
    """

    def __init__(
        self,
        cluster: ClientConfig | Client,
        group: str,
        options: ProducerOptions | None = None,
        *,
        transactions: TransactionListener | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        checks.check_group(group)
        self.group = group
        self.options = options or ProducerOptions()
        self._cluster = cluster
        self._listener = transactions
        self._clock = clock
        o = self.options
        self._settings = SendSettings(
            group,
            o.max_message_size,
            o.compress_over,
            o.compression,
            o.compression_level,
            o.create_topic_key,
            o.default_queues,
            o.header_form,
        )
        self._faults: FaultTable | None = None
        if o.latency_fault_tolerance:
            self._faults = FaultTable(clock, ladder=o.fault_ladder, probe_interval=o.probe_interval)
        self._checked_topics: set[str] = set()
        self._started = False
        self._running: _RunningProducer | None = None  # once it has started, and for good
        self._is_open = False

    # -- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin. Connects to nobody yet: that happens with the first message to each broker."""
        if self._started:
            raise ProducerClosed("a producer is started once; make a new one")
        self._started = True
        self._running = self._assemble()
        self._is_open = True

    def _assemble(self) -> _RunningProducer:
        client = self._cluster if isinstance(self._cluster, Client) else Client(self._cluster)
        client.start()
        publishing = Publishing(
            client,
            create_topic_key=self.options.create_topic_key,
            default_queues=self.options.default_queues,
            absence_interval=self.options.probe_interval,
        )
        upkeep = ProducerUpkeep(
            client,
            self.group,
            publishing,
            self._faults,
            heartbeat_interval=self.options.heartbeat_interval,
            probe_timeout=self.options.probe_timeout,
            transactional=self._listener is not None,
        )
        upkeep.start()
        limits = self.options.batching
        return _RunningProducer(
            client,
            client.remoting,
            process_ids(client.name_servers.addresses[0]),
            publishing,
            publishing.rings,
            upkeep,
            client.remoting.on_request(RequestCode.CHECK_TRANSACTION_STATE, self._check_transaction),
            None if limits is None else Accumulating(limits, self._deliver_batch),
        )

    async def close(self) -> None:
        """Send what is waiting in batches, sign off at the brokers, and close the client if it is our own."""
        if not self._is_open:
            return
        running = self._parts
        if running.accumulating is not None:
            await running.accumulating.close()
        self._is_open = False
        running.unsubscribe()
        await running.upkeep.stop()
        await running.publishing.close()
        if running.client is not self._cluster:
            await running.client.close()

    @property
    def _parts(self) -> _RunningProducer:
        if self._running is None:
            raise ProducerClosed("the producer is not started yet")
        return self._running

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # -- sending ------------------------------------------------------------------------------------------------------

    async def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        sharding_key: ShardingKey | None = None,
        selector: Selector | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Store one message and return where. At most one of: `queue`, `sharding_key` or `selector` decides the queue.

        `selector` may be given a `sharding_key` to decide by. A message made with a sharding key is sent by it.
        """
        topic, running = message.topic, self._check(message)
        timeout = self.options.send_timeout if timeout is None else timeout
        sharding_key = message.sharding_key if sharding_key is None else sharding_key
        if queue is not None or sharding_key is not None or selector is not None:
            queue = await self._place(running, message, queue, sharding_key, selector, timeout)
        if running.accumulating is not None and checks.can_join_batch(message):
            encoded = request.encode_for_batch(message, self._settings, running.ids)
            if encoded is not None and len(encoded) <= running.accumulating.max_bytes:
                key = BatchKey(topic, queue, message.wait_store_ok, message.tags, timeout)
                return await running.accumulating.send(key, message, encoded)
        if type(message.body) is bytes and len(message.body) >= _COMPRESS_ASIDE:
            prepared = await asyncio.to_thread(request.prepare, message, self._settings, running.ids)
        else:
            prepared = request.prepare(message, self._settings, running.ids)
        status, queue, fields = await self._store(running, prepared, timeout, queue)
        return read_single(status, topic, queue.broker, prepared.msg_ids[0], fields)

    async def send_batch(
        self, messages: Sequence[Message], *, queue: MessageQueue | None = None, timeout: float | None = None
    ) -> BatchResult:
        """Store messages of one topic together, in one queue and in this order. All are stored, or none is."""
        if messages:
            self._check(messages[0])  # the others have the same topic, or are refused
        running = self._parts
        prepared = request.prepare_batch(messages, self._settings, running.ids)
        timeout = self.options.send_timeout if timeout is None else timeout
        if queue is not None:
            _check_queue(prepared.topic, queue)
        return await self._store_batch(running, prepared, timeout, queue)

    async def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        sharding_key: ShardingKey | None = None,
        selector: Selector | None = None,
    ) -> str:
        """Send without an answer and return the message's id. Whether it was stored is not known, and never will be."""
        topic, running = message.topic, self._check(message)
        timeout = self.options.send_timeout
        sharding_key = message.sharding_key if sharding_key is None else sharding_key
        if queue is not None or sharding_key is not None or selector is not None:
            queue = await self._place(running, message, queue, sharding_key, selector, timeout)
        prepared = request.prepare(message, self._settings, running.ids)
        if queue is None:
            queue = choose(await self._ring(running, topic, timeout), None, self._faults)
            assert queue is not None, "a ring in use has queues"
        command = build(prepared, queue, int(time.time() * 1000), self._settings)
        await running.remoting.oneway(running.client.master(queue.broker), command, timeout)
        return prepared.msg_ids[0]

    async def send_in_transaction(
        self, message: Message, argument: Any = None, *, check_after: int | None = None
    ) -> TransactionResult:
        """Store a half message, run the listener's local transaction, and tell the broker how it ended.

        check_after: seconds before the broker may ask for the outcome; by default as the broker is configured.
        """
        if self._listener is None:
            raise InvalidMessage("this producer has no transaction listener: give it one as `transactions`")
        topic, running = message.topic, self._check(message)
        half = transaction.half_message(message, self.group, check_after)
        prepared = request.prepare(half, self._settings, running.ids)
        message.properties[properties.UNIQUE_ID] = prepared.msg_ids[0]
        status, queue, fields = await self._store(running, prepared, self.options.send_timeout, None)
        sent = read_single(status, topic, queue.broker, prepared.msg_ids[0], fields)
        state, error = await transaction.execute(self._listener, message, argument, status)
        # From here on nothing may raise: the local transaction has happened, and the caller must learn its outcome.
        settled = await transaction.end(running.client, self.group, sent, state=state, error=error)
        return TransactionResult(sent, state, settled, error)

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """The topic's writable queues, in the order that sharding keys are mapped to."""
        running = self._check_topic(topic)
        return (await self._ring(running, topic, self.options.send_timeout)).queues

    # -- before the send ----------------------------------------------------------------------------------------------

    def _check(self, message: Message) -> _RunningProducer:
        running, topic = self._running, message.topic
        if running is None or not self._is_open or topic not in self._checked_topics:
            running = self._check_topic(topic)
        return running

    def _check_topic(self, topic: str) -> _RunningProducer:
        if not self._is_open:
            raise ProducerClosed("the producer is closed" if self._started else "the producer is not started yet")
        checks.check_topic(topic)
        if len(self._checked_topics) > 10_000:  # names must not pile up
            self._checked_topics.clear()
        self._checked_topics.add(topic)
        return self._parts

    async def _ring(self, running: _RunningProducer, topic: str, timeout: float) -> QueueRing:
        ring = running.rings.get(topic)
        if ring is not None:
            return ring
        try:
            async with asyncio.timeout(timeout):
                return await running.publishing.find(topic)
        except TimeoutError as error:
            if isinstance(error, RocketMQError):
                raise
            servers = ", ".join(running.client.name_servers.addresses)
            raise SendTimeout(
                f"no name server ({servers}) told the route of topic {topic} within {timeout:g} s"
            ) from None

    async def _place(
        self,
        running: _RunningProducer,
        message: Message,
        queue: MessageQueue | None,
        key: ShardingKey | None,
        selector: Selector | None,
        timeout: float,
    ) -> MessageQueue:
        """The queue that the caller wants."""
        if queue is not None:
            if selector is not None:
                raise InvalidMessage("give a queue or a selector, not both")
            _check_queue(message.topic, queue)
            await self._ring(running, message.topic, timeout)  # so that the broker's address is known
            return queue
        ring = await self._ring(running, message.topic, timeout)
        if selector is None:
            assert key is not None
            return by_hash(ring.queues, key)
        chosen = selector(ring.queues, message, key)
        if chosen not in ring.queues:
            raise InvalidMessage(f"the selector must return one of the topic's queues, and returned {chosen!r}")
        return chosen

    # -- the send -----------------------------------------------------------------------------------------------------

    async def _store(
        self, running: _RunningProducer, prepared: PreparedSend, timeout: float, fixed: MessageQueue | None
    ) -> Stored:
        """Attempt until stored, refused for good, or out of attempts or time."""
        clock, faults, policy, topic = self._clock, self._faults, self.options.retry, prepared.topic
        started = clock()
        ring = running.rings.get(topic) or await self._ring(running, topic, timeout)
        tried: list[str] = []
        last: RocketMQError | None = None
        stored: Stored | None = None
        while True:
            now = clock()
            patience = policy.time_for_attempt(len(tried), timeout - (now - started))
            if fixed is not None:
                patience = timeout - (now - started) if not tried else None
            if patience is None:
                break
            queue = fixed or choose(ring, tried[-1] if tried else None, faults)
            if queue is None:
                break
            broker = queue.broker
            if tried and broker == tried[-1]:
                await asyncio.sleep(policy.pause(len(tried), patience))
                now = clock()
                patience = policy.time_for_attempt(len(tried), timeout - (now - started))
                if patience is None:
                    break
            tried.append(broker)
            try:
                address = running.client.master(broker)
                command = build(prepared, queue, int(time.time() * 1000), self._settings)
                answer = await running.remoting.call(address, command, patience)
                status = STATUS_OF_CODE.get(answer.code)
                if status is None:
                    raise response_error(answer.code, answer.remark, address, command.code)
            except RocketMQError as error:
                last = error
                self._note_failure(running, broker, topic, clock() - now, error)
                if fixed is not None:
                    raise
                if not policy.is_retried(error):
                    if stored is not None:
                        return stored
                    raise
                ring = running.rings.get(topic) or ring
                continue
            if faults is not None:
                faults.answered(broker, clock() - now)
            stored = status, queue, answer.fields
            if status is SendStatus.SEND_OK or not policy.retry_unless_stored_well or fixed is not None:
                return stored
        if stored is not None:
            return stored
        if last is None:
            if not tried and not ring.queues:
                raise NoRoute(topic, "it has no queue that can be written to now")
            raise SendTimeout(f"the {timeout:g} s for sending to topic {topic} were over before the first attempt")
        raise SendFailed(topic, tuple(tried), clock() - started, last) from last

    def _note_failure(
        self, running: _RunningProducer, broker: str, topic: str, latency: float, error: RocketMQError
    ) -> None:
        guilt = blame(error, self.options.retry.codes)
        if guilt is Blame.UNREACHABLE or isinstance(error, TopicNotExist):
            running.publishing.suspect(topic)
        if self._faults is not None and guilt is not Blame.NOTHING:
            self._faults.failed(broker, latency, reachable=guilt is Blame.REFUSED)

    async def _store_batch(
        self, running: _RunningProducer, prepared: PreparedSend, timeout: float, queue: MessageQueue | None
    ) -> BatchResult:
        status, queue, fields = await self._store(running, prepared, timeout, queue)
        return read_batch(status, prepared.topic, queue.broker, prepared.msg_ids, fields)

    async def _deliver_batch(self, key: BatchKey, waiting: Sequence[Waiting]) -> Sequence[SendResult]:
        running = self._parts
        if len(waiting) == 1:
            prepared = request.prepare(waiting[0].message, self._settings, running.ids)
            status, queue, fields = await self._store(running, prepared, key.timeout, key.queue)
            return [read_single(status, key.topic, queue.broker, prepared.msg_ids[0], fields)]
        prepared = request.join_batch(
            [one.message for one in waiting], [one.encoded for one in waiting], self._settings, running.ids
        )
        return await self._store_batch(running, prepared, key.timeout, key.queue)

    # -- transactions -------------------------------------------------------------------------------------------------

    async def _check_transaction(self, peer: str, command: Command) -> None:
        if self._listener is not None:
            await transaction.answer_check(self._parts.remoting, peer, self.group, self._listener, command)


def _check_queue(topic: str, queue: MessageQueue) -> None:
    if queue.topic != topic:
        raise InvalidMessage(f"the queue {queue} is not of the message's topic, {topic}")
