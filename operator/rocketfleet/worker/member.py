"""One member of one group: joins, consumes, drains, in a process that may be told to stop at any moment.

Phases: *Joining* (trying until a broker takes us, or `join_timeout` is over), *Running*, *Draining*, *Closed*. A
request to stop, by a signal or a call, ends the first two; it is asked for once and the outcome is the same for
everybody who waits for it. Only a second signal hurries: a second call to drain may be the same caller asking again.

The drain's outcome covers the queues that were held when it began. Where earlier queues stood when they went to other
members is those members' business by now.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from rocketfleet.allocation.strategies import Strategy
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError
from rocketfleet.consumer.clock import lease_clock
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.handler import Handler
from rocketfleet.consumer.holdings import FinalOffset
from rocketfleet.consumer.rebalance import is_settled
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.tally import Tally
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.worker import exit_codes, snapshot, vitals
from rocketfleet.worker.durations import Durations, timed

_log = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """All that a member needs to know."""

    config: ClientConfig
    settings: ConsumerSettings
    strategy: Strategy
    handler: Handler
    offset_directory: Path | None = None
    stuck_after: float = 30.0
    join_timeout: float = 60.0


class WorkerPhase(Enum):
    JOINING = "Joining"
    RUNNING = "Running"
    DRAINING = "Draining"
    CLOSED = "Closed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended."""

    code: int
    final: dict[MessageQueue, FinalOffset] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def confirmed(self) -> bool:
        return all(end.confirmed for end in self.final.values())


