"""The push consumer: one member of one group, put together.

Start, in this order, because each step needs the one before:
1. the settings are checked (when they are made), and with SQL92 the broker is asked whether it can evaluate the
   expression;
2. the routes of all topics are read, so that the brokers are known;
3. every broker hears a heartbeat *before* the first pull: a pull with a subscription that the broker does not know is
   refused, and Java's client then stands still for half a minute;
4. rebalancing begins at once.

From then on five timers run, each in a task of its own, so that none waits for another: routes (the client's),
heartbeats, offsets, locks, rebalancing; a sixth keeps an eye on another member. `stop` runs the table in
`shutdown.py`.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rocketfleet.allocation.strategies import Strategy, build
from rocketfleet.client import broker_members, broker_messages
from rocketfleet.client.client import Client
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import NoRoute, ResponseError, RocketMQError
from rocketfleet.client.routes import RETRY_PREFIX
from rocketfleet.consumer.answers import Answers
from rocketfleet.consumer.clock import lease_clock
from rocketfleet.consumer.concurrent import ConcurrentConsumption
from rocketfleet.consumer.handler import BatchHandler, SingleHandler, inspect_handler
from rocketfleet.consumer.holdings import FinalOffset, Holdings, Offsets
from rocketfleet.consumer.local_offsets import LocalOffsets
from rocketfleet.consumer.lock_keeper import LockKeeper
from rocketfleet.consumer.membership import Membership, jittered
from rocketfleet.consumer.offsets import BrokerOffsets
from rocketfleet.consumer.orderly import OrderlyConsumption
from rocketfleet.consumer.ownership import Event
from rocketfleet.consumer.rebalancer import Rebalancer
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.shutdown import Phase, Signal, Step, advance
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.consumer.tally import Tally
from rocketfleet.wire.bodies import ExpressionType
from rocketfleet.wire.message import ReceivedMessage
from rocketfleet.wire.queue import MessageQueue

_log = logging.getLogger(__name__)
COMMIT_SOON = 0.05  # what was finished is committed after this long
SOON_LIMIT = 64  # at most so many queues at once; the rest waits for the next round
DEFAULT_MAX_RECONSUME_TIMES = 16


class NoHeartbeatError(RocketMQError):
    """No broker could be told that we are here."""

    def __init__(self, group: str) -> None:
        super().__init__(f"no broker took the heartbeat of group {group}: is the cluster up, and may we use the group?")


class ExpressionRefusedError(RocketMQError):
    """A broker cannot evaluate a subscription's expression."""

    def __init__(self, subscription: Subscription, broker: str, error: ResponseError) -> None:
        super().__init__(
            f"{broker} cannot evaluate the {subscription.type} expression {subscription.expression!r} "
            f"of topic {subscription.topic}: correct it, or enable property filters at the broker ({error})"
        )


