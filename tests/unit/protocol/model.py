"""A group and its brokers, small enough to visit every situation that they can get into.

Theory. What decides in the consumer is pure: two tables, and a few functions of lists, times and numbers. Here these
very tables and functions are driven, not copies of them; what is written down here is only what surrounds them: a
broker as `ownership.py` describes it, connections that break, processes that freeze and die, and the shell of a member
(`holdings.py`, `lock_keeper.py`, `membership.py`, `offsets.py`, `rebalancer.py`) with its tasks cut into the steps
between which something else can happen.

A situation is a `World`: immutable, and without a clock. Every time in it is relative to now, so that worlds that
differ only in when they happen are one. `Model.moves` says what can happen next, and each move leads to another world.

Time passes in ticks. A move that a member makes as soon as it can is *urgent*: no tick goes by before it is made, but
among all that can happen in a tick every order is possible. What may take any time (a handler, a commit, a network that
is cut, a frozen process, a flush to disk) is not urgent. One tick stands for about half a second, and the durations are
shortened so that only their order is kept:

    a look at the lists is acted on (0) and handled (1) < CONFIRM_APART (2) < GRACE (3) < REJOIN (4) < lease (5)
    < the lock's life (7); a broken connection is noticed within 1, and made again within 1 once the network allows;
    when there is a master again, that is seen within 1 < OWNERS_FIRST (3).

What is simplified, and why that is no loss:

- A request and its answer are one move, unless a fault comes between them: the answer is lost (`deaf`), or the request
  is handled late, after its sender has given up (`late`). Whoever shares a connection has to expect no more than that.
- A window handles one message after the other. Which messages finish in which order is the business of
  `process_queue.py`, and tested there; here only how far the window is matters, and whether a handler is at work.
- A look at the lists of several brokers is one move.
- What a dead member's handlers do, and those of a window that was dropped, is not followed: it counts for nobody.
- A broker's slave answers in place of its master while that is away: the connection to the one stands for that to the
  other. Who connects to the slave knows that there is no master, and who connects to the master that there is one.

What is left out: the ring of watchers (a frozen member is replaced when its lock has ended and somebody else is given
its queue), time-outs of a handover, Eager, a member that goes on from a slave and is cut off meanwhile from whoever
could tell it that there is a master again. That nothing is committed without the lock is a condition here as it is in
`Holdings.committable`, and so not tested by this.

What is checked (`wrong`, and where `_wrong_if` is called):

- At most one member that is not frozen believes in the lock of a queue (HELD, within its lease), so no two begin
  messages of it. A handler that was begun before a doubt may still run while somebody else begins; nothing more.
- An offset at a broker never goes back, but by a restart that forgets what was not flushed, and when an update of the
  owner's own was overtaken by a later one. Nothing below the stored offset is begun.
- Nobody starts a queue beyond what was finished and committed, or was history when the group began; and no history is
  begun.
- When an administrator has moved the group to another offset (here: *rewound*, also if it is forward), nobody goes on
  from where it was: what was finished before is not committed, and everything from the new offset on is begun again.
- With joins and drains only, no message is begun twice. Nor when a broker loses its master and then somebody joins: the
  owner goes on, and has told all of that before the queue moves. (If the queue has moved shortly before, what its last
  owner has told may be forgotten for good.) Where connections break only for a moment, no queue is taken from a member
  that still has a window on it.

Known, and allowed (`EXCUSED`): a rewind that the window's member is not told of is undone when it commits. A broker
tells it once, in the answer to the next pull. The member does not get to know it if

- the answer is lost with the connection: afterwards the stored offset looks like that of a broker that has forgotten;
- its lock is in doubt, and the answer goes to somebody who has the queue meanwhile, and gives it back before it has
  committed more than the first had sent.

One whose queue begins to leave before the answer is here looks for it at the end (`Rules.hears_while_leaving`).

Not followed is a pull that the broker still holds after the queue has another owner. It can take a rewind up, too.

What is assumed of the world, because without it no protocol on these brokers could keep its promises:

- A live member notices that its connection was reset within a tick, and is listed as soon as it is connected again. A
  broker that restarts is away for longer than that.
- A request that was sent is handled within `late` ticks or never.
- A broker closes the connection of a silent member later than its locks end (two minutes against one).
- A disk keeps what was flushed to it.
- A broker is without a master for longer than it takes to notice. When it has one again, everybody who looks
  for it sees that within a tick.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from rocketfleet.allocation.request import AllocationRequest
from rocketfleet.allocation.strategies import allocate_group, build
from rocketfleet.consumer.handover import lock_keeper, ownership, rebalance, roster
from rocketfleet.consumer.handover.ownership import Effect, Lock, OwnershipState, QueueEvent, QueueOwnership
from rocketfleet.consumer.handover.roster import Roster
from rocketfleet.consumer.offset_storage import beginning
from rocketfleet.wire.queue import MessageQueue

UP, LOST, LOST_NOW, CUT, RESET, RESET_NOW, BACK, BACK_NOW = range(8)
"""A connection: fine; broken and not noticed yet (`LOST`; by the end of this tick: `LOST_NOW`), because the network is
`CUT`; or broken and not noticed yet (`RESET`), and then about to be made again (`BACK`)."""

SLOW = 8
"""From here on: so many ticks more until it is made again, after a broker's restart."""

_LATER = {LOST: LOST_NOW, RESET: RESET_NOW, BACK: BACK_NOW, SLOW: BACK_NOW}
_NOTICED = {LOST: CUT, LOST_NOW: CUT, RESET: BACK, RESET_NOW: BACK}

AWAY, RUNNING, DRAINING, LEFT = range(4)
"""A member's life: not started yet; a member; draining; drained or dead."""

NO, OVERDUE, EXCUSED = range(3)
"""Whether the group was rewound since a window was opened: if so it has to start again, unless nobody has told it."""

IDLE, START, PULL, LEAVE, PERSIST, UNLOCK = range(6)
"""What a member is doing about a queue, as the effects have told it."""

NONE = -1  # no offset, no window, no holder
UNTOLD = -2  # nothing is known of what the broker was told
ENDLESS = 99
BEGUN = 4  # the last phase of a beginning

_STRATEGY = build("AVG")
_GROUP, _TOPIC = "g", "t"


class Times(NamedTuple):
    """Durations in ticks. See the module for their order."""

    grace: int = 3
    rejoin: int = 4
    lives: int = 7
    apart: int = 2
    renew: int = 2
    late: int = 1  # a request whose sender has given up is handled by then, or never
    slow: int = 0  # a member may take so much longer to connect to a broker that has restarted
    again: int = 2  # between two releases of departed members' locks by one that is refused
    strays: int = 3  # after which a lock is given back once more
    owners: int = 3  # after a broker had no master, for those that had its queues


class Rules(NamedTuple):
    """Decisions of the shell that are no function which could be replaced.

    Each but the last is True in the code; `mutants.py` says what comes of it where it is not.
    """

    stores_start: bool = True  # where a queue starts is stored before its first pull
    asks_beginning: bool = True  # a queue without an offset starts where the group began
    tells_again: bool = True  # what a broker may have forgotten is told again
    clock_runs: bool = True  # while a process is frozen
    checks_itself: bool = True  # a member that has slept looks at its connections before it begins anything
    reads_back: bool = True  # an update that was not answered is read back, once a later one was
    keeps_lease_of_beginning: bool = True  # a beginning goes on only under its lock
    hears_while_leaving: bool = True  # a rewind that comes as the queue leaves is found by the final commit


