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
from types import TracebackType
from typing import Any, Self

from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import NoRoute, RocketMQError, TopicNotExist, response_error
from rocketfleet.producer import checks, request, transaction
from rocketfleet.producer.batching.accumulating import Accumulating, BatchKey, Waiting
from rocketfleet.producer.errors import InvalidMessage, ProducerClosed, SendFailed, SendTimeout
from rocketfleet.producer.ids import process_ids
from rocketfleet.producer.options import ProducerOptions
from rocketfleet.producer.queues.choice import QueueRing, choose
from rocketfleet.producer.queues.faults import FaultTable
from rocketfleet.producer.queues.publishing import Publishing
from rocketfleet.producer.queues.sharding import Selector, ShardingKey, by_hash
from rocketfleet.producer.request import Prepared, SendSettings, build
from rocketfleet.producer.result import STATUS_OF_CODE, BatchResult, SendResult, SendStatus, read_batch, read_single
from rocketfleet.producer.retry import Blame, blame
from rocketfleet.producer.transaction import TransactionListener, TransactionResult
from rocketfleet.producer.upkeep import Upkeep
from rocketfleet.wire.codes import RequestCode
from rocketfleet.wire.command import Command
from rocketfleet.wire.message import Message, UniqueIds, properties
from rocketfleet.wire.queue import MessageQueue