class Consumer:
    """`async with Consumer(config, settings, handler) as consumer: …` consumes until it is left, and drains then.

    `config` may be a `Client` that is shared with others; then it is not closed here. Its client id must be the group's
    only one: two members with one id share their queues without knowing. `strategy` is a name, or a strategy with its
    parameters.
    """

    def __init__(
        self,
        config: ClientConfig | Client,
        settings: ConsumerSettings,
        handler: SingleHandler | BatchHandler,
        *,
        strategy: Strategy | str = "AVG",
        offset_directory: Path | None = None,
        clock: Callable[[], float] = lease_clock,
    ) -> None:
        self._client = config if isinstance(config, Client) else Client(config)
        self._owns_client = not isinstance(config, Client)
        self.settings = settings
        self.handler = inspect_handler(handler)
        self._strategy = build(strategy) if isinstance(strategy, str) else strategy
        self._offset_directory = offset_directory or Path.home() / ".rocketmq_offsets"
        self._clock = clock
        self.tally = Tally()
        self.phase = Phase.RUNNING
        self._started = False
        self._start_over = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._cleanups: list[Callable[[], None]] = []
        self._heartbeat_wanted = asyncio.Event()
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
        """Join the group and begin to consume. Raises if a topic does not exist or no broker can be reached."""
        if self._started:
            raise RuntimeError("a consumer is started once: make a new one")
        self._started = True
        self._client.start()
        try:
            await self._find_brokers()
            await self._check_expressions()
            self._assemble()
            await self._join()
        except BaseException:
            await self._close()
            raise
        finally:
            self._start_over.set()
        self._run("rebalance", self.rebalancer.run())
        self._run("heartbeat", self._heartbeats())
        self._run("persist", self._persist())
        self._run("commit soon", self._commit_soon())
        if self.settings.locks_queues:
            self._run("locks", self._lock_keeper.run())
            self._run("watch", self.rebalancer.watch())
        _log.info("%s joined group %s", self.client_id, self.settings.group)

    async def _join(self) -> None:
        if not await self.membership.heartbeat():
            raise NoHeartbeatError(self.settings.group)

    async def _find_brokers(self) -> None:
        for topic in self.subscriptions:
            self._cleanups.append(self._client.routes.watch(topic))
            try:
                await self._client.route(topic)
            except NoRoute:
                if not topic.startswith(RETRY_PREFIX):  # which the broker creates when the group joins
                    raise

    async def _check_expressions(self) -> None:
        for subscription in self.subscriptions.values():
            if subscription.type is ExpressionType.SQL92:
                route = await self._client.route(subscription.topic)
                for broker in {data.broker_name for data in route.queue_datas}:
                    address = self._client.master(broker)
                    try:
                        await broker_members.check_subscription(
                            self._client.remoting, address, self.settings.group, self.client_id, subscription.data
                        )
                    except ResponseError as error:
                        raise ExpressionRefusedError(subscription, broker, error) from error

    def _assemble(self) -> None:
        client, settings, clock = self._client, self.settings, self._clock
        consumption = OrderlyConsumption if settings.is_orderly else ConcurrentConsumption
        self._consumption = consumption(settings, self.handler, self._send_back, clock=clock, tally=self.tally)
        self._offsets: Offsets
        if settings.is_broadcasting:
            self._offsets = LocalOffsets(
                client, settings, self._offset_directory / self.client_id / settings.group / "offsets.json"
            )
        else:
            self._offsets = BrokerOffsets(client, settings, self.tally)
        self.membership = Membership(client, settings, self.subscriptions.values(), clock=clock)
        self.holdings = Holdings(
            client,
            settings,
            self.subscriptions,
            self._offsets,
            self._consumption,
            self._heartbeat_wanted.set,
            clock=clock,
            tally=self.tally,
        )
        self.rebalancer = Rebalancer(
            client,
            settings,
            self._strategy,
            tuple(self.subscriptions),
            self.membership,
            self.holdings,
            self._heartbeat_wanted.set,
            tally=self.tally,
        )
        self._lock_keeper = LockKeeper(client, settings, self.holdings, self.membership.departed, clock=clock)
        self.answers = Answers(
            client,
            settings,
            self.subscriptions,
            self.holdings,
            self.handler,
            self.rebalancer.soon,
            lambda: self._consumption.workers,
            clock=clock,
        )
        self._cleanups += [
            self.answers.close,
            client.remoting.on_connect(self._connected),
            client.remoting.on_disconnect(self._disconnected),
            client.routes.on_change(lambda *_: self.rebalancer.soon()),
        ]

    def _run(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine, name=f"{name} {self.settings.group}")
        task.add_done_callback(_complain)
        self._tasks.append(task)

    # -- what a user may ask ------------------------------------------------------------------------------------------

    @property
    def owned(self) -> frozenset[MessageQueue]:
        """The queues that this member consumes now."""
        return self.holdings.owned

    @property
    def ready(self) -> bool:
        """We own exactly what we were given, and know where each queue starts: what is sent from now on is consumed."""
        return self.rebalancer.settled and len(self.holdings.lanes()) == len(self.owned)

    async def rebalance(self) -> None:
        """Do a round of rebalancing now; returns when it is over."""
        await self.rebalancer.now()

    @property
    def final_offsets(self) -> dict[MessageQueue, FinalOffset]:
        """Where each queue stood when it was given up; complete after `stop`."""
        return dict(self.holdings.final)

    async def persist(self) -> None:
        """Commit now what may be committed."""
        await self._offsets.persist(self.holdings.committable())

    # -- stopping -----------------------------------------------------------------------------------------------------

    async def stop(self) -> dict[MessageQueue, FinalOffset]:
        """Drain and leave; returns the final offset of every queue. Called again while it runs, it hurries."""
        if not self._started:
            return {}
        await self._start_over.wait()  # which is bounded by the time-outs of its calls
        if self.phase is Phase.CLOSED:
            return self.final_offsets if hasattr(self, "holdings") else {}
        self._signal(Signal.STOP)
        await self._closed.wait()
        return self.final_offsets

    def _signal(self, signal: Signal) -> None:
        self.phase, steps = advance(self.phase, signal)
        for step in steps:
            if step is Step.DRAIN:
                self._stopping = asyncio.get_running_loop().create_task(self._drain())
            elif step is Step.HURRY:
                self.holdings.hurry()

    async def _drain(self) -> None:
        try:
            await self._give_everything_up()
        finally:
            await self._close()

    async def _give_everything_up(self) -> None:
        keep = {f"locks {self.settings.group}", f"heartbeat {self.settings.group}"}
        for task in [task for task in self._tasks if task.get_name() not in keep]:
            task.cancel()
        self.holdings.drain()
        # Each queue bounds itself by drain_timeout and a few seconds for the last commit: this is the net below.
        limit = asyncio.get_running_loop().time() + self.settings.drain_timeout + 10.0
        outcome = Signal.ALL_GONE
        while self.holdings.queues:
            self.holdings.changed.clear()
            try:
                async with asyncio.timeout_at(limit):
                    await self.holdings.changed.wait()
            except TimeoutError:
                outcome = Signal.OUT_OF_TIME
                break
        self.phase, steps = advance(self.phase, outcome)
        if Step.ABANDON in steps:
            _log.error(
                "the drain of group %s took too long; %d queues are left uncommitted",
                self.settings.group,
                len(self.holdings.queues),
            )
        await self.holdings.close()
        with contextlib.suppress(RocketMQError):
            await self.membership.leave()
        self.phase, _ = advance(self.phase, Signal.UNREGISTERED)

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if hasattr(self, "_consumption"):
            await self._consumption.close()
        for cleanup in self._cleanups:
            cleanup()
        self._cleanups.clear()
        if self._owns_client:
            await self._client.close()
        self.phase = Phase.CLOSED
        self._closed.set()

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

    async def _commit_soon(self) -> None:
        """Commit what was finished shortly before, so that a member that is killed leaves little to repeat."""
        if self.settings.is_broadcasting:
            return
        while True:
            await asyncio.sleep(COMMIT_SOON)
            moved = [lane for _, lane in self.holdings.lanes() if lane.moved][:SOON_LIMIT]
            for lane in moved:
                lane.moved = False
            if moved:
                await self._offsets.persist(self.holdings.committable(moved))

    # -- connections --------------------------------------------------------------------------------------------------

    def _connected(self, address: str) -> None:
        """A new connection: the broker counts us in only after a heartbeat on it."""
        if self.phase is Phase.RUNNING:
            self._tasks.append(asyncio.get_running_loop().create_task(self._rejoin(address)))
            self._tasks = [task for task in self._tasks if not task.done()]

    async def _rejoin(self, address: str) -> None:
        await self.membership.heartbeat_to(address)
        self.rebalancer.soon()

    def _disconnected(self, address: str, error: RocketMQError) -> None:
        if self.phase is Phase.CLOSED:
            return
        _log.warning("lost the connection to %s: %s", address, error)
        if self.settings.locks_queues:
            masters = self._client.brokers.masters()
            for broker in masters:
                if masters[broker] == address:
                    self.membership.disconnected(broker)
            for holding in self.holdings:
                if masters.get(holding.queue.broker) == address:
                    self.holdings.event(holding, Event.DISCONNECTED)
        self._heartbeat_wanted.set()

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


def _complain(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("%s ended; this is a bug in the consumer", task.get_name(), exc_info=error)