class RosterKey(NamedTuple):
    """A `Roster` that can be hashed."""

    present: frozenset[str] = frozenset()
    awaited: tuple[tuple[str, int], ...] = ()
    absent: tuple[tuple[str, int], ...] = ()


class Claim(NamedTuple):
    """One queue in a member's table: `holdings.Holding`, with what its window and `offsets.py` know."""

    state: OwnershipState = OwnershipState.WANTED
    lock: Lock = Lock.NONE
    lease: int = 0  # the holding's
    believed: int = 0  # the window's: what is asked before a message is begun
    locked_at: int = NONE * ENDLESS
    work: int = IDLE
    window: int = NONE  # how far it is: everything below is finished
    busy: bool = False  # a handler is at work on the message at `window`
    told: int = UNTOLD
    sent: int = UNTOLD
    unanswered: bool = False
    wait: int = NONE  # until a confirmed offset is read back
    checking: bool = False
    stray: bool = False
    polls: bool = False  # a pull is at the broker, whose answer would be heard
    heard: int = NONE  # the answer to it is here and not looked at yet: start again there
    start_at: int = NONE  # start again here, once the doubt is settled
    overdue: int = NO  # the group was rewound since the window was opened, and it may or may not be to blame

    @property
    def recovered_at(self) -> float:
        return -ENDLESS

    @property
    def believes(self) -> bool:
        """Whether the member takes the queue for its own now."""
        return self.state is OwnershipState.STANDBY or (self.lock is Lock.HELD and self.lease > 0)


class Member(NamedTuple):
    life: int
    frozen: bool
    conns: tuple[int, ...]
    claims: tuple[Claim | None, ...]
    roster: RosterKey = RosterKey()
    interrupted: frozenset[int] = frozenset()
    whole_in: int = NONE  # NONE: it has not looked yet
    has_share: bool = False
    back: tuple[int, ...] = ()  # for each broker: ticks until new locks may be asked for
    released: frozenset[tuple[str, int]] = frozenset()
    forgave: int = 0
    knows: frozenset[int] = frozenset()  # brokers that its route names
    begin: int = BEGUN  # phase of seeing to it that the group has begun
    since: int = NONE
    begin_lease: int = 0
    empty: frozenset[int] = frozenset()  # queues that had no offset when it began
    headless: frozenset[int] = frozenset()  # brokers that it has seen without a master, and not with one since
    owners: tuple[int, ...] = ()  # for each broker: ticks that its owners come first

    @property
    def acts(self) -> bool:
        return self.life in (RUNNING, DRAINING) and not self.frozen


class Shelf(NamedTuple):
    """A queue at its broker."""

    holder: int = NONE
    expires: int = 0
    stored: int = NONE
    flushed: int = NONE
    end: int = 0
    begun: int = 0  # how many messages were ever begun, where that is watched
    low: int = 0  # what lies below is history
    safe: int = 0  # what lies below is history, or was finished and committed at some time
    rewound: int = NONE  # where to the next pull is sent; updates are dropped until then


class Broker(NamedTuple):
    listed: frozenset[str]
    age: int  # since it is up; below 0 it is not up yet
    mark: int | None = None
    mark_flushed: int | None = None
    begin_holder: int = NONE
    begin_expires: int = 0
    headless: int = NONE  # without a master, for so many ticks at least; NONE: it has one


class Flight(NamedTuple):
    """A request that nobody waits for any more, or that is not answered before something else happens."""

    kind: str  # lock, unlock, commit, stray
    member: int
    queue: int
    value: int
    left: int


class World(NamedTuple):
    members: tuple[Member, ...]
    brokers: tuple[Broker, ...]
    shelves: tuple[Shelf, ...]
    flights: tuple[Flight, ...]
    faults: tuple[int, ...]  # how many of each kind may still happen
    left: int  # and of all kinds together
    epochs: tuple[tuple[int, ...], ...] = ()  # the ends of all queues at each "since" that was written
    order: tuple[str, ...] = ()  # if faults happen in this order only: what is left of it
    wrong: str = ""


class Move(NamedTuple):
    label: str
    when: int
    world: World


URGENT, FREE, QUIET = range(3)
"""When a move is made: before the next tick; at any time; at any time, but not while something urgent is to be done."""


FAULTS = (
    "cut",  # a member's connection to a broker breaks, and cannot be made for any time
    "reset",  # it breaks, and is made again within a tick
    "restart",  # a broker forgets locks, members and what it has not flushed
    "freeze",  # a process stops for any time
    "kill",
    "join",
    "again",  # a member that has died is started again, under the same name
    "drain",
    "deaf",  # a request is handled, but its answer is lost
    "late",  # a request is handled after its sender has given up
    "route",  # a member's route does not name a broker for any time
    "headless",  # a broker has no master for any time; then one that has forgotten as after a restart
    "rewind",  # an administrator moves the group to the beginning or the end of a queue
)


def name(member: int) -> str:
    return f"m{member}"


def number(member: str) -> int:
    return int(member[1:])


def _set(items: tuple[Any, ...], index: int, item: Any) -> tuple[Any, ...]:
    return (*items[:index], item, *items[index + 1 :])


