"""Rules about how queues are shared out: which parameter goes with which strategy.

Two of them look at all queues of all assignments, which is more than the API server lets an expression cost.
"""

from collections.abc import Callable

from rocketfleet.allocation.machine_room_nearby import DEFAULT_SEPARATOR
from rocketfleet.allocation.strategies import StrategyName
from rocketfleet.api.allocation import Allocation
from rocketfleet.api.rule import Rule
from rocketfleet.api.rules.form import form
from rocketfleet.api.spec import ConsumerGroupSpec

ROOM = "[a-zA-Z0-9._-]+"
SEPARATOR = "[!#%&*+,./:;=?@^_|~-]+"  # nothing that a shell, or Kubernetes' $(NAME), would take for its own


def _allocation(name: str, message: str, cel: str | None, holds: Callable[[Allocation], bool], field: str) -> Rule:
    return Rule(name, "spec.allocation", message, cel, holds, field)


# parameter, the strategy that it belongs to, whether that strategy can't do without
PARAMETERS: tuple[tuple[str, str, StrategyName, bool], ...] = (
    ("virtualNodes", "virtual_nodes", StrategyName.CONSISTENT_HASH, False),
    ("rooms", "rooms", StrategyName.MACHINE_ROOM, True),
    ("separator", "separator", StrategyName.MACHINE_ROOM_NEARBY, False),
    ("memberRooms", "member_rooms", StrategyName.MACHINE_ROOM_NEARBY, True),
    ("inner", "inner", StrategyName.MACHINE_ROOM_NEARBY, False),
    ("assignments", "assignments", StrategyName.CONFIG, True),
)


def _only_with(key: str, attribute: str, strategy: StrategyName) -> Rule:
    return _allocation(
        f"{key}-only-with-{strategy}",
        f"{key} belongs to strategy {strategy}: set that, or remove {key}",
        f"self.strategy == '{strategy}' || !has(self.{key})",
        lambda a: a.strategy is strategy or getattr(a, attribute) is None,
        f".{key}",
    )


def _needed_by(key: str, attribute: str, strategy: StrategyName) -> Rule:
    return _allocation(
        f"{key}-given-with-{strategy}",
        f"strategy {strategy} needs {key}: give it, or choose another strategy",
        f"self.strategy != '{strategy}' || has(self.{key})",
        lambda a: a.strategy is not strategy or getattr(a, attribute) is not None,
        f".{key}",
    )


def _rooms_stand_apart(allocation: Allocation) -> bool:
    separator = DEFAULT_SEPARATOR if allocation.separator is None else allocation.separator
    return not any(separator in room for room in allocation.member_rooms or ())


def _queues_once(allocation: Allocation) -> bool:
    queues = [(q.topic, q.broker, q.queue_id) for a in allocation.assignments or () for q in a.queues]
    return len(set(queues)) == len(queues)


def _queues_subscribed(spec: ConsumerGroupSpec) -> bool:
    topics = {s.topic for s in spec.subscriptions}
    return all(q.topic in topics for a in spec.allocation.assignments or () for q in a.queues)


ALLOCATION: tuple[Rule, ...] = (
    *(_only_with(key, attribute, strategy) for key, attribute, strategy, _ in PARAMETERS),
    *(_needed_by(key, attribute, strategy) for key, attribute, strategy, needed in PARAMETERS if needed),
    _allocation(
        "ordinals-differ",
        "two assignments have the same ordinal: put their queues into one",
        "!has(self.assignments) || self.assignments.all(a, self.assignments.exists_one(b, b.ordinal == a.ordinal))",
        lambda a: len({x.ordinal for x in a.assignments or ()}) == len(a.assignments or ()),
        ".assignments",
    ),
    _allocation(
        "queues-assigned-once",
        "a queue is assigned to two members: leave it to one of them",
        None,
        _queues_once,
        ".assignments",
    ),
    Rule(
        "assigned-queues-subscribed",
        "spec",
        "a queue is assigned whose topic is not among the subscriptions: add the topic, or remove the queue",
        None,
        _queues_subscribed,
        ".allocation.assignments",
    ),
    form("room-form", "spec.allocation.rooms[]", ROOM, "a room's name has letters, digits, '.', '_' and '-' only"),
    form(
        "member-room-form",
        "spec.allocation.memberRooms[]",
        ROOM,
        "a room's name has letters, digits, '.', '_' and '-' only",
    ),
    form(
        "separator-form",
        "spec.allocation.separator",
        SEPARATOR,
        "a separator is made of ! # % & * + , . / : ; = ? @ ^ _ | ~ - only",
    ),
    _allocation(
        "rooms-without-separator",
        "a room's name has the separator in it, so it would end there: choose another separator",
        "!has(self.memberRooms) || "
        "self.memberRooms.all(room, !room.contains(has(self.separator) ? self.separator : '@'))",
        _rooms_stand_apart,
        ".memberRooms",
    ),
)