class Member:
    """See the module. Made on any thread; `run` belongs to the event loop, what `view` and below read to anybody."""

    def __init__(self, spec: MemberSpec, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.spec = spec
        self.phase = WorkerPhase.JOINING
        self.durations = Durations()
        self.pulse = vitals.Pulse(clock)
        self.client_id = spec.config.client_id
        self._clock = clock
        self._handler = timed(spec.handler, self.durations)
        self._consumer: Consumer | None = None  # once it has joined
        self._joined_at = 0.0
        self._join_error: str | None = None
        self._has_settled = False
        self._stop_asked = asyncio.Event()
        self._outcome: asyncio.Future[Outcome] | None = None
        self._hurrying: asyncio.Future[Any] | None = None  # only to be held on to

    # -- life ---------------------------------------------------------------------------------------------------------

    async def run(self) -> Outcome:
        """Join, consume until asked to stop, drain."""
        loop = asyncio.get_running_loop()
        self._outcome = loop.create_future()
        beating = loop.create_task(self._beat(), name="pulse")
        try:
            outcome = await self._live()
        except BaseException:
            outcome = Outcome(exit_codes.FAILED)
            raise
        finally:
            self.phase = WorkerPhase.CLOSED
            self._outcome.set_result(outcome)
            beating.cancel()
        return outcome

    async def _beat(self) -> None:
        while True:
            self.pulse.beat()
            self.not_ready()  # so that the moment of readiness is not missed between two probes
            await asyncio.sleep(vitals.BEAT_SECONDS)

    async def _live(self) -> Outcome:
        loop = asyncio.get_running_loop()
        joining = loop.create_task(self._join(), name="join")
        stopping = loop.create_task(self._stop_asked.wait(), name="stop asked")
        try:
            await asyncio.wait({joining, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not joining.done():
                _log.info("asked to stop before the group was joined")
                return Outcome(exit_codes.DRAINED)
            try:
                await joining
            except RocketMQError as error:
                _log.error("group %s could not be joined: %s", self.spec.settings.group, error)
                return Outcome(exit_codes.NOT_JOINED)
            await stopping
            return await self._drain()
        finally:
            stopping.cancel()
            joining.cancel()
            with contextlib.suppress(asyncio.CancelledError, RocketMQError):
                await joining

    async def _join(self) -> None:
        spec, pause = self.spec, _FIRST_PAUSE
        give_up_at = self._clock() + spec.join_timeout
        while True:
            consumer = Consumer(
                spec.config,
                spec.settings,
                self._handler,
                strategy=spec.strategy,
                offset_directory=spec.offset_directory,
                clock=lease_clock,
            )
            try:
                await consumer.start()
                break
            except RocketMQError as error:
                self._join_error = str(error)
                if self._clock() + pause > give_up_at:
                    raise
                _log.warning("group %s not joined, next try in %.1f s: %s", spec.settings.group, pause, error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        self._joined_at = self._clock()
        self._consumer = consumer
        self.phase = WorkerPhase.RUNNING

    async def _drain(self) -> Outcome:
        consumer = self._consumer
        assert consumer is not None
        self.phase = WorkerPhase.DRAINING
        started = self._clock()
        held = consumer.holdings.queues
        _log.info("draining %d queues of group %s", len(held), self.spec.settings.group)
        final = {queue: end for queue, end in (await consumer.stop()).items() if queue in held}
        seconds = self._clock() - started
        unsafe = {queue: end for queue, end in final.items() if not end.confirmed}
        for queue, end in sorted(unsafe.items()):
            _log.error(
                "%s: offset %d is not confirmed by the broker; messages from the last confirmed one on come again",
                queue,
                end.offset,
            )
        _log.info("drained in %.2f s: %d queues, %d not confirmed", seconds, len(final), len(unsafe))
        return Outcome(exit_codes.NOT_CONFIRMED if unsafe else exit_codes.DRAINED, final, seconds)

    # -- what may be asked for, on the event loop ---------------------------------------------------------------------

    def stop(self) -> None:
        """Drain and end. Asked again, it changes nothing."""
        self._stop_asked.set()

    def stop_or_hurry(self) -> None:
        """Drain and end; asked again, wait for handlers no longer."""
        if not self._stop_asked.is_set():
            _log.info("asked to stop: draining")
            self.stop()
        elif self.phase is WorkerPhase.DRAINING and self._consumer is not None:
            _log.warning("asked to stop again: handlers are no longer waited for")
            self._hurrying = asyncio.ensure_future(self._consumer.stop())

    async def outcome(self) -> Outcome:
        """How it ended, once it has."""
        assert self._outcome is not None
        return await asyncio.shield(self._outcome)

    async def rebalance(self) -> bool:
        """A round now. False if there is nothing to rebalance."""
        if self._consumer is None or self.phase is not WorkerPhase.RUNNING:
            return False
        await self._consumer.rebalance()
        return True

    # -- what may be looked at, from any thread -----------------------------------------------------------------------

    def queues(self) -> list[snapshot.QueueView]:
        consumer = self._consumer
        return [] if consumer is None else snapshot.queue_views(consumer.holdings, lease_clock())

    @property
    def members(self) -> tuple[str, ...]:
        """The group, as seen in the last round."""
        return () if self._consumer is None else self._consumer.rebalancer.members

    @property
    def tally(self) -> Tally:
        return Tally() if self._consumer is None else self._consumer.tally

    @property
    def loop_delay(self) -> float:
        return max(0.0, self._clock() - self.pulse.last_beat)

    @property
    def is_settled(self) -> bool:
        """Whether it owns what it was given in the last round, and nothing else."""
        consumer = self._consumer
        if consumer is None or not consumer.rebalancer.last_round:
            return False
        views = {view.queue: view.state for view in self.queues()}
        owned = [queue for queue, state in views.items() if state == "Owned"]
        return is_settled(consumer.rebalancer.allocated, owned, views)

    def not_ready(self) -> list[str]:
        """Why it is not ready; empty if it is."""
        if self.phase is WorkerPhase.JOINING:
            reason = f": {self._join_error}" if self._join_error else ""
            return [f"the group is not joined yet{reason}"]
        if self.phase is not WorkerPhase.RUNNING:
            return [f"the worker is {self.phase.value.lower()}"]
        if not self._has_settled:
            broadcasting = self.spec.settings.is_broadcasting
            if not broadcasting and self.client_id not in self.members:
                return ["the broker does not list this member yet"]
            if not self.is_settled:
                return ["the queues of the first allocation are not all owned yet"]
            self._has_settled = True
        return []

    def vitals(self) -> vitals.Vitals:
        since_beat = self.loop_delay
        consumer = self._consumer
        if consumer is None or self.phase is not WorkerPhase.RUNNING:
            return vitals.Vitals(since_beat)
        now = self._clock()
        since_round = now - max(self._joined_at, consumer.rebalancer.last_round)
        # The notes may be older than the consumer.
        ended = vitals.expected_tasks(self.spec.settings) - self.pulse.running if self._noted_since_joined() else ()
        return vitals.Vitals(since_beat, since_round, tuple(sorted(ended)))

    def _noted_since_joined(self) -> bool:
        return self.pulse.last_beat > self._joined_at + vitals.BEAT_SECONDS

    def problems(self) -> list[str]:
        """Why it should be restarted; empty if it is well."""
        return vitals.problems(
            self.vitals(),
            stuck_after=self.spec.stuck_after,
            round_limit=vitals.round_limit(self.spec.settings),
        )

    def describe(self) -> dict[str, Any]:
        """What /assignment answers."""
        return {
            "group": self.spec.settings.group,
            "clientId": self.client_id,
            "clientIds": [self.client_id],
            "phase": self.phase.value,
            "ready": not self.not_ready(),
            "settled": self.is_settled,
            "strategy": self.spec.strategy.name,
            "handover": self.spec.settings.handover.value,
            "members": list(self.members),
            "queues": [view.as_json(self.client_id) for view in self.queues()],
        }