class Model:
    """What can happen next. `home` says at which broker each queue is."""

    def __init__(
        self, home: tuple[int, ...], messages: int, times: Times, rules: Rules, *, clean: bool, slow: bool, steady: bool
    ) -> None:
        self.home = home
        self.messages = messages
        self.times = times
        self.rules = rules
        self.clean = clean
        self.slow = slow
        self.steady = steady
        self.queues = tuple(MessageQueue(_TOPIC, f"b{broker}", index) for index, broker in enumerate(home))
        self._long_ago = -max(times.apart, times.renew)
        self._looks: dict[Any, RosterKey] = {}
        self._shares: dict[Any, frozenset[int]] = {}
        self._steps: dict[Any, Claim] = {}
        self._ticks: dict[Any, Any] = {}

    # -- the pure functions of the consumer ---------------------------------------------------------------------------

    def _event(self, claim: Claim, event: QueueEvent) -> Claim | None:
        """`Holdings.event`; None: the queue is gone."""
        key = (claim, event)
        found = self._steps.get(key, key)
        if found is not key:
            return cast("Claim | None", found)
        (state, lock), effects = ownership.step(QueueOwnership(claim.state, claim.lock), event)
        after = claim._replace(state=state, lock=lock)
        if lock is not Lock.CHECKING:
            after = after._replace(checking=False)
        for effect in effects:
            after = self._effect(after, effect)
        if lock in (Lock.NONE, Lock.DOUBTED):  # what was granted before counts no more
            before = -ENDLESS if after.locked_at == -ENDLESS else self._long_ago
            after = after._replace(lease=0, locked_at=before)
        result = None if state is OwnershipState.GONE else after
        self._steps[key] = cast("Claim", result)
        return result

    @staticmethod
    def _effect(claim: Claim, effect: Effect) -> Claim:
        has_window = claim.window != NONE
        if effect is Effect.START:
            return claim._replace(work=START)
        if effect is Effect.RESUME and claim.start_at != NONE:
            return _start_again(claim, claim.start_at)
        if effect is Effect.RESTART:
            return _start_again(claim, claim.heard)
        if effect is Effect.REMEMBER:
            return claim._replace(start_at=claim.heard)
        if effect in (Effect.EXTEND, Effect.RESUME):
            polls = claim.polls or effect is Effect.RESUME
            return claim._replace(believed=claim.lease, polls=polls) if has_window else claim
        if effect is Effect.HOLD:
            return claim._replace(believed=0)
        if effect is Effect.GO_ON:
            return claim._replace(believed=ENDLESS)
        if effect is Effect.CHECK:
            return claim._replace(checking=True)
        if effect is Effect.ABANDON:
            return _without_window(claim)
        if effect is Effect.WIND_DOWN:
            return claim._replace(work=LEAVE)
        if effect is Effect.PERSIST:
            return claim._replace(work=PERSIST)
        return claim._replace(work=UNLOCK)

    def _look(self, key: RosterKey, lists: tuple[frozenset[str], ...], interrupted: bool) -> RosterKey:
        at = (key, lists, interrupted)
        if (found := self._looks.get(at)) is None:
            after = roster.look(_roster(key), lists, interrupted=interrupted, now=0)
            found = self._looks[at] = self._key(after)
        return found

    def _key(self, after: Roster) -> RosterKey:
        oldest = -self.times.grace
        return RosterKey(
            after.present,
            tuple(sorted((member, int(until)) for member, until in after.awaited.items())),
            tuple(sorted((member, max(int(since), oldest)) for member, since in after.absent.items())),
        )

    def _share(self, me: int, members: tuple[str, ...], known: frozenset[int], held: frozenset[int]) -> Any:
        """What to want and what to release."""
        at = (me, members, known, held)
        if (found := self._shares.get(at)) is None:
            queues = [queue for queue, broker in zip(self.queues, self.home, strict=True) if broker in known]
            request = AllocationRequest(group=_GROUP, member=name(me), members=members, queues=queues)
            share = allocate_group(_STRATEGY, request) if queues else []
            change = rebalance.changes(share, [self.queues[index] for index in held])
            found = self._shares[at] = cast(
                "Any",
                (
                    tuple(sorted(queue.queue_id for queue in change.want)),
                    tuple(sorted(queue.queue_id for queue in change.release)),
                ),
            )
        return found

    # -- time ---------------------------------------------------------------------------------------------------------

    def tick(self, world: World) -> World:
        times = self.times
        members = tuple(self._age(member) for member in world.members)
        shelves = tuple(
            shelf._replace(expires=shelf.expires - 1, holder=shelf.holder if shelf.expires > 1 else NONE)
            if shelf.holder != NONE
            else shelf
            for shelf in world.shelves
        )
        brokers = tuple(
            broker._replace(
                age=min(broker.age + 1, times.rejoin),
                begin_expires=max(0, broker.begin_expires - 1),
                begin_holder=broker.begin_holder if broker.begin_expires > 1 else NONE,
                headless=max(0, broker.headless - 1) if broker.headless != NONE else NONE,
            )
            for broker in world.brokers
        )
        flights = tuple(flight._replace(left=flight.left - 1) for flight in world.flights)
        return world._replace(members=members, shelves=shelves, brokers=brokers, flights=flights)

    def _age(self, member: Member) -> Member:
        if member.life in (AWAY, LEFT):
            return member
        if (found := self._ticks.get(member)) is not None:
            return cast("Member", found)
        times, stopped = self.times, member.frozen and not self.rules.clock_runs
        claims = tuple(
            None
            if claim is None
            else claim
            if stopped
            else claim._replace(
                lease=max(0, claim.lease - 1),
                believed=claim.believed if claim.believed == ENDLESS else max(0, claim.believed - 1),
                locked_at=max(claim.locked_at - 1, self._long_ago) if claim.locked_at > -ENDLESS else -ENDLESS,
                wait=max(0, claim.wait - 1) if claim.wait != NONE else NONE,
            )
            for claim in member.claims
        )
        conns = tuple(conn - 1 if conn > SLOW else _LATER.get(conn, conn) for conn in member.conns)
        key = member.roster
        aged = member._replace(
            claims=claims,
            conns=conns,
            roster=RosterKey(
                key.present,
                tuple((one, max(0, until - 1)) for one, until in key.awaited),
                tuple((one, max(since - 1, -times.grace)) for one, since in key.absent),
            ),
            whole_in=max(0, member.whole_in - 1) if member.whole_in != NONE else NONE,
            forgave=max(0, member.forgave - 1),
            back=tuple(max(0, left - 1) for left in member.back),
            begin_lease=max(0, member.begin_lease - 1),
            owners=tuple(max(0, left - 1) for left in member.owners),
        )
        self._ticks[member] = aged
        return aged

    # -- what can happen ----------------------------------------------------------------------------------------------

    def possible(self, world: World) -> list[Move]:
        """All that could be done in a world, also what waits while something is urgent; without the tick."""
        return [move for move in self._all(world) if move.world is not world and move.world != world]

    def moves(self, world: World) -> list[Move]:
        """Everything that can happen next; a tick only if nothing is urgent."""
        found = self.possible(world)
        if any(move.when == URGENT for move in found):
            return [move for move in found if move.when != QUIET]
        return [*found, Move("tick", FREE, self.tick(world))]

    def _all(self, world: World) -> Iterator[Move]:
        for m, member in enumerate(world.members):
            if member.life in (RUNNING, DRAINING):
                if member.frozen:
                    yield Move(f"{name(m)} wakes", FREE, self._wake(world, m))
                    yield from self._closed_as_idle(world, m)
                    for q, claim in enumerate(member.claims):
                        if claim is not None:
                            yield from self._take_up(world, m, q, claim)
                else:
                    yield from self._connections(world, m)
                    yield from self._membership(world, m)
                    yield from self._locks(world, m)
                    for q, claim in enumerate(member.claims):
                        if claim is not None:
                            yield from self._take_up(world, m, q, claim)
                            yield from self._queue(world, m, q, claim)
        for flight in dict.fromkeys(world.flights):
            rest = list(world.flights)
            rest.remove(flight)
            yield from self._land(world._replace(flights=tuple(rest)), flight)
        for q, shelf in enumerate(world.shelves):
            if shelf.end < self.messages:
                yield Move(f"a message comes into q{q}", FREE, _shelve(world, q, end=shelf.end + 1))
            if shelf.flushed != shelf.stored and world.left and (world.faults[_RESTART] or world.faults[_HEADLESS]):
                yield Move(f"q{q}'s offset is flushed", QUIET, _shelve(world, q, flushed=shelf.stored))
        for b, broker in enumerate(world.brokers):
            if broker.mark_flushed != broker.mark and world.left and world.faults[_RESTART]:
                flushed = broker._replace(mark_flushed=broker.mark)
                yield Move(f"b{b}'s mark is flushed", QUIET, _brokered(world, b, flushed))
            if broker.headless == 0:
                yield Move(f"b{b} has a master again", FREE, self._master_back(world, b))
        if world.left:
            yield from self._faults(world)

    def _wake(self, world: World, m: int) -> World:
        member = world.members[m]._replace(frozen=False)
        world = _membered(world, m, member)
        if self.rules.checks_itself:
            for b, conn in enumerate(member.conns):
                if conn in _NOTICED:
                    world = self._notice(world, m, b)
        return world

    def _closed_as_idle(self, world: World, m: int) -> Iterator[Move]:
        """A broker closes the connection of a silent member, long after its locks have ended."""
        member = world.members[m]
        if member.begin_lease or any(claim is not None and max(claim.lease, claim.believed) for claim in member.claims):
            return
        for b, conn in enumerate(member.conns):
            if conn == UP:
                yield Move(f"b{b} drops silent {name(m)}", FREE, _lose(world, m, b, RESET))

    # -- connections --------------------------------------------------------------------------------------------------

    def _connections(self, world: World, m: int) -> Iterator[Move]:
        member = world.members[m]
        for b in range(len(world.brokers)):
            if b not in member.knows:
                found = _membered(world, m, member._replace(knows=member.knows | {b}))
                yield Move(f"{name(m)}'s route names b{b} again", FREE, found)
        for b, conn in enumerate(world.members[m].conns):
            if conn in _NOTICED:
                when = URGENT if conn in (LOST_NOW, RESET_NOW) else FREE
                yield Move(f"{name(m)} notices that b{b} is gone", when, self._notice(world, m, b))
            elif conn != UP and world.brokers[b].age >= 0:
                when = URGENT if conn == BACK_NOW else FREE
                yield Move(f"{name(m)} connects to b{b}", when, self._meet(world, m, b))

    def _meet(self, world: World, m: int, b: int) -> World:
        """`Consumer._connected`; and `LockKeeper._look_for_master`, where it is another replica than before."""
        member = world.members[m]
        if world.brokers[b].headless != NONE:
            world = _membered(world, m, member._replace(headless=member.headless | {b}))
        elif b in member.headless:
            claims = tuple(
                self._event(claim, QueueEvent.MASTER_BACK)
                if claim is not None and self.home[q] == b and claim.state is OwnershipState.STANDBY
                else claim
                for q, claim in enumerate(member.claims)
            )
            owners = _set(member.owners, b, self.times.owners)
            member = member._replace(headless=member.headless - {b}, owners=owners, claims=claims)
            return _connect(_membered(world, m, member), m, b, 0)  # it was never here, and waits for no other reason
        return _connect(world, m, b, self.times.apart)

    def _master_back(self, world: World, b: int) -> World:
        """Whoever read the slave sees it within a tick."""
        world = _brokered(world, b, world.brokers[b]._replace(headless=NONE, age=0, listed=frozenset()))
        for m, member in enumerate(world.members):
            if member.life in (RUNNING, DRAINING) and member.conns[b] == UP:
                world = _membered(world, m, member._replace(conns=_set(member.conns, b, BACK)))
        return world

    def _has_master(self, world: World, m: int, b: int) -> bool:
        """Whether a member reaches a master."""
        return world.members[m].conns[b] == UP and world.brokers[b].headless == NONE

    def _notice(self, world: World, m: int, b: int) -> World:
        """`Consumer._disconnected`."""
        member = world.members[m]
        conn = _NOTICED[member.conns[b]]
        if self.times.slow and conn == BACK and world.brokers[b].age < 0:
            conn = SLOW + self.times.slow
        claims = list(member.claims)
        for q, claim in enumerate(claims):
            if claim is None or self.home[q] != b:
                continue
            overdue = claim.overdue if claim.heard == NONE else EXCUSED
            unheard = claim._replace(polls=False, heard=NONE, overdue=overdue)
            claims[q] = unheard if claim.locked_at == -ENDLESS else self._event(unheard, QueueEvent.INTERRUPTED)
        return _membered(
            world,
            m,
            member._replace(
                claims=tuple(claims),
                interrupted=member.interrupted | {b},
                begin_lease=0,
                conns=_set(member.conns, b, conn),
            ),
        )

    # -- membership ---------------------------------------------------------------------------------------------------

    def _lists(self, world: World, member: Member) -> dict[int, frozenset[str]]:
        return {b: world.brokers[b].listed for b in sorted(member.knows) if member.conns[b] == UP}

    def _membership(self, world: World, m: int) -> Iterator[Move]:
        member = world.members[m]
        if member.life == RUNNING:
            yield Move(f"{name(m)} looks round", URGENT, self._round(world, m))
            if member.begin != BEGUN:
                yield from self._beginning(world, m)
        elif all(claim is None for claim in member.claims):
            yield Move(f"{name(m)} leaves", URGENT, _gone(world, m))
        for b in sorted(member.knows):
            yield from self._release_as_survivor(world, m, b)

    def _round(self, world: World, m: int) -> World:
        """`Membership.members` and `Rebalancer._round`."""
        member, me = world.members[m], name(m)
        lists = self._lists(world, member)
        known = frozenset(b for b, members in lists.items() if me in members)
        if not known:
            return world
        key = self._look(member.roster, tuple(lists.values()), not known - member.interrupted)
        member = member._replace(roster=key, interrupted=member.interrupted - known)
        if member.whole_in == NONE:
            ages = [float(world.brokers[b].age) if world.brokers[b].age < self.times.rejoin else 1e9 for b in known]
            member = member._replace(whole_in=int(roster.newcomer_waits(ages)))
        if not member.has_share and member.whole_in:
            reachable = [s for s, b in zip(world.shelves, self.home, strict=True) if b in lists]
            if any(shelf.stored != NONE for shelf in reachable):
                return _membered(world, m, member)
            member = member._replace(whole_in=0)
        held = frozenset(q for q, claim in enumerate(member.claims) if claim is not None)
        want, release = self._share(m, _roster(key).members, member.knows, held)
        claims = list(member.claims)
        for q in release:
            claims[q] = self._event(cast("Claim", claims[q]), QueueEvent.UNALLOCATED)
        for q in want:
            claims[q] = Claim()
        return _membered(world, m, member._replace(claims=tuple(claims), has_share=True))

    def _departed(self, world: World, m: int, b: int) -> tuple[Member, frozenset[str]]:
        """`Membership.departed`: after a fresh look."""
        member = world.members[m]
        if not roster.departed(_roster(member.roster), 0):
            return member, frozenset()
        lists = self._lists(world, member)
        if b not in lists:
            return member, frozenset()
        present = {one for members in lists.values() for one in members}
        key = member.roster._replace(absent=tuple(one for one in member.roster.absent if one[0] not in present))
        return member._replace(roster=key), roster.departed(_roster(key), 0)

    def _release_as_survivor(self, world: World, m: int, b: int) -> Iterator[Move]:
        member = world.members[m]
        record = _roster(member.roster)
        mine = {
            one
            for one in roster.departed(record, 0)
            if (one, b) not in member.released and roster.releases(name(m), one, record)
        }
        if not mine:
            return
        member, departed = self._departed(world, m, b)
        if not mine & departed:
            return
        absent = {one for one, _ in member.roster.absent}
        released = frozenset(one for one in member.released if one[0] in absent)
        for one in sorted(mine & departed):
            world = self._release(world, one, [q for q, home in enumerate(self.home) if home == b])
            released |= {(one, b)}
        world = _membered(world, m, member._replace(released=released))
        yield Move(f"{name(m)} releases {', '.join(sorted(mine & departed))} at b{b}", URGENT, world)

    @staticmethod
    def _release(world: World, departed: str, queues: list[int]) -> World:
        """Unlock in a departed member's name; it is handled within a tick."""
        flights = {Flight("unlock", number(departed), q, 0, 1) for q in queues if world.shelves[q].holder != NONE}
        return _fly(world, *flights)

    # -- locks --------------------------------------------------------------------------------------------------------

    def _locks(self, world: World, m: int) -> Iterator[Move]:
        """`LockKeeper.tick`."""
        member = world.members[m]
        due: dict[int, list[int]] = {}
        for q, claim in enumerate(member.claims):
            if claim is None:
                continue
            out = claim.lease <= 0 and claim.lock not in (Lock.NONE, Lock.DOUBTED)
            if out and (lapsed := self._event(claim, QueueEvent.LAPSED)) != claim:
                yield Move(f"{name(m)}: q{q} lapses", URGENT, _claim(world, m, q, lapsed))
            elif self._has_master(world, m, b := self.home[q]):
                if self._is_due(claim, member.back[b], member.owners[b]):
                    due.setdefault(b, []).append(q)
            elif member.conns[b] == UP and self._goes_on(claim):
                standby = _claim(world, m, q, self._event(claim, QueueEvent.NO_MASTER))
                yield Move(f"{name(m)}: q{q} has no master", URGENT, standby)
        for b, queues in due.items():
            label = f"{name(m)} asks b{b} for {', '.join(f'q{q}' for q in queues)}"
            yield Move(label, URGENT, self._ask(world, m, b, queues))
            if (deaf := _spend(world, "deaf")) is not None:
                for q in queues:
                    deaf, _ = self._grant(deaf, m, q)
                yield Move(f"{label}, and hears nothing", FREE, self._stray(deaf, m, queues))
            if (late := _spend(world, "late")) is not None:
                late = _fly(late, *(Flight("lock", m, q, 0, self.times.late) for q in queues))
                yield Move(f"{label}, which is late", FREE, self._stray(late, m, queues))

    @staticmethod
    def _goes_on(claim: Claim) -> bool:
        """Whether a queue is read from a slave, if there is no master."""
        return claim.state is OwnershipState.OWNED and claim.lock is not Lock.NONE and claim.window != NONE

    def _is_due(self, claim: Claim, back: int, owners: int) -> bool:
        return lock_keeper.due(cast("Any", claim), 0.0, self.times.renew) and lock_keeper.may_ask(
            claim.lock, listed=self.times.apart - back, with_master=self.times.owners - owners
        )

    def _grant(self, world: World, m: int, q: int) -> tuple[World, bool]:
        shelf = world.shelves[q]
        if shelf.holder not in (NONE, m):
            return world, False
        return _shelve(world, q, holder=m, expires=self.times.lives), True

    @staticmethod
    def _stray(world: World, m: int, queues: list[int]) -> World:
        member = world.members[m]
        claims = tuple(
            claim._replace(stray=True) if claim is not None and q in queues else claim
            for q, claim in enumerate(member.claims)
        )
        return _membered(world, m, member._replace(claims=claims))

    def _ask(self, world: World, m: int, b: int, queues: list[int]) -> World:
        claims = list(world.members[m].claims)
        refused = []
        for q in queues:
            claim = cast("Claim", claims[q])
            world, granted = self._grant(world, m, q)
            if granted:
                lease = int(ownership.lease_until(0, self.times.lives))
                claims[q] = self._event(claim._replace(lease=lease, locked_at=0, stray=False), QueueEvent.GRANTED)
            else:
                refused.append(q)
        member = world.members[m]
        if refused and not member.forgave:
            member, departed = self._departed(world, m, b)
            if departed:
                for one in departed:
                    world = self._release(world, one, refused)
                member = member._replace(forgave=self.times.again)
                return _membered(world, m, member._replace(claims=tuple(claims)))
        for q in refused:
            claims[q] = self._event(cast("Claim", claims[q]), QueueEvent.REFUSED)
        return _membered(world, m, member._replace(claims=tuple(claims)))

    def _land(self, world: World, flight: Flight) -> Iterator[Move]:
        """A request that nobody waits for is handled."""
        m, q, when = flight.member, flight.queue, URGENT if flight.left == 0 else FREE
        if flight.kind == "lock":
            yield Move(f"{name(m)}'s late lock of q{q} is handled", when, self._grant(world, m, q)[0])
        elif flight.kind == "unlock":
            yield Move(f"an unlock of q{q} for {name(m)} is handled", when, self._unlocked(world, m, q))
        elif flight.kind == "commit":
            claim = world.members[m].claims[q]
            if (
                claim is not None and claim.unanswered
            ):  # overtaken by a later one of the same owner, which reads it back
                after = _shelve(world, q, stored=flight.value, safe=max(flight.value, world.shelves[q].safe))
            else:
                after = self._store(world, q, flight.value)
            yield Move(f"{name(m)}'s late commit {flight.value} of q{q} is handled", when, after)
        elif when == URGENT:
            member = world.members[m]
            if member.acts and member.claims[q] is None and member.conns[self.home[q]] == UP:
                world = self._unlocked(world, m, q)
            if not member.frozen:
                yield Move(f"{name(m)} gives a stray lock of q{q} back", when, world)

    @staticmethod
    def _unlocked(world: World, m: int, q: int) -> World:
        return _shelve(world, q, holder=NONE, expires=0) if world.shelves[q].holder == m else world

    # -- a queue ------------------------------------------------------------------------------------------------------

    def _queue(self, world: World, m: int, q: int, claim: Claim) -> Iterator[Move]:
        who, up = f"{name(m)}: q{q}", world.members[m].conns[self.home[q]] == UP
        shelf, told = world.shelves[q], self._has_master(world, m, self.home[q])
        if claim.work == START and up:
            yield from self._open(world, m, q, claim)
        if claim.checking and up:
            yield Move(f"{who} is checked", URGENT, self._check(world, m, q, claim))
        if claim.work == PULL and not claim.busy and claim.window < shelf.end and claim.believed > 0:
            yield Move(f"{who} begins {claim.window}", QUIET, self._begin(world, m, q, claim))
        if claim.busy:
            finished = claim._replace(busy=False, window=claim.window + 1)
            yield Move(f"{who} finishes {claim.window}", QUIET, _claim(world, m, q, finished))
        if claim.heard != NONE:
            yield Move(f"{who} hears of the rewind", URGENT, self._hear(world, m, q, claim))
        if claim.work == PULL and told and claim.lock is Lock.HELD and claim.believed > 0 and claim.start_at == NONE:
            if claim.window > claim.told:
                yield from self._commit(world, m, q, claim)
            elif claim.unanswered and self.rules.reads_back:
                yield from self._read_back(world, m, q, claim)
        if claim.work == LEAVE and not claim.busy:
            yield Move(f"{who} has settled", URGENT, self._settled(world, m, q, claim))
        if claim.work == PERSIST:
            yield from self._persist(world, m, q, claim)
        if claim.work == UNLOCK:
            yield from self._unlock(world, m, q, claim)

    def _open(self, world: World, m: int, q: int, claim: Claim) -> Iterator[Move]:
        """`BrokerOffsets.start`, and a window."""
        shelf, offset = world.shelves[q], world.shelves[q].stored
        if offset == NONE:
            if self.rules.asks_beginning:
                if world.members[m].begin != BEGUN:
                    return
                world, offset = self._start_of(world, m, q)
            else:
                offset = shelf.end
            if self.rules.stores_start:
                world = _shelve(world, q, stored=offset)
        world = self._start_at(world, q, offset)
        if self.steady:
            robbed = [name(o) for o, other in enumerate(world.members) if o != m and _has_window(other, q)]
            world = _wrong_if(world, bool(robbed), f"q{q} is taken from {', '.join(robbed)}, who is coming back")
        believed = claim.lease if claim.lock is Lock.HELD else 0
        opened = claim._replace(
            work=PULL, window=offset, told=offset, sent=offset, believed=believed, polls=believed > 0
        )
        yield Move(f"{name(m)}: q{q} starts at {offset}", URGENT, _claim(world, m, q, opened))

    def _check(self, world: World, m: int, q: int, claim: Claim) -> World:
        """`BrokerOffsets.check`, and what follows from it."""
        stored = world.shelves[q].stored
        ours = claim.told != UNTOLD and ownership.nobody_else_had_it(None if stored == NONE else stored, claim.sent)
        if ours and self.rules.tells_again:
            claim = claim._replace(told=stored)
        ours = ours and claim.window != NONE
        after = self._event(claim._replace(checking=False), QueueEvent.UNCHANGED if ours else QueueEvent.OVERTAKEN)
        return _claim(world, m, q, after)

    def _begin(self, world: World, m: int, q: int, claim: Claim) -> World:
        shelf, at = world.shelves[q], claim.window
        world = _wrong_if(world, at < shelf.low, f"{at} of q{q} is history, and {name(m)} begins it")
        late = at < shelf.stored and claim.overdue == NO
        world = _wrong_if(world, late, f"{at} of q{q} is begun, though the group is at {shelf.stored}")
        if self.clean:
            world = _wrong_if(world, at < shelf.begun, f"{at} of q{q} is begun a second time")
            world = _shelve(world, q, begun=at + 1)
        if self.slow:
            return _claim(world, m, q, claim._replace(busy=True))
        return _claim(world, m, q, claim._replace(window=at + 1))

    def _start_at(self, world: World, q: int, offset: int) -> World:
        """Somebody takes this for where the group is in a queue: everything below has to be done."""
        safe = world.shelves[q].safe
        if safe == ENDLESS:  # the group has its beginning here
            return _shelve(world, q, safe=offset)
        return _wrong_if(world, offset > safe, f"q{q} starts at {offset}, but from {safe} on nothing is finished")

    def _store(self, world: World, q: int, offset: int, overdue: int = NO) -> World:
        """An owner commits what it has finished, from where it started."""
        shelf = world.shelves[q]
        if shelf.rewound != NONE:
            return world  # "previously reset"
        undone, back = overdue == OVERDUE, overdue == NO and offset < shelf.stored
        world = _wrong_if(world, undone, f"q{q} was rewound to {shelf.stored}, which {offset} undoes")
        world = _wrong_if(world, back, f"q{q}'s offset goes back from {shelf.stored} to {offset}")
        return _shelve(world, q, stored=offset, safe=max(shelf.safe, offset))

    def _commit(self, world: World, m: int, q: int, claim: Claim) -> Iterator[Move]:
        """`BrokerOffsets._update`."""
        label, offset = f"{name(m)}: q{q} commits {claim.window}", claim.window
        sent = claim._replace(sent=max(claim.sent, offset))
        told = offset if world.shelves[q].rewound == NONE else claim.told
        stored = self._store(world, q, offset, claim.overdue)
        yield Move(label, QUIET, _claim(stored, m, q, sent._replace(told=told)))
        unheard = sent._replace(unanswered=True)
        if (deaf := _spend(world, "deaf")) is not None:
            deaf = _claim(self._store(deaf, q, offset, claim.overdue), m, q, unheard)
            yield Move(f"{label}, and hears nothing", QUIET, deaf)
        if (late := _spend(world, "late")) is not None:
            late = _fly(late, Flight("commit", m, q, offset, self.times.late))
            yield Move(f"{label}, which is late", QUIET, _claim(late, m, q, unheard))

    def _read_back(self, world: World, m: int, q: int, claim: Claim) -> Iterator[Move]:
        """An update was never answered: was it handled after a later one?"""
        if claim.wait == NONE:
            yield Move(f"{name(m)}: q{q} waits", QUIET, _claim(world, m, q, claim._replace(wait=self.times.apart)))
        elif claim.wait == 0:
            read = claim._replace(told=world.shelves[q].stored, unanswered=False, wait=NONE)
            yield Move(f"{name(m)}: q{q} is read back", QUIET, _claim(world, m, q, read))

    # -- an administrator ---------------------------------------------------------------------------------------------

    def _rewind(self, world: World, q: int, offset: int) -> World:
        """The broker stores the offset, and drops updates until the next pull is sent there."""
        world = _shelve(world, q, stored=offset, safe=offset, rewound=offset)
        for m, member in enumerate(world.members):
            if (claim := member.claims[q]) is not None and claim.window != NONE:
                world = _claim(world, m, q, claim._replace(overdue=OVERDUE))
        return world

    def _take_up(self, world: World, m: int, q: int, claim: Claim) -> Iterator[Move]:
        """A pull of the owner's is answered with where to start again."""
        shelf, b = world.shelves[q], self.home[q]
        if not claim.polls or shelf.rewound == NONE or shelf.holder != m or world.members[m].conns[b] != UP:
            return
        label, taken = f"{name(m)}: q{q} is sent to {shelf.rewound}", _shelve(world, q, rewound=NONE)
        for other, member in enumerate(world.members):  # the broker says it once
            if other != m and (theirs := member.claims[q]) is not None and theirs.overdue == OVERDUE:
                taken = _claim(taken, other, q, theirs._replace(overdue=EXCUSED))
        if claim.overdue == NO:  # it has asked for just that
            yield Move(label, URGENT, taken)
            return
        yield Move(label, FREE, _claim(taken, m, q, claim._replace(heard=shelf.rewound)))
        for kind, conn in (("cut", LOST), ("reset", RESET)):
            if (after := _spend(taken, kind)) is not None:
                after = _lose(_claim(after, m, q, claim._replace(overdue=EXCUSED)), m, b, conn)
                yield Move(f"{label}, and the answer is lost with the connection", FREE, after)

    def _hear(self, world: World, m: int, q: int, claim: Claim) -> World:
        """`Holdings.restart`."""
        if claim.work != PULL and not self.rules.hears_while_leaving:
            return _claim(world, m, q, claim._replace(heard=NONE, overdue=EXCUSED))
        after = self._event(claim, QueueEvent.MOVED)
        return _claim(world, m, q, None if after is None else after._replace(heard=NONE))

    # -- leaving ------------------------------------------------------------------------------------------------------

    def _settled(self, world: World, m: int, q: int, claim: Claim) -> World:
        after = self._event(claim, QueueEvent.SETTLED)
        if after is not None and claim.window == NONE:  # its offset was not even read
            after = self._event(after, QueueEvent.PERSISTED)
        return _claim(world, m, q, after)

    def _persist(self, world: World, m: int, q: int, claim: Claim) -> Iterator[Move]:
        """`Holdings._persist` and `BrokerOffsets.confirm`."""
        who = f"{name(m)}: q{q}"
        if claim.lock is not Lock.HELD or not self._has_master(world, m, self.home[q]):
            if self.clean:
                return  # nothing that lasts: it is not out of time
            given_up = self._event(claim, QueueEvent.PERSISTED)
            yield Move(f"{who} is given up unconfirmed", FREE, _claim(world, m, q, given_up))
            return
        if claim.believed <= 0:
            return
        if claim.heard != NONE:  # that comes first
            return
        offset = claim.window if claim.start_at == NONE else claim.start_at
        if claim.wait > 0:
            return
        if claim.wait == 0 and world.shelves[q].stored >= offset:
            confirmed = self._event(claim._replace(wait=NONE, unanswered=False), QueueEvent.PERSISTED)
            yield Move(f"{who} is read back", URGENT, _claim(world, m, q, confirmed))
            return
        stored = self._store(world, q, offset, claim.overdue if claim.start_at == NONE else NO)
        told = claim._replace(told=offset, sent=max(claim.sent, offset))
        if claim.unanswered:
            again = _claim(stored, m, q, told._replace(wait=self.times.apart))
            yield Move(f"{who} commits {offset}, to read it back", URGENT, again)
        else:
            confirmed = self._event(told, QueueEvent.PERSISTED)
            yield Move(f"{who} commits {offset} at last", URGENT, _claim(stored, m, q, confirmed))

    def _unlock(self, world: World, m: int, q: int, claim: Claim) -> Iterator[Move]:
        """`Holdings._unlock`."""
        who, member = f"{name(m)}: q{q}", world.members[m]
        up, ever = self._has_master(world, m, self.home[q]), claim.locked_at > -ENDLESS or claim.stray
        gone = _claim(world, m, q, self._event(claim, QueueEvent.UNLOCKED))
        if claim.stray and member.life != DRAINING:
            gone = _fly(gone, Flight("stray", m, q, 0, self.times.strays))
        if not ever:
            yield Move(f"{who} was never locked", URGENT, gone)
        elif up:
            yield Move(f"{who} is unlocked", URGENT, self._unlocked(gone, m, q))
            if (deaf := _spend(world, "deaf")) is not None:
                yield Move(f"{who} is unlocked, and hears nothing", FREE, self._unlocked(deaf, m, q))
            if (late := _spend(world, "late")) is not None:
                late = _fly(late, Flight("unlock", m, q, 0, self.times.late))
                yield Move(f"{who} is unlocked, which is late", FREE, late)
        elif world.shelves[q].holder != m or member.life == DRAINING:
            yield Move(f"{who} ends by itself", FREE, gone)

    # -- where the group began ----------------------------------------------------------------------------------------

    def _beginning(self, world: World, m: int) -> Iterator[Move]:
        """`Beginnings.ensure` and `Beginnings._begin`, cut where their writer may die."""
        member, who = world.members[m], name(m)
        reached = [b for b in sorted(member.knows) if member.conns[b] == UP]
        if not reached:
            if member.begin:
                yield Move(f"{who} begins anew", URGENT, _membered(world, m, member._replace(begin=0)))
            return
        stored = [world.brokers[b].mark for b in reached]
        since = beginning.begun_at(stored)
        offsets = {q: world.shelves[q].stored for q, b in enumerate(self.home) if b in reached}
        if member.begin in (0, 1) and since is not None:
            yield Move(f"{who} knows when the group began", URGENT, self._has_begun(world, m, since))
        elif member.begin == 0:
            yield Move(f"{who} wants to begin", URGENT, self._lock_beginning(world, m, reached[0]))
        elif self.rules.keeps_lease_of_beginning and member.begin_lease <= 0:
            yield Move(f"{who} begins anew", URGENT, _membered(world, m, member._replace(begin=0)))
        elif member.begin == 1:
            if beginning.begun_by_others(stored, [None if one == NONE else one for one in offsets.values()]):
                since = beginning.LONG_AGO
                world = self._mark(world, reached, beginning.Mark(since, late=False).encode())
                yield Move(f"{who} finds a group of others", URGENT, self._has_begun(world, m, since))
                return
            ends = tuple(shelf.end for shelf in world.shelves)
            if ends not in world.epochs:
                world = world._replace(epochs=(*world.epochs, ends))
            world = self._mark(world, reached, beginning.BEGINNING)
            empty = frozenset(q for q, offset in offsets.items() if offset == NONE)
            member = member._replace(begin=2, since=world.epochs.index(ends) + beginning.LONG_AGO + 1, empty=empty)
            yield Move(f"{who} marks a beginning", URGENT, _membered(world, m, member))
        elif member.begin == 2:
            for q in sorted(member.empty):
                if self.home[q] in reached:
                    end = world.shelves[q].end
                    if world.shelves[q].safe != ENDLESS:
                        world = self._start_at(world, q, end)
                    world = _shelve(world, q, stored=end)
            written = frozenset(q for q in member.empty if self.home[q] not in reached)
            world = _membered(world, m, member._replace(begin=3, empty=written))
            yield Move(f"{who} writes the ends", URGENT, world)
        else:
            missed = {self.home[q] for q in member.empty} | {b for b in set(self.home) if b not in reached}
            for b in reached:
                world = self._mark(world, [b], beginning.Mark(member.since, late=b in missed).encode())
            if all(shelf.safe == ENDLESS for shelf in world.shelves):
                world = world._replace(shelves=tuple(shelf._replace(safe=shelf.end) for shelf in world.shelves))
            yield Move(f"{who} has begun", URGENT, self._has_begun(world, m, member.since))

    def _lock_beginning(self, world: World, m: int, b: int) -> World:
        broker = world.brokers[b]
        if broker.begin_holder in (NONE, m):
            world = _brokered(world, b, broker._replace(begin_holder=m, begin_expires=self.times.lives))
            lease = int(ownership.lease_until(0, self.times.lives))
            return _membered(world, m, world.members[m]._replace(begin=1, begin_lease=lease))
        member, departed = self._departed(world, m, b)
        if name(broker.begin_holder) in departed:
            world = _brokered(world, b, broker._replace(begin_holder=NONE, begin_expires=0))
        return _membered(world, m, member)

    @staticmethod
    def _mark(world: World, brokers: list[int], value: int) -> World:
        for b in brokers:
            world = _brokered(world, b, world.brokers[b]._replace(mark=value))
        return world

    @staticmethod
    def _has_begun(world: World, m: int, since: int) -> World:
        member = world.members[m]._replace(begin=BEGUN, since=since, begin_lease=0, empty=frozenset())
        for b, broker in enumerate(world.brokers):
            if broker.begin_holder == m and member.conns[b] == UP:
                world = _brokered(world, b, broker._replace(begin_holder=NONE, begin_expires=0))
        return _membered(world, m, member)

    def _start_of(self, world: World, m: int, q: int) -> tuple[World, int]:
        """`Beginnings.start`: where a queue without an offset starts."""
        b, since = self.home[q], world.members[m].since
        mark = beginning.decode_mark(world.brokers[b].mark)
        if mark is None:
            world = self._mark(world, [b], beginning.Mark(since, late=True).encode())
        siblings = [world.shelves[one].stored for one, home in enumerate(self.home) if home == b]
        if beginning.starts_at_zero(mark, [None if one == NONE else one for one in siblings]):
            return world, 0
        return world, 0 if since == beginning.LONG_AGO else world.epochs[since - beginning.LONG_AGO - 1][q]

    # -- faults -------------------------------------------------------------------------------------------------------

    def _faults(self, world: World) -> Iterator[Move]:
        for m, member in enumerate(world.members):
            who = name(m)
            if member.life == AWAY and (after := _spend(world, "join")) is not None:
                yield Move(f"{who} JOINS", FREE, join(after, m, self.times.apart, self.times.owners))
            if member.life == LEFT and (after := _spend(world, "again")) is not None:
                yield Move(f"{who} is started AGAIN", FREE, join(after, m, self.times.apart, self.times.owners))
            if member.life not in (RUNNING, DRAINING):
                continue
            if (after := _spend(world, "kill")) is not None:
                yield Move(f"{who} is KILLED", FREE, _gone(after, m))
            if not member.frozen and (after := _spend(world, "freeze")) is not None:
                after = _membered(after, m, member._replace(frozen=True))
                yield Move(f"{who} FREEZES", FREE, after)
            if member.life == RUNNING and not member.frozen and (after := _spend(world, "drain")) is not None:
                yield Move(f"{who} DRAINS", FREE, self._drain(after, m))
            for b, conn in enumerate(member.conns):
                if conn == UP and (after := _spend(world, "cut")) is not None:
                    yield Move(f"{who} is CUT off from b{b}", FREE, _lose(after, m, b, LOST))
                if conn == UP and (after := _spend(world, "reset")) is not None:
                    yield Move(f"{who}'s connection to b{b} is RESET", FREE, _lose(after, m, b, RESET))
                if b in member.knows and not member.frozen and (after := _spend(world, "route")) is not None:
                    after = _membered(after, m, member._replace(knows=member.knows - {b}))
                    yield Move(f"{who}'s ROUTE loses b{b}", FREE, after)
        for b in range(len(world.brokers)):
            if (after := _spend(world, "restart")) is not None:
                yield Move(f"b{b} RESTARTS", FREE, self.restart(after, b))
            if world.brokers[b].age >= 0 and (after := _spend(world, "headless")) is not None:
                after = self.restart(after, b)
                broker = after.brokers[b]._replace(age=world.brokers[b].age, headless=_DOWN)
                yield Move(f"b{b} has NO MASTER", FREE, _brokered(after, b, broker))
        for q, shelf in enumerate(world.shelves):
            for offset in sorted({0, shelf.end} - {shelf.stored}):
                if (after := _spend(world, "rewind")) is not None:
                    yield Move(f"q{q} is REWOUND to {offset}", FREE, self._rewind(after, q, offset))

    def _drain(self, world: World, m: int) -> World:
        member = world.members[m]
        claims = tuple(None if one is None else self._event(one, QueueEvent.STOPPING) for one in member.claims)
        return _membered(world, m, member._replace(life=DRAINING, claims=claims))

    def restart(self, world: World, b: int) -> World:
        for m, member in enumerate(world.members):
            if member.conns[b] == UP:
                world = _lose(world, m, b, RESET)
        broker = world.brokers[b]
        world = _brokered(world, b, Broker(frozenset(), -_DOWN, broker.mark_flushed, broker.mark_flushed))
        for q, home in enumerate(self.home):
            if home == b:
                world = _shelve(world, q, holder=NONE, expires=0, stored=world.shelves[q].flushed)
        return world._replace(flights=tuple(one for one in world.flights if self.home[one.queue] != b))

    # -- judging ------------------------------------------------------------------------------------------------------

    def wrong(self, world: World) -> str:
        """What is wrong with a world; empty if nothing is."""
        if world.wrong:
            return world.wrong
        for q in range(len(self.home)):
            owners = [
                name(m)
                for m, member in enumerate(world.members)
                if member.acts and (claim := member.claims[q]) is not None and claim.believes
            ]
            if len(owners) > 1:
                return f"q{q} has two owners: {' and '.join(owners)}"
        return ""

    def calm(self, world: World) -> World:
        """The same world, with every lasting fault over and no other to come."""
        everywhere = frozenset(range(len(world.brokers)))
        members = tuple(
            one
            if one.life in (AWAY, LEFT)
            else one._replace(frozen=False, knows=everywhere, conns=tuple(_HEALED.get(c, c) for c in one.conns))
            for one in world.members
        )
        return world._replace(members=members, left=0, faults=(0,) * len(FAULTS), order=())

    def well(self, world: World) -> bool:
        """Every queue has exactly one owner, that is right about it, and everything is handled and committed."""
        if world.flights:
            return False
        for q, shelf in enumerate(world.shelves):
            claims = [(m, c) for m, one in enumerate(world.members) if (c := one.claims[q]) is not None]
            if len(claims) != 1:
                return False
            ((m, claim),) = claims
            owned = (
                claim.state is OwnershipState.OWNED and claim.believes and claim.believed > 0 and claim.window != NONE
            )
            if not owned or shelf.holder != m or not shelf.stored == claim.window == claim.told == shelf.end:
                return False
        return all(set(one.conns) == {UP} for one in world.members if one.life == RUNNING)

    def onward(self, world: World) -> Move:
        """The next move of a life without faults: the first of those that can be made, and else time passes."""
        for move in self._all(world):
            if move.world is not world and move.world != world:
                return move
        return Move("tick", FREE, self.tick(world))


