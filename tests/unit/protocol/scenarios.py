"""The scenarios: who is there at the beginning, and which faults may happen, how often.

Each is visited completely. Members are named in the order in which they are given queues: with one queue the first
member of those there has it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tests.unit.protocol.model import (
    AWAY,
    ENDLESS,
    FAULTS,
    NONE,
    UP,
    Broker,
    Member,
    Model,
    Rules,
    Shelf,
    Times,
    World,
    join,
)

from rocketfleet.consumer.offset_storage import beginning


class Scenario(NamedTuple):
    name: str
    why: str
    running: tuple[int, ...]  # members that are there
    away: tuple[int, ...] = ()  # members that may join
    home: tuple[int, ...] = (0,)  # each queue's broker
    sent: int = 2  # messages in each queue
    to_send: int = 0  # messages that may still come
    faults: Mapping[str, int] = MappingProxyType({})
    most: int = 2  # faults of all kinds together
    order: tuple[str, ...] = ()  # in this order only; empty: in any
    restarted: bool = False  # the broker has been killed a moment ago
    slow: bool = False  # handlers take time: beginning and finishing a message are two moves
    fresh: bool = False  # the group has not begun
    new: tuple[int, ...] = ()  # queues that came after the group began, and have no offset
    times: Times = Times()
    bound: int = 24  # ticks after the last fault within which all is well again
    large: bool = False  # takes half a minute, and is visited only when asked for

    @property
    def clean(self) -> bool:
        """Nothing but joins and drains, if need be after a master has gone: nothing may be repeated."""
        first = {"headless"} if self.order[:1] == ("headless",) else set()
        return set(self.faults) <= {"join", "drain"} | first and not self.restarted

    @property
    def steady(self) -> bool:
        """Every member is cut off for a moment at most: no queue may be taken from anybody who has a window."""
        moments = {"reset", "restart", "headless"}
        broken = sum(self.faults.get(kind, 0) for kind in moments)
        return broken <= 1 and set(self.faults) <= {"join", "drain", "kill", "again", "rewind"} | moments

    def model(self, rules: Rules) -> Model:
        return Model(
            self.home, self.sent + self.to_send, self.times, rules, clean=self.clean, slow=self.slow, steady=self.steady
        )

    def start(self) -> World:
        brokers = range(max(self.home) + 1)
        mark = None if self.fresh else beginning.Mark(beginning.LONG_AGO, late=False).encode()
        stored, low, safe = (NONE, self.sent, ENDLESS) if self.fresh else (0, 0, 0)
        nobody = Member(AWAY, frozen=False, conns=(UP,) * len(brokers), claims=(None,) * len(self.home))
        world = World(
            members=(nobody,) * (max((*self.running, *self.away)) + 1),
            brokers=tuple(Broker(frozenset(), self.times.rejoin, mark, mark) for _ in brokers),
            shelves=tuple(
                Shelf(stored=NONE, flushed=NONE, end=self.sent)
                if q in self.new
                else Shelf(stored=stored, flushed=stored, end=self.sent, low=low, safe=safe)
                for q in range(len(self.home))
            ),
            flights=(),
            faults=tuple(self.faults.get(kind, 0) for kind in FAULTS),
            left=self.most,
            order=self.order,
        )
        for m in self.running:
            world = join(world, m, 0, 0)
        return world if self.fresh or self.new else self._settled(world)

    def _settled(self, world: World) -> World:
        """A group that has been there for long, with nothing handled yet."""
        shelves = world.shelves
        model = self.model(Rules())
        calm = world._replace(shelves=tuple(shelf._replace(end=shelf.stored) for shelf in shelves), left=0)
        model.messages = 0
        while not model.well(calm):
            calm = model.onward(calm).world
        while (move := model.onward(calm)).label != "tick":
            calm = move.world
        ended = (ours._replace(end=theirs.end) for ours, theirs in zip(calm.shelves, shelves, strict=True))
        calm = calm._replace(shelves=tuple(ended), left=world.left)
        return model.restart(calm, 0) if self.restarted else calm


SCENARIOS = (
    Scenario(
        "joining and draining",
        "handlers take time, and nothing at all is handled twice",
        running=(1,),
        away=(0, 2),
        slow=True,
        faults={"join": 2, "drain": 1},
        most=2,
        bound=2,
    ),
    Scenario(
        "joining and draining, two queues",
        "the same where queues are shared",
        running=(1,),
        away=(0,),
        home=(0, 0),
        sent=1,
        slow=True,
        faults={"join": 1, "drain": 1},
        bound=2,
    ),
    Scenario(
        "a network is cut",
        "for any time, once, with enough messages to tell a window that is out of date",
        running=(0, 1),
        faults={"cut": 1},
        most=1,
        bound=6,
    ),
    Scenario(
        "a connection is reset",
        "and made again at once: nobody takes anything from anybody",
        running=(0, 1),
        faults={"reset": 1},
        most=1,
        bound=6,
    ),
    Scenario(
        "connections are reset",
        "of both members, or of one again before it has settled",
        running=(0, 1),
        sent=1,
        faults={"reset": 2},
        bound=6,
    ),
    Scenario(
        "a network is cut twice",
        "or another connection too",
        running=(0, 1),
        sent=0,
        faults={"cut": 2, "reset": 1},
        bound=6,
    ),
    Scenario(
        "two brokers, and a partial route",
        "a member knows or reaches one broker and not the other",
        running=(0, 1),
        home=(0, 1),
        sent=0,
        faults={"cut": 1, "route": 1},
        bound=6,
    ),
    Scenario(
        "two brokers, and one of them is in trouble",
        "it restarts, or a member loses it; the other's queue and messages go on",
        running=(0, 1),
        home=(0, 1),
        sent=1,
        faults={"restart": 1, "cut": 1, "reset": 1},
        most=1,
        bound=8,
    ),
    Scenario(
        "a broker restarts",
        "it has forgotten locks and members, and the last of the offsets; some take their time to come back",
        running=(0, 1),
        home=(0, 0),
        sent=1,
        faults={"restart": 1},
        most=1,
        times=Times(slow=3),
        bound=8,
    ),
    Scenario(
        "a broker restarts as somebody joins",
        "before, meanwhile or after",
        running=(1,),
        away=(0,),
        sent=1,
        faults={"restart": 1, "join": 1},
        bound=8,
    ),
    Scenario(
        "somebody joins at a broker that has only just started",
        "and that its members take their time to come back to",
        running=(1,),
        away=(0,),
        sent=1,
        restarted=True,
        faults={"join": 1},
        most=1,
        times=Times(slow=3),
        bound=8,
    ),
    Scenario(
        "a broker restarts, and a network is cut",
        "in either order",
        running=(0, 1),
        sent=1,
        faults={"restart": 1, "cut": 1},
        bound=8,
    ),
    Scenario(
        "somebody joins while a broker has no master",
        "or when it has one again: its owner goes on from a slave, and is the first to get the lock",
        running=(1,),
        away=(0,),
        slow=True,
        faults={"headless": 1, "join": 1},
        order=("headless", "join"),
        bound=10,
    ),
    Scenario(
        "one of three dies",
        "and its queue has another owner shortly after the grace",
        running=(0, 1, 2),
        faults={"kill": 1},
        most=1,
        bound=5,
    ),
    Scenario(
        "one dies as another joins",
        "whom nobody has told of the first: it waits for the lock to end at most",
        running=(1,),
        away=(0,),
        faults={"kill": 1, "join": 1},
        bound=8,
    ),
    Scenario(
        "a process is started again",
        "under the same name, as a container is",
        running=(0, 1),
        sent=1,
        faults={"kill": 1, "again": 1},
        bound=8,
    ),
    Scenario(
        "a process freezes",
        "for any time",
        running=(0, 1),
        faults={"freeze": 1},
        most=1,
        bound=6,
    ),
    Scenario(
        "a process freezes as somebody joins",
        "who is given its queue",
        running=(1,),
        away=(0,),
        sent=1,
        faults={"freeze": 1, "join": 1},
        bound=8,
    ),
    Scenario(
        "a process freezes and is cut off",
        "so that it cannot notice",
        running=(0, 1),
        sent=0,
        faults={"freeze": 1, "reset": 1},
        bound=8,
    ),
    Scenario(
        "a process freezes, and a broker restarts",
        "so that its locks are gone before its lease is out",
        running=(0, 1),
        sent=0,
        faults={"freeze": 1, "restart": 1},
        bound=8,
    ),
    Scenario(
        "answers are lost or late",
        "of locks, unlocks and commits, while a queue moves",
        running=(1,),
        away=(0,),
        faults={"join": 1, "late": 1, "deaf": 1},
        bound=8,
    ),
    Scenario(
        "a request is late, and a network is cut",
        "so that it is handled when somebody else has the queue",
        running=(0, 1),
        sent=1,
        faults={"cut": 1, "late": 1, "deaf": 1},
        bound=8,
    ),
    Scenario(
        "a group begins, and its first member dies",
        "at any moment of the beginning, while messages come",
        running=(0,),
        away=(1,),
        sent=1,
        to_send=1,
        fresh=True,
        faults={"kill": 1, "join": 1},
        bound=10,
    ),
    Scenario(
        "a group begins, and its first member freezes",
        "for longer than its lock lives",
        running=(0,),
        away=(1,),
        sent=0,
        to_send=1,
        fresh=True,
        faults={"freeze": 1, "join": 1},
        order=("freeze", "join"),
        large=True,
        bound=10,
    ),
    Scenario(
        "a queue is new",
        "the topic was expanded after the group began",
        running=(0, 1),
        home=(0, 0),
        sent=1,
        new=(1,),
        faults={"kill": 1},
        most=1,
        bound=8,
    ),
    Scenario(
        "a group is rewound, and a network is cut",
        "before, meanwhile, or with the answer that says so",
        running=(0, 1),
        sent=1,
        faults={"rewind": 1, "cut": 1},
        bound=8,
    ),
    Scenario(
        "a group is rewound as a queue moves",
        "handlers take time, and whoever leaves leaves it there",
        running=(1,),
        away=(0,),
        slow=True,
        faults={"rewind": 1, "join": 1, "drain": 1},
        bound=8,
    ),
    Scenario(
        "a group is rewound as its owner freezes",
        "so that it hears of it in doubt",
        running=(0, 1),
        sent=1,
        faults={"rewind": 1, "freeze": 1},
        bound=8,
    ),
)


def scenario(name: str) -> Scenario:
    (found,) = (one for one in SCENARIOS if one.name == name)
    return found
