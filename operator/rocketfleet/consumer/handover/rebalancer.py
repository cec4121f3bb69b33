"""Finding out what is ours, and seeing to it: at start, on every notification, on request, and every twenty seconds
anyway.

A round reads the topics' queues (from the routes at hand), the group's members (from a broker) and, for strategies
that want to know, who holds what; computes our share; and tells `Holdings` the difference. While what we hold is not
what we were given, rounds follow each other every second.

Members agree only if they see the same queues. A member that joins while a broker is not registered, for it has just
come back, sees fewer than those who are still connected to it, and shares out the healthy brokers' queues otherwise
than they do: some would be nobody's until its next look at the routes. So who hears of another member's queue that is
in none of its own routes asks for the route again, every second, for as long as the others may count such a queue.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from rocketfleet.allocation.owners import known_owners
from rocketfleet.allocation.request import AllocationError, AllocationRequest
from rocketfleet.allocation.strategies import Scope, Strategy, allocate_group
from rocketfleet.base.counting import counted
from rocketfleet.client.client import Client
from rocketfleet.client.errors import NoPermission, NoRoute, RequestTimeout, ResponseError, RocketMQError
from rocketfleet.client.routing.lookout import BELIEVED
from rocketfleet.consumer.counters import ConsumerCounters
from rocketfleet.consumer.handover.holdings import Holdings
from rocketfleet.consumer.handover.membership import Membership, jittered
from rocketfleet.consumer.handover.ownership import OwnershipState
from rocketfleet.consumer.handover.peer_watch import watched_by
from rocketfleet.consumer.handover.rebalance import changes, is_settled
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.wire.codes import ResponseCode
from rocketfleet.wire.queue import MessageQueue
from rocketfleet.wire.topics import RETRY_PREFIX

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RebalanceTimings:
    """Seconds, and how often a member is watched while a lock lives."""

    unsettled_every: float = 1.0
    ask_timeout: float = 1.0  # what a member gets to say what it holds
    watch_timeout: float = 5.0  # what a watched member gets to answer
    looks: int = 3
    looks_at_suspects: int = 12
    looks_for_unseen: float = BELIEVED  # how long for a queue that only other members see


_TIMINGS = RebalanceTimings()
_NO_CONNECTION = "RemotingSendRequestException"  # in a broker's remark, if it could not even ask the member


class Rebalancer:
    """See the module."""

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        strategy: Strategy,
        topics: tuple[str, ...],
        membership: Membership,
        holdings: Holdings,
        heartbeat_soon: Callable[[], None],
        *,
        tally: ConsumerCounters,
        timings: RebalanceTimings = _TIMINGS,
    ) -> None:
        self._client = client
        self._settings = settings
        self._strategy = strategy
        self._topics = topics
        self._membership = membership
        self._holdings = holdings
        self._heartbeat_soon = heartbeat_soon
        self._tally = tally
        self._timings = timings
        self._asked = asyncio.Event()
        self._finished_rounds = 0
        self._in_round = False
        self._ended = False
        self._round_over = asyncio.Condition()
        self._has_share = False  # a round has come to a result
        self._awaited = False  # the retry topic has no route yet
        self._view: AllocationRequest | None = None  # of the last round; broadcasting has none
        self._settled_view: tuple[frozenset[str], frozenset[MessageQueue]] | None = None
        self._owners: dict[MessageQueue, str] = {}
        self._unseen: frozenset[MessageQueue] = frozenset()  # held by others, and in no route of ours
        self._look_until = 0.0
        self._suspects: tuple[str, ...] = ()
        self.allocated: frozenset[MessageQueue] = frozenset()
        self._kept: frozenset[MessageQueue] = frozenset()  # of brokers that are away: not shared out
        self.members: tuple[str, ...] = ()
        self.last_round = 0.0

    # -- asking -------------------------------------------------------------------------------------------------------

    def soon(self) -> None:
        """Do a round as soon as possible."""
        self._asked.set()

    async def now(self) -> None:
        """Do a round, and return when one that began after this call is over, or there will be no more."""
        target = self._finished_rounds + (2 if self._in_round else 1)
        self._asked.set()
        async with self._round_over:
            await self._round_over.wait_for(lambda: self._ended or self._finished_rounds >= target)

    @property
    def settled(self) -> bool:
        """Whether we own exactly what the last round gave us."""
        owned, held = self._holdings.owned - self._kept, self._holdings.queues - self._kept
        return self._has_share and is_settled(self.allocated, owned, held)

    @property
    def unowned(self) -> frozenset[MessageQueue]:
        """What the last round gave us and we do not own yet."""
        return self.allocated - self._holdings.owned

    @property
    def has_share(self) -> bool:
        """Whether a round has come to a result."""
        return self._has_share

    # -- the loop -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Rounds until cancelled."""
        try:
            await self._rounds()
        finally:
            self._ended = True
            async with self._round_over:
                self._round_over.notify_all()

    async def _rounds(self) -> None:
        while True:
            self._asked.clear()
            self._in_round = True
            try:
                await self._round()
            except RocketMQError as error:
                _log.warning("rebalancing of group %s failed, it is tried again: %s", self._settings.group, error)
            except Exception:
                _log.exception("rebalancing of group %s failed; this is a bug in the consumer", self._settings.group)
            self._in_round = False
            async with self._round_over:
                self._finished_rounds += 1
                self._round_over.notify_all()
            resting = self.settled and not self._awaited and not self._membership.awaits and not self._looks_for_queues
            pause = self._settings.rebalance_interval if resting else self._timings.unsettled_every
            try:
                async with asyncio.timeout(jittered(pause)):
                    await self._asked.wait()
            except TimeoutError:
                pass

    async def _round(self) -> None:
        queues, unknown, absent = await self._queues()
        # The broker creates it as the group joins, so it is about to come.
        self._awaited = any(topic.startswith(RETRY_PREFIX) for topic in unknown)
        self.last_round = time.monotonic()
        if self._settings.is_broadcasting:
            share = frozenset(queues)
        else:
            view = await self._look(queues)
            if view is None:
                return
            self._view = view
            try:
                share = frozenset(allocate_group(self._strategy, view)) if view.queues else frozenset()
                share |= self._in_care(view)
                share &= frozenset(queues)  # Config may name what there is not, or what is not subscribed
            except AllocationError as error:
                _log.error("group %s keeps its queues, because %s failed: %s", view.group, self._strategy.name, error)
                return
        self._tally.rebalances += 1
        self._has_share = True
        self._kept = self._ours_of(absent) - share
        self.allocated = share | frozenset(q for q in self._holdings.queues - self._kept if q.topic in unknown)
        change = changes(share, self._holdings.queues, unknown, self._kept)
        if change.want or change.release:
            _log.info(
                "group %s: %d of %s are ours among %s: %d to take over, %d to give up",
                self._settings.group,
                len(share),
                counted(len(queues), "queue"),
                counted(len(self.members), "member"),
                len(change.want),
                len(change.release),
            )
            self._holdings.release(change.release)
            self._holdings.want(change.want)
        if self.settled and self._view is not None:
            self._settled_view = (frozenset(self._view.members), frozenset(self._view.queues))

    async def _queues(self) -> tuple[list[MessageQueue], set[str], set[MessageQueue]]:
        """The queues of all topics, the topics whose route is not known now, the queues of brokers that are away."""
        queues: list[MessageQueue] = []
        unknown: set[str] = set()
        absent: set[MessageQueue] = set()
        for topic in self._topics:
            try:
                queues.extend(await self._client.subscribe_queues(topic))
                absent.update(self._client.absent_queues(topic))  # in the same breath: what is not here is there
            except NoRoute as error:
                unknown.add(topic)
                _log.debug("%s", error)
            except RocketMQError as error:
                unknown.add(topic)
                _log.warning("the route of topic %s is not known now: %s", topic, error)
        return queues, unknown, absent

    def _ours_of(self, absent: set[MessageQueue]) -> frozenset[MessageQueue]:
        """What we have of these queues, which no route names any longer because their broker is away."""
        if not absent:
            return frozenset()
        ours = (holding.queue for holding, _ in self._holdings.lanes() if holding.state is OwnershipState.OWNED)
        return frozenset(absent.intersection(ours))

    async def _look(self, queues: list[MessageQueue]) -> AllocationRequest | None:
        me = self._client.client_id
        too_early = self._membership.whole_in > 0  # lists that are read before then are not whole, whatever follows
        members = await self._membership.members(queues)
        if members is None:
            return None
        self.members = members
        if me not in members:
            # The broker does not know us (it restarted, or our connection is new): tell it before drawing conclusions.
            self._heartbeat_soon()
            self._asked.set()
            await asyncio.sleep(0.05)
            return None
        if not self._has_share and (self._must_wait() or too_early):
            return None
        view = AllocationRequest(group=self._settings.group, member=me, members=members, queues=queues)
        if self._strategy.scope is not Scope.GROUP:
            return view
        return replace(view, owners=await self._read_owners(view))

    def _must_wait(self) -> bool:
        """Whether we are new, and the brokers so young that others may not be back yet: nothing is taken meanwhile."""
        seconds = self._membership.whole_in
        if seconds:
            _log.info(
                "group %s: the brokers have just started, its members get %.1f s to come back",
                self._settings.group,
                seconds,
            )
        return seconds > 0

    async def _read_owners(self, view: AllocationRequest) -> dict[MessageQueue, str]:
        """Who holds what. Asked only when something changed since we settled: `allocation/owners.py` has the rules."""
        if self.settled and self._settled_view == (frozenset(view.members), frozenset(view.queues)):
            self._look_for_unseen()
            return self._owners
        others = [member for member in view.members if member != view.member]
        answers = await self._membership.ask_after(others, self._membership.relay, self._timings.ask_timeout)
        reports: dict[str, frozenset[MessageQueue]] = {
            member: frozenset(info.mq_table) for member, info in answers.results.items()
        }
        self._note_unseen(frozenset().union(*reports.values()) - frozenset(view.queues))
        # As the others hear it from us: what has a window, and not what is only wanted.
        reports[view.member] = frozenset(holding.queue for holding, _ in self._holdings.lanes())
        refused = [error for error in answers.errors.values() if isinstance(error, NoPermission)]
        self._owners = {} if refused else known_owners(reports)
        return self._owners

    # -- queues that only others see ----------------------------------------------------------------------------------

    def _note_unseen(self, queues: frozenset[MessageQueue]) -> None:
        """Others hold these, and none of our routes names them: they may have seen more than we have."""
        away = frozenset(queue for topic in self._topics for queue in self._client.absent_queues(topic))
        unseen = frozenset(queue for queue in queues - away if queue.topic in self._topics)
        if unseen - self._unseen:
            _log.info(
                "group %s: other members hold %s that no route names: routes are asked for again",
                self._settings.group,
                counted(len(unseen), "queue"),
            )
            self._look_until = time.monotonic() + self._timings.looks_for_unseen
        self._unseen = unseen
        self._look_for_unseen()

    def _look_for_unseen(self) -> None:
        if self._looks_for_queues:
            for topic in {queue.topic for queue in self._unseen}:
                self._client.routes.hurry(topic)

    @property
    def _looks_for_queues(self) -> bool:
        return bool(self._unseen) and time.monotonic() < self._look_until

    # -- the eye on another member ------------------------------------------------------------------------------------

    def _in_care(self, view: AllocationRequest) -> frozenset[MessageQueue]:
        """The queues of suspected members, whose locks we try to get."""
        self._suspects = tuple(suspect for suspect in self._suspects if suspect in view.members)
        return frozenset(
            queue
            for suspect in self._suspects
            for queue in allocate_group(self._strategy, replace(view, member=suspect))
        )

    async def watch(self) -> None:
        """Keep an eye on another member until cancelled. Only of use where queues are locked."""
        while True:
            looks = self._timings.looks_at_suspects if self._suspects else self._timings.looks
            await asyncio.sleep(jittered(self._settings.lock_lives / looks))
            view = self._view
            if view is None or not view.queues:
                continue
            suspects = []
            for other in watched_by(view.member, view.members):
                silent = await self._is_silent(other)
                if silent is None:  # nothing was learnt of this one, nor of those before it
                    suspects += [suspect for suspect in self._suspects if suspect not in suspects]
                if not silent:
                    break
                suspects.append(other)
            if tuple(suspects) != self._suspects:
                for new in set(suspects) - set(self._suspects):
                    _log.warning("member %s does not answer: its queues are taken care of once its locks are out", new)
                for old in set(self._suspects) - set(suspects):
                    _log.info("member %s answers again", old)
                self._suspects = tuple(suspects)
                self.soon()

    async def _is_silent(self, member: str) -> bool | None:
        """Whether a member does not answer; None if that cannot be told."""
        try:
            answers = await self._membership.ask_after([member], self._membership.relay, self._timings.watch_timeout)
        except RocketMQError:
            return None  # the broker, not the member
        error = answers.errors.get(member)
        if error is not None and not _is_silence(error):
            return None  # we may not ask, or the broker is in trouble: that says nothing about the member
        return error is not None


def _is_silence(error: RocketMQError) -> bool:
    if isinstance(error, ResponseError):
        # The broker's words for a member that did not answer it, and for one whose connection is gone: it lists such a
        # member for two minutes, if its last heartbeat was read after its end.
        return error.code == ResponseCode.CONSUME_MSG_TIMEOUT or _NO_CONNECTION in (error.remark or "")
    return isinstance(error, RequestTimeout)