_DOWN = 2  # ticks that a restart takes: everybody has noticed by then
_HEALED = {LOST: RESET, LOST_NOW: RESET_NOW, CUT: BACK}
_KIND = {kind: index for index, kind in enumerate(FAULTS)}
_RESTART, _HEADLESS = _KIND["restart"], _KIND["headless"]


def _roster(key: RosterKey) -> Roster:
    return Roster(key.present, dict(key.awaited), dict(key.absent))


def _without_window(claim: Claim) -> Claim:
    """`Holdings._abandon`."""
    return claim._replace(
        work=IDLE,
        window=NONE,
        busy=False,
        believed=0,
        told=UNTOLD,
        sent=UNTOLD,
        unanswered=False,
        wait=NONE,
        polls=False,
        heard=NONE,
        start_at=NONE,
        overdue=NO,
    )


def _start_again(claim: Claim, offset: int) -> Claim:
    """`Holdings._start_again`."""
    claim, held = _without_window(claim), claim.lock is Lock.HELD
    believed = claim.lease if held else 0
    return claim._replace(work=PULL, window=offset, told=NONE, sent=offset, believed=believed, polls=held)


def _has_window(member: Member, q: int) -> bool:
    claim = member.claims[q]
    return member.acts and claim is not None and claim.window != NONE


