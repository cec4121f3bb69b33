"""One member of one group: joins, consumes, drains, in a process that may be told to stop at any moment.

Phases: *Joining* (trying until a broker takes us, or `join_timeout` is over), *Running*, *Draining*, *Closed*. A
request to stop, by a signal or a call, ends the first two; it is asked for once and the outcome is the same for
everybody who waits for it. Only a second *signal* hurries: a second call to drain may be the same caller asking again,
and the first signal after a call is how a pod is deleted or evicted while it drains, by somebody who does not know.

The drain's outcome covers the queues that were held when it began. Where earlier queues stood when they went to other
members is those members' business by now.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocketfleet.allocation.strategies import Strategy
from rocketfleet.base.clock import lease_clock
from rocketfleet.base.counting import counted
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError
from rocketfleet.consumer.consumer import Consumer
from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.handler import Handler
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.control import exit_codes
from rocketfleet.control.messages import Assignment, QueueReport, WorkerPhase, WorkReport
from rocketfleet.worker import snapshot, vitals
from rocketfleet.worker.durations import Durations, timed
from rocketfleet.worker.outcome import Outcome

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


class WorkerMember:
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
        self._signals = 0
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
        held = consumer.holdings.in_hand
        _log.info("draining %s of group %s", counted(len(held), "queue"), self.spec.settings.group)
        stopping = asyncio.ensure_future(consumer.stop())
        if self._signals > 1:  # both came before the drain had begun
            await asyncio.sleep(0)
            self._hurry()
        final = {queue: end for queue, end in (await stopping).items() if queue in held}
        seconds = self._clock() - started
        unsafe = {queue: end for queue, end in final.items() if not end.confirmed}
        for queue, end in sorted(unsafe.items()):
            _log.error(
                "%s: offset %d is not confirmed by the broker; messages from the last confirmed one on come again",
                queue,
                end.offset,
                extra={"offset": end.offset},
            )
        for queue, end in sorted(final.items()):
            if end.unfinished:
                _log.error(
                    "%s: the handlers of %s were cut short: what was not finished will be delivered again",
                    queue,
                    counted(end.unfinished),
                )
        unfinished = sum(end.unfinished for end in final.values())
        _log.log(
            logging.WARNING if unsafe or unfinished else logging.INFO,
            "drained in %.2f s: %s, %d not confirmed%s",
            seconds,
            counted(len(final), "queue"),
            len(unsafe),
            f"; {counted(unfinished)} did not finish and will be delivered again" if unfinished else "",
        )
        well = exit_codes.CUT_SHORT if unfinished else exit_codes.DRAINED
        return Outcome(exit_codes.NOT_CONFIRMED if unsafe else well, final, seconds)

    # -- what may be asked for, on the event loop ---------------------------------------------------------------------

    def stop(self) -> None:
        """Drain and end. Asked again, it changes nothing."""
        self._stop_asked.set()

    def signalled(self) -> None:
        """A signal: drain and end. The second one, and only that: wait for handlers no longer."""
        self._signals += 1
        if self._signals == 1:
            going_on = self._stop_asked.is_set()
            _log.info("asked to stop by a signal: %s", "the drain goes on" if going_on else "draining")
            self.stop()
            return
        if self._signals == 2:
            _log.warning("asked to stop by a second signal: no longer waiting for handlers")
        if self.phase is WorkerPhase.DRAINING:
            self._hurry()

    def _hurry(self) -> None:
        if self._consumer is not None:
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

    def queues(self) -> list[QueueReport]:
        consumer = self._consumer
        return [] if consumer is None else snapshot.queue_reports(consumer.holdings, lease_clock(), self.client_id)

    @property
    def members(self) -> tuple[str, ...]:
        """The group, as seen in the last round."""
        return () if self._consumer is None else self._consumer.rebalancer.members

    @property
    def tally(self) -> ConsumerCounters:
        return ConsumerCounters() if self._consumer is None else self._consumer.tally

    @property
    def loop_delay(self) -> float:
        return max(0.0, self._clock() - self.pulse.last_beat)

    @property
    def is_settled(self) -> bool:
        """Whether it owns what it was given in the last round, as far as brokers can be reached, and nothing else."""
        consumer = self._consumer
        if consumer is None or not consumer.rebalancer.last_round:
            return False
        return not consumer.ready_problems() and consumer.holdings.queues <= consumer.rebalancer.allocated

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
            if self._consumer is not None and (problems := self._consumer.ready_problems()):
                return problems
            self._has_settled = True
        return []

    def vitals(self) -> vitals.MemberVitals:
        since_beat = self.loop_delay
        consumer = self._consumer
        if consumer is None or self.phase is not WorkerPhase.RUNNING:
            return vitals.MemberVitals(since_beat)
        now = self._clock()
        since_round = now - max(self._joined_at, consumer.rebalancer.last_round)
        return vitals.MemberVitals(
            since_beat, since_round, tuple(sorted(consumer.ended_tasks())), tuple(consumer.queue_problems())
        )

    def problems(self) -> list[str]:
        """Why it should be restarted; empty if it is well."""
        return vitals.problems(
            self.vitals(),
            stuck_after=self.spec.stuck_after,
            round_limit=vitals.round_limit(self.spec.settings),
        )

    def assignment(self) -> Assignment:
        """What /assignment answers."""
        return Assignment(
            client_ids=(self.client_id,),
            phase=self.phase,
            ready=not self.not_ready(),
            settled=self.is_settled,
            members=tuple(self.members),
            queues=tuple(self.queues()),
            work=(self._work(),),
            group=self.spec.settings.group,
            strategy=self.spec.strategy.name,
            handover=self.spec.settings.handover.value,
        )

    def _work(self) -> WorkReport:
        """What the handler did since this process began."""
        tally = self.tally
        # An orderly handler that fails keeps its message, which is not counted as handled.
        tried = tally.handled + (tally.failed if self.spec.settings.is_orderly else 0)
        return WorkReport(self.client_id, tried, tally.failed, tally.sent_back)
