"""The push consumer: one member of one group, put together.

Start, in this order, because each step needs the one before:
1. the settings are checked (when they are made), and with SQL92 the broker is asked whether it can evaluate the
   expression;
2. the routes of all topics are read, so that the brokers are known;
3. every broker hears a heartbeat *before* the first pull: a pull with a subscription that the broker does not know is
   refused, and Java's client then stands still for half a minute;
4. rebalancing begins at once.

From then on timers run (`timers.py`), and none waits for another: routes (the client's), heartbeats, commits, locks,
rebalancing; one keeps an eye on another member, one on the pull loops. `stop` runs the table in `shutdown.py`.

A subscribed topic that does not exist is a warning: the others are consumed, and it is too once it is there.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from rocketfleet.allocation.strategies import DEFAULT_STRATEGY, Strategy, build
from rocketfleet.base.clock import lease_clock
from rocketfleet.base.counting import counted
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import NoRoute, ResponseError, RocketMQError
from rocketfleet.client.requests import broker_members, broker_messages
from rocketfleet.consumer.broker_requests import BrokerRequests
from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.delivery.concurrent import ConcurrentConsumption
from rocketfleet.consumer.delivery.fate import DEFAULT_MAX_RECONSUME_TIMES
from rocketfleet.consumer.delivery.orderly import OrderlyConsumption
from rocketfleet.consumer.handler import BatchHandler, SingleHandler, inspect_handler
from rocketfleet.consumer.handover.holdings import FinalOffset, Holdings, Offsets
from rocketfleet.consumer.handover.lock_keeper import LockKeeper
from rocketfleet.consumer.handover.membership import Membership, jittered
from rocketfleet.consumer.handover.ownership import QueueEvent
from rocketfleet.consumer.handover.predecessors import Predecessors
from rocketfleet.consumer.handover.rebalancer import Rebalancer
from rocketfleet.consumer.offset_storage.beginning import Beginnings
from rocketfleet.consumer.offset_storage.committing import Committer
from rocketfleet.consumer.offset_storage.local_identity import open_local_offsets
from rocketfleet.consumer.offset_storage.local_offsets import LocalOffsets
from rocketfleet.consumer.offset_storage.offsets import BrokerOffsets
from rocketfleet.consumer.settings import ConsumerSettings, InitialOffset
from rocketfleet.consumer.shutdown import Signal, StopPhase, StopStep, advance
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.consumer.timers import Timers
from rocketfleet.consumer.timings import ConsumerTimings
from rocketfleet.consumer.until_signalled import until_signalled
from rocketfleet.control.budget import Margin
from rocketfleet.wire.bodies import MASTER_ID
from rocketfleet.wire.enums import ConsumeFromWhere, ExpressionType
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.wire.topics import RETRY_PREFIX

_log = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_TIMINGS = ConsumerTimings()


class NoHeartbeatError(RocketMQError):
    """No broker could be told that we are here."""

    def __init__(self, group: str, reasons: Mapping[str, RocketMQError]) -> None:
        said = dict.fromkeys(str(error) for error in reasons.values())
        because = "; ".join(said) or "no broker is known"
        super().__init__(f"no broker took the heartbeat of group {group}: {because}")


class ExpressionRefusedError(RocketMQError):
    """A broker cannot evaluate a subscription's expression."""

    def __init__(self, subscription: Subscription, broker: str, error: ResponseError) -> None:
        super().__init__(
            f"{broker} cannot evaluate the {subscription.type} expression {subscription.expression!r} "
            f"of topic {subscription.topic}: correct it, or enable property filters at the broker ({error})"
        )


@dataclass(frozen=True, slots=True)
class _RunningConsumer:
    """What a consumer is made of, from when it knows its brokers."""

    offsets: Offsets
    consumption: ConcurrentConsumption | OrderlyConsumption
    membership: Membership
    predecessors: Predecessors
    beginnings: Beginnings
    holdings: Holdings
    rebalancer: Rebalancer
    lock_keeper: LockKeeper
    committer: Committer
    answers: BrokerRequests