def _membered(world: World, m: int, member: Member) -> World:
    return world._replace(members=_set(world.members, m, member))


def _claim(world: World, m: int, q: int, claim: Claim | None) -> World:
    member = world.members[m]
    return _membered(world, m, member._replace(claims=_set(member.claims, q, claim)))


def _shelve(world: World, q: int, **changes: int) -> World:
    return world._replace(shelves=_set(world.shelves, q, world.shelves[q]._replace(**changes)))


def _brokered(world: World, b: int, broker: Broker) -> World:
    return world._replace(brokers=_set(world.brokers, b, broker))


def _fly(world: World, *flights: Flight) -> World:
    return world._replace(flights=tuple(sorted({*world.flights, *flights})))


def _wrong_if(world: World, condition: bool, sentence: str) -> World:
    return world._replace(wrong=sentence) if condition and not world.wrong else world


def _spend(world: World, kind: str) -> World | None:
    """The world with one fault less to come; None if there is none left."""
    index = _KIND[kind]
    if not world.left or not world.faults[index] or (world.order and world.order[0] != kind):
        return None
    world = world._replace(order=world.order[1:])
    faults = _set(world.faults, index, world.faults[index] - 1)
    return world._replace(left=world.left - 1, faults=faults if world.left > 1 else (0,) * len(faults))