_COMPRESS_ASIDE = 128 * 1024  # from here on, compressing would hold up the event loop noticeably
Stored = tuple[SendStatus, MessageQueue, Mapping[str, str]]
"""How and where a request was stored, and the fields of the answer."""


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
        self._running = False
        self._started = False

    # -- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin. Connects to nobody yet: that happens with the first message to each broker."""
        if self._started:
            raise ProducerClosed("a producer is started once; make a new one")
        self._started = True
        self._client = self._cluster if isinstance(self._cluster, Client) else Client(self._cluster)
        self._client.start()
        self._remoting = self._client.remoting
        self._ids: UniqueIds = process_ids(self._client.name_servers.addresses[0])
        self._publishing = Publishing(
            self._client,
            create_topic_key=self.options.create_topic_key,
            default_queues=self.options.default_queues,
            absence_interval=self.options.probe_interval,
        )
        self._rings = self._publishing.rings
        self._upkeep = Upkeep(
            self._client,
            self.group,
            self._publishing,
            self._faults,
            heartbeat_interval=self.options.heartbeat_interval,
            probe_timeout=self.options.probe_timeout,
            transactional=self._listener is not None,
        )
        self._upkeep.start()
        self._unsubscribe = self._remoting.on_request(RequestCode.CHECK_TRANSACTION_STATE, self._check_transaction)
        limits = self.options.batching
        self._accumulating = None if limits is None else Accumulating(limits, self._deliver_batch)
        self._running = True

    async def close(self) -> None:
        """Send what is waiting in batches, sign off at the brokers, and close the client if it is our own."""
        if not self._running:
            return
        if self._accumulating is not None:
            await self._accumulating.close()
        self._running = False
        self._unsubscribe()
        await self._upkeep.stop()
        await self._publishing.close()
        if self._client is not self._cluster:
            await self._client.close()

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
        topic = self._check(message)
        timeout = self.options.send_timeout if timeout is None else timeout
        sharding_key = message.sharding_key if sharding_key is None else sharding_key
        if queue is not None or sharding_key is not None or selector is not None:
            queue = await self._place(message, queue, sharding_key, selector, timeout)
        if self._accumulating is not None and checks.can_join_batch(message):
            encoded = request.encode_for_batch(message, self._settings, self._ids)
            if encoded is not None and len(encoded) <= self._accumulating.max_bytes:
                key = BatchKey(topic, queue, message.wait_store_ok, message.tags, timeout)
                return await self._accumulating.send(key, message, encoded)
        if type(message.body) is bytes and len(message.body) >= _COMPRESS_ASIDE:
            prepared = await asyncio.to_thread(request.prepare, message, self._settings, self._ids)
        else:
            prepared = request.prepare(message, self._settings, self._ids)
        status, queue, fields = await self._store(prepared, timeout, queue)
        return read_single(status, topic, queue.broker, prepared.msg_ids[0], fields)

    async def send_batch(
        self, messages: Sequence[Message], *, queue: MessageQueue | None = None, timeout: float | None = None
    ) -> BatchResult:
        """Store messages of one topic together, in one queue and in this order. All are stored, or none is."""
        if messages:
            self._check(messages[0])  # the others have the same topic, or are refused
        prepared = request.prepare_batch(messages, self._settings, self._ids)
        timeout = self.options.send_timeout if timeout is None else timeout
        if queue is not None:
            _check_queue(prepared.topic, queue)
        return await self._store_batch(prepared, timeout, queue)

    async def send_oneway(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        sharding_key: ShardingKey | None = None,
        selector: Selector | None = None,
    ) -> str:
        """Send without an answer and return the message's id. Whether it was stored is not known, and never will be."""
        topic = self._check(message)
        timeout = self.options.send_timeout
        sharding_key = message.sharding_key if sharding_key is None else sharding_key
        if queue is not None or sharding_key is not None or selector is not None:
            queue = await self._place(message, queue, sharding_key, selector, timeout)
        prepared = request.prepare(message, self._settings, self._ids)
        if queue is None:
            queue = choose(await self._ring(topic, timeout), None, self._faults)
            assert queue is not None, "a ring in use has queues"
        command = build(prepared, queue, int(time.time() * 1000), self._settings)
        await self._remoting.oneway(self._client.master(queue.broker), command, timeout)
        return prepared.msg_ids[0]

    async def send_in_transaction(
        self, message: Message, argument: Any = None, *, check_after: int | None = None
    ) -> TransactionResult:
        """Store a half message, run the listener's local transaction, and tell the broker how it ended.

        check_after: seconds before the broker may ask for the outcome; by default as the broker is configured.
        """
        if self._listener is None:
            raise InvalidMessage("this producer has no transaction listener: give it one as `transactions`")
        topic = self._check(message)
        half = transaction.half_message(message, self.group, check_after)
        prepared = request.prepare(half, self._settings, self._ids)
        message.properties[properties.UNIQUE_ID] = prepared.msg_ids[0]
        status, queue, fields = await self._store(prepared, self.options.send_timeout, None)
        sent = read_single(status, topic, queue.broker, prepared.msg_ids[0], fields)
        state, error = await transaction.execute(self._listener, message, argument, status)
        # From here on nothing may raise: the local transaction has happened, and the caller must learn its outcome.
        settled = await transaction.end(self._client, self.group, sent, state=state, error=error)
        return TransactionResult(sent, state, settled, error)

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """The topic's writable queues, in the order that sharding keys are mapped to."""
        self._check_topic(topic)
        return (await self._ring(topic, self.options.send_timeout)).queues

    # -- before the send ----------------------------------------------------------------------------------------------

    def _check(self, message: Message) -> str:
        topic = message.topic
        if topic not in self._checked_topics or not self._running:
            self._check_topic(topic)
        return topic

    def _check_topic(self, topic: str) -> None:
        if not self._running:
            raise ProducerClosed("the producer is closed" if self._started else "the producer is not started yet")
        checks.check_topic(topic)
        if len(self._checked_topics) > 10_000:  # names must not pile up
            self._checked_topics.clear()
        self._checked_topics.add(topic)

    async def _ring(self, topic: str, timeout: float) -> QueueRing:
        ring = self._rings.get(topic)
        if ring is not None:
            return ring
        try:
            async with asyncio.timeout(timeout):
                return await self._publishing.find(topic)
        except TimeoutError as error:
            if isinstance(error, RocketMQError):
                raise
            servers = ", ".join(self._client.name_servers.addresses)
            raise SendTimeout(
                f"no name server ({servers}) told the route of topic {topic} within {timeout:g} s"
            ) from None

    async def _place(
        self,
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
            await self._ring(message.topic, timeout)  # so that the broker's address is known
            return queue
        ring = await self._ring(message.topic, timeout)
        if selector is None:
            assert key is not None
            return by_hash(ring.queues, key)
        chosen = selector(ring.queues, message, key)
        if chosen not in ring.queues:
            raise InvalidMessage(f"the selector must return one of the topic's queues, and returned {chosen!r}")
        return chosen

    # -- the send -----------------------------------------------------------------------------------------------------

    async def _store(self, prepared: Prepared, timeout: float, fixed: MessageQueue | None) -> Stored:
        """Attempt until stored, refused for good, or out of attempts or time."""
        clock, faults, policy, topic = self._clock, self._faults, self.options.retry, prepared.topic
        started = clock()
        ring = self._rings.get(topic) or await self._ring(topic, timeout)
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
                address = self._client.master(broker)
                command = build(prepared, queue, int(time.time() * 1000), self._settings)
                answer = await self._remoting.call(address, command, patience)
                status = STATUS_OF_CODE.get(answer.code)
                if status is None:
                    raise response_error(answer.code, answer.remark, address, command.code)
            except RocketMQError as error:
                last = error
                self._note_failure(broker, topic, clock() - now, error)
                if fixed is not None:
                    raise
                if not policy.is_retried(error):
                    if stored is not None:
                        return stored
                    raise
                ring = self._rings.get(topic) or ring
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

    def _note_failure(self, broker: str, topic: str, latency: float, error: RocketMQError) -> None:
        guilt = blame(error, self.options.retry.codes)
        if guilt is Blame.UNREACHABLE or isinstance(error, TopicNotExist):
            self._publishing.suspect(topic)
        if self._faults is not None and guilt is not Blame.NOTHING:
            self._faults.failed(broker, latency, reachable=guilt is Blame.REFUSED)

    async def _store_batch(self, prepared: Prepared, timeout: float, queue: MessageQueue | None) -> BatchResult:
        status, queue, fields = await self._store(prepared, timeout, queue)
        return read_batch(status, prepared.topic, queue.broker, prepared.msg_ids, fields)

    async def _deliver_batch(self, key: BatchKey, waiting: Sequence[Waiting]) -> Sequence[SendResult]:
        if len(waiting) == 1:
            prepared = request.prepare(waiting[0].message, self._settings, self._ids)
            status, queue, fields = await self._store(prepared, key.timeout, key.queue)
            return [read_single(status, key.topic, queue.broker, prepared.msg_ids[0], fields)]
        prepared = request.join_batch(
            [one.message for one in waiting], [one.encoded for one in waiting], self._settings, self._ids
        )
        return await self._store_batch(prepared, key.timeout, key.queue)

    # -- transactions -------------------------------------------------------------------------------------------------

    async def _check_transaction(self, peer: str, command: Command) -> None:
        if self._listener is not None:
            await transaction.answer_check(self._remoting, peer, self.group, self._listener, command)


def _check_queue(topic: str, queue: MessageQueue) -> None:
    if queue.topic != topic:
        raise InvalidMessage(f"the queue {queue} is not of the message's topic, {topic}")