class Consumer:
    """`async with Consumer(config, settings, handler) as consumer: …` consumes until it is left, and drains then.

    `Consumer(config, settings, handler).run()` is for programs without an event loop: it consumes until Ctrl-C.

    `config` may be a `Client` that is shared with others; then it is not closed here. Its client id must be the group's
    only one: two members with one id share their queues without knowing. `strategy` is a name, or a strategy with its
    parameters; all members need the same, so beside Java's it is AVG.
    """

    def __init__(
        self,
        config: ClientConfig | Client,
        settings: ConsumerSettings,
        handler: SingleHandler | BatchHandler,
        *,
        strategy: Strategy | str = DEFAULT_STRATEGY,
        offset_directory: Path | None = None,
        clock: Callable[[], float] = lease_clock,
        timings: ConsumerTimings = _TIMINGS,
    ) -> None:
        self._client = config if isinstance(config, Client) else Client(config)
        self._owns_client = not isinstance(config, Client)
        self.settings = settings
        self.handler = inspect_handler(handler)
        self._strategy = build(strategy) if isinstance(strategy, str) else strategy
        self._offset_directory = offset_directory or Path.home() / ".rocketmq_offsets"
        self._clock = clock
        self._timings = timings
        self.tally = ConsumerCounters()
        self.phase = StopPhase.RUNNING
        self._started = False
        self._start_over = asyncio.Event()
        self._running: _RunningConsumer | None = None  # once the brokers are known, and for good
        self._timers = Timers(settings.group)
        self._cleanups: list[Callable[[], None]] = []
        self._heartbeat_wanted = asyncio.Event()
        self._were_lost: set[str] = set()  # brokers whose connection broke at some time
        self._closed = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self.subscriptions = {subscription.topic: subscription for subscription in settings.subscriptions}
        if not settings.is_broadcasting:
            retry = Subscription(RETRY_PREFIX + settings.group)
            self.subscriptions[retry.topic] = retry

    # -- life ---------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def client_id(self) -> str:
        return self._client.client_id

    async def start(self) -> None:
        """Join the group and begin to consume. Raises if no topic exists or no broker can be reached."""
        if self._started:
            raise RuntimeError("a consumer is started once: make a new one")
        self._started = True
        self._client.start()
        try:
            await self._find_brokers()
            await self._check_expressions()
            running = self._running = self._assemble()
            self._listen(running)
            await self._join(running)
        except BaseException:
            await self._signal(Signal.FAILED)
            raise
        finally:
            self._start_over.set()
        timers = self._timers
        timers.start("rebalance", running.rebalancer.run)
        timers.start("heartbeat", self._heartbeats, until_left=True)
        timers.start("commit", self._persist if self.settings.is_broadcasting else running.committer.run)
        timers.start("pullers", self._look_after_pullers)
        if self._begins_at_the_end:
            timers.once("begin", self._begin())
        if self.settings.locks_queues:
            timers.start("locks", running.lock_keeper.run, until_left=True)
            timers.start("watch", running.rebalancer.watch)
        _log.info("%s joined group %s", self.client_id, self.settings.group)

    def run(self) -> dict[MessageQueue, FinalOffset]:
        """Consume until Ctrl-C (or SIGTERM), drain, and return what `stop` returns. For the main thread.

        A second Ctrl-C does not wait for handlers. Raises as `start` does.
        """
        return until_signalled(self.start, self.stop, self._closed.wait)

    async def _join(self, running: _RunningConsumer) -> None:
        if not await running.membership.heartbeat():
            raise NoHeartbeatError(self.settings.group, running.membership.refusals)
        if self.settings.locks_queues:
            dead = running.predecessors.join(self.client_id)
            if dead:
                _log.info("members that died on this host give their queues up: %s", ", ".join(sorted(dead)))
                running.membership.presume_departed(dead)

    @property
    def _begins_at_the_end(self) -> bool:
        settings = self.settings
        return settings.consume_from_where is ConsumeFromWhere.LAST_OFFSET and (
            settings.initial_offset is InitialOffset.STRICT or settings.is_broadcasting
        )

    async def _begin(self) -> None:
        """Write down where the group (or this member) began, with all topics: also with those that do not exist yet."""
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._begin_topics([subscription.topic for subscription in self.settings.subscriptions])
            except RocketMQError as error:
                _log.warning("group %s: where it began is not stored yet: %s", self.settings.group, error)
            else:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _begin_topics(self, topics: list[str]) -> None:
        offsets = self._parts.offsets
        if not isinstance(offsets, LocalOffsets):
            await self._parts.beginnings.ensure_all(topics)
            return
        for topic in topics:
            try:
                queues = await self._client.subscribe_queues(topic)
            except NoRoute:
                queues = ()
            await offsets.begin(topic, queues)

    async def _find_brokers(self) -> None:
        missing: list[NoRoute] = []
        for topic in self.subscriptions:
            self._cleanups.append(self._client.routes.watch(topic))
            try:
                await self._client.route(topic)
            except NoRoute as error:
                if not topic.startswith(RETRY_PREFIX):  # which the broker creates when the group joins
                    missing.append(error)
        if len(missing) == len(self.settings.subscriptions):
            raise missing[0]
        for problem in missing:
            _log.warning("%s; the other topics are consumed, and this one once it is there", problem)

    async def _check_expressions(self) -> None:
        for subscription in self.subscriptions.values():
            if subscription.type is ExpressionType.SQL92:
                try:
                    route = await self._client.route(subscription.topic)
                except NoRoute:
                    continue
                for broker in {data.broker_name for data in route.queue_datas}:
                    address = self._client.reader(broker).address
                    try:
                        await broker_members.check_subscription(
                            self._client.remoting, address, self.settings.group, self.client_id, subscription.data
                        )
                    except ResponseError as error:
                        raise ExpressionRefusedError(subscription, broker, error) from error

    def _assemble(self) -> _RunningConsumer:
        client, settings, clock, timings = self._client, self.settings, self._clock, self._timings
        membership = Membership(client, settings, self.subscriptions.values(), clock=clock)
        # The broker makes the retry topic, and saves it at once, when the first member of a group joins.
        membership.first_of_its_group = client.routes.cached(RETRY_PREFIX + settings.group) is None
        beginnings = Beginnings(client, settings.group, departed=membership.departed_anywhere)
        offsets: Offsets
        if settings.is_broadcasting:
            offsets = local = open_local_offsets(client, settings, self._offset_directory)
            self._cleanups.append(local.close)
        else:
            offsets = BrokerOffsets(client, settings, self.tally, beginnings)
        consumption = self._make_consumption()
        holdings = Holdings(
            client,
            settings,
            self.subscriptions,
            offsets,
            consumption,
            self._heartbeat_wanted.set,
            clock=clock,
            tally=self.tally,
            timings=timings.handover,
            pull_timings=timings.pull,
        )
        rebalancer = Rebalancer(
            client,
            settings,
            self._strategy,
            tuple(self.subscriptions),
            membership,
            holdings,
            self._heartbeat_wanted.set,
            tally=self.tally,
            timings=timings.rebalance,
        )
        answers = BrokerRequests(
            client,
            settings,
            self.subscriptions,
            holdings,
            self.handler,
            rebalancer.soon,
            lambda: consumption.workers,
            clock=clock,
        )
        return _RunningConsumer(
            offsets,
            consumption,
            membership,
            Predecessors(client.config.name_servers, settings.group),
            beginnings,
            holdings,
            rebalancer,
            LockKeeper(client, settings, holdings, membership, clock=clock),
            Committer(holdings, offsets, settings.persist_interval, clock=clock, timings=timings.commit),
            answers,
        )

    def _make_consumption(self) -> ConcurrentConsumption | OrderlyConsumption:
        given = (self.settings, self.handler, self._send_back)
        if self.settings.is_orderly:
            return OrderlyConsumption(*given, clock=self._clock, tally=self.tally, timings=self._timings.orderly)
        return ConcurrentConsumption(*given, clock=self._clock, tally=self.tally, timings=self._timings.concurrent)

    def _listen(self, running: _RunningConsumer) -> None:
        self._cleanups += [
            running.answers.close,
            self._client.remoting.on_connect(self._connected),
            self._client.remoting.on_disconnect(self._disconnected),
            self._client.routes.on_change(self._routes_changed),
        ]

    # -- what it is made of, once it has started ----------------------------------------------------------------------

    @property
    def _parts(self) -> _RunningConsumer:
        if self._running is None:
            raise RuntimeError("the consumer has not been started")
        return self._running

    @property
    def membership(self) -> Membership:
        return self._parts.membership

    @property
    def holdings(self) -> Holdings:
        return self._parts.holdings

    @property
    def rebalancer(self) -> Rebalancer:
        return self._parts.rebalancer

    # -- what a user may ask ------------------------------------------------------------------------------------------

    @property
    def owned(self) -> frozenset[MessageQueue]:
        """The queues that this member consumes now."""
        return self.holdings.owned

    @property
    def ready(self) -> bool:
        """We own exactly what we were given, and know where each queue starts: what is sent from now on is consumed."""
        return self.rebalancer.settled

    def ready_problems(self) -> list[str]:
        """Why it does not consume its share of the group yet; empty if it does. From any thread.

        Queues of a broker that is away do not count: they are consumed when it is back.
        """
        if not self.rebalancer.has_share:
            return ["the queues have not been shared out yet"]
        away = self._brokers_away()
        missing = sorted(queue for queue in self.rebalancer.unowned if queue.broker not in away)
        if not missing:
            return []
        return [f"{len(missing)} of the queues that were allocated are not consumed yet, such as {missing[0]}"]

    def queue_problems(self) -> list[str]:
        """Queues that are owned and that nobody pulls; empty if all is well. From any thread."""
        return self.holdings.problems()

    def ended_tasks(self) -> list[str]:
        """The names of tasks that it cannot do without and that have ended; empty if all is well. From any thread."""
        ended = self._timers.ended()
        return ended if self._parts.consumption.is_ticking else [*ended, f"tick {self.settings.group}"]

    def _brokers_away(self) -> set[str]:
        """Brokers that cannot be asked for a lock now: without a master, or not connected to us."""
        table = dict(self._client.brokers.table)  # a copy, because this may be another thread
        connected = set(self._client.remoting.connected)
        brokers = {queue.broker for queue in self.rebalancer.allocated}
        return {broker for broker in brokers if table.get(broker, {}).get(MASTER_ID) not in connected}

    async def rebalance(self) -> None:
        """Do a round of rebalancing now; returns when it is over."""
        await self.rebalancer.now()

    @property
    def final_offsets(self) -> dict[MessageQueue, FinalOffset]:
        """Where each queue stood when it was given up; complete after `stop`."""
        return dict(self.holdings.final)

    async def persist(self) -> None:
        """Commit now what may be committed."""
        await self._parts.offsets.persist(self.holdings.committable())

    # -- stopping -----------------------------------------------------------------------------------------------------

    async def stop(self) -> dict[MessageQueue, FinalOffset]:
        """Drain and leave; returns the final offset of every queue. Called again while it runs, it hurries."""
        if not self._started:
            return {}
        await self._start_over.wait()  # which is bounded by the time-outs of its calls
        if self.phase is StopPhase.CLOSED:
            return self.final_offsets if self._running is not None else {}
        await self._signal(Signal.STOP)
        await self._closed.wait()
        return self.final_offsets

    async def _signal(self, signal: Signal) -> None:
        self.phase, steps = advance(self.phase, signal)
        for step in steps:
            await self.STEPS[step](self)

    # Each step is carried out by the method that `STEPS` names.

    async def _drain(self) -> None:
        # A task of its own: whoever has asked may not wait for it.
        self._stopping = asyncio.get_running_loop().create_task(self._give_everything_up())

    async def _give_everything_up(self) -> None:
        end = Signal.FAILED
        try:
            self._timers.drain()
            self.holdings.drain()
            await self._signal(await self._all_gone())
            end = Signal.UNREGISTERED
        finally:
            await self._signal(end)

    async def _all_gone(self) -> Signal:
        """Wait until no queue is left."""
        # Each queue bounds itself by drain_timeout and a few seconds for the last commit: this is the net below.
        loop, holdings = asyncio.get_running_loop(), self.holdings
        limit = loop.time() + Margin.CONSUMER_NET.after(self.settings.drain_timeout)
        while holdings.queues or holdings.waits_for_orphans:
            if loop.time() >= limit:
                return Signal.OUT_OF_TIME
            holdings.changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await holdings.changed.wait()
        return Signal.ALL_GONE

    async def _hurry(self) -> None:
        self.holdings.hurry()

    async def _abandon(self) -> None:
        _log.error(
            "the drain of group %s took too long; %s left uncommitted",
            self.settings.group,
            counted(len(self.holdings.queues), "queue is", "queues are"),
        )
        await self.holdings.close()

    async def _unregister(self) -> None:
        await self.holdings.close()
        with contextlib.suppress(RocketMQError):
            await self.membership.leave()

    async def _sign_off(self) -> None:
        self._parts.predecessors.leave()

    async def _close(self) -> None:
        await self._timers.close()
        if self._running is not None:
            await self._running.consumption.close()
            self._running.predecessors.close()
        for cleanup in self._cleanups:
            cleanup()
        self._cleanups.clear()
        if self._owns_client:
            await self._client.close()
        self._closed.set()

    STEPS: ClassVar[Mapping[StopStep, Callable[["Consumer"], Awaitable[None]]]] = {
        StopStep.DRAIN: _drain,
        StopStep.HURRY: _hurry,
        StopStep.ABANDON: _abandon,
        StopStep.UNREGISTER: _unregister,
        StopStep.SIGN_OFF: _sign_off,
        StopStep.CLOSE: _close,
    }

    # -- timers -------------------------------------------------------------------------------------------------------

    async def _heartbeats(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(jittered(self.settings.heartbeat_interval)):
                    await self._heartbeat_wanted.wait()
            self._heartbeat_wanted.clear()
            await self.membership.heartbeat()

    async def _persist(self) -> None:
        while True:
            await asyncio.sleep(self.settings.persist_interval)
            try:
                await self.persist()
            except Exception:
                _log.exception("offsets of group %s were not persisted; it is tried again", self.settings.group)

    async def _look_after_pullers(self) -> None:
        while True:
            await asyncio.sleep(self._timings.look_after_pullers)
            self.holdings.look_after_pullers()

    # -- connections --------------------------------------------------------------------------------------------------

    def _connected(self, address: str) -> None:
        """A new connection: the broker counts us in only after a heartbeat on it. Also while draining: until we have
        left, a member that is not listed would be taken for dead."""
        if self.phase in (StopPhase.RUNNING, StopPhase.DRAINING):
            self._note_listed(address)
            self._timers.once("rejoin", self._rejoin(address))

    async def _rejoin(self, address: str) -> None:
        await self.membership.heartbeat_to(address)
        self._note_listed(address)
        self.rebalancer.soon()
        self.holdings.lock_wanted.set()
        if not self.settings.locks_queues and not self.settings.is_broadcasting:
            await self._tell_again(address)

    def _note_listed(self, address: str) -> None:
        for broker, master in self._client.brokers.masters().items():
            again = broker in self._were_lost
            # A name that was made up for this process is nobody else's: nothing is released in it.
            if master == address and (again or not self._client.config.client_id_made_up):
                self._parts.lock_keeper.listed(broker, again=again)

    async def _tell_again(self, address: str) -> None:
        """Without locks nothing is in doubt, but the broker may have forgotten offsets all the same."""
        masters = self._client.brokers.masters()
        for holding, lane in self.holdings.lanes():
            if masters.get(holding.queue.broker) == address:
                with contextlib.suppress(RocketMQError):
                    await self._parts.offsets.check(holding.queue)
                lane.moved = True

    def _disconnected(self, address: str, error: RocketMQError) -> None:
        if self.phase is StopPhase.CLOSED:
            return
        _log.warning("lost the connection to %s: %s", address, error)
        for broker, master in self._client.brokers.masters().items():
            if master == address:
                self.membership.interrupted(broker)
                self._were_lost.add(broker)
        if self.settings.locks_queues:
            for holding in self.holdings:
                if holding.lock_address == address:
                    self.holdings.event(holding, QueueEvent.INTERRUPTED)
        self._heartbeat_wanted.set()
        self.rebalancer.soon()

    def _routes_changed(self, *_: object) -> None:
        """Locks were granted by masters that may be none any more."""
        if self.settings.locks_queues:
            masters = self._client.brokers.masters()
            for holding in self.holdings:
                master = masters.get(holding.queue.broker)
                if None not in (master, holding.lock_address) and master != holding.lock_address:
                    self.membership.interrupted(holding.queue.broker)
                    self.holdings.event(holding, QueueEvent.INTERRUPTED)
        self.rebalancer.soon()

    # -- failed messages ----------------------------------------------------------------------------------------------

    async def _send_back(self, message: ReceivedMessage, level: int) -> None:
        limit = self.settings.max_reconsume_times
        await broker_messages.send_back(
            self._client.remoting,
            self._client.master(message.broker),
            self.settings.group,
            message,
            delay_level=level,
            max_reconsume_times=DEFAULT_MAX_RECONSUME_TIMES if limit < 0 else limit,
        )
        self.tally.sent_back += 1