def _lose(world: World, m: int, b: int, conn: int) -> World:
    broker, member = world.brokers[b], world.members[m]
    world = _brokered(world, b, broker._replace(listed=broker.listed - {name(m)}))
    return _membered(world, m, member._replace(conns=_set(member.conns, b, conn)))


def _connect(world: World, m: int, b: int, wait: int) -> World:
    broker, member = world.brokers[b], world.members[m]
    world = _brokered(world, b, broker._replace(listed=broker.listed | {name(m)}))
    return _membered(world, m, member._replace(conns=_set(member.conns, b, UP), back=_set(member.back, b, wait)))


def _gone(world: World, m: int) -> World:
    for b, broker in enumerate(world.brokers):
        world = _brokered(world, b, broker._replace(listed=broker.listed - {name(m)}))
    member = world.members[m]
    nothing: tuple[None, ...] = (None,) * len(member.claims)
    return _membered(world, m, Member(LEFT, frozen=False, conns=(CUT,) * len(member.conns), claims=nothing))


def join(world: World, m: int, wait: int, owners: int) -> World:
    """A member starts."""
    member = world.members[m]
    joined = Member(
        RUNNING,
        frozen=False,
        conns=tuple(UP if broker.age >= 0 else BACK for broker in world.brokers),
        claims=member.claims,
        back=(wait,) * len(member.conns),
        knows=frozenset(range(len(world.brokers))),
        begin=0,
        headless=frozenset(b for b, broker in enumerate(world.brokers) if broker.headless != NONE),
        owners=tuple(max(0, owners - max(0, broker.age)) for broker in world.brokers),
    )
    world = _membered(world, m, joined)
    for b, broker in enumerate(world.brokers):
        if broker.age >= 0:
            world = _brokered(world, b, broker._replace(listed=broker.listed | {name(m)}))
    return world
