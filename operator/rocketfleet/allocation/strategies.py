"""The strategies by name, and the one difference between them that a consumer must know: what it has to be asked about.

Java's strategies are asked about one topic at a time (scope TOPIC), Balanced about all topics of the group at once
(scope GROUP). Both are an `Allocate`; asked about the wrong set of queues either would answer, and wrongly.
`allocate_group` asks each as it must be asked.

A strategy has Java's short name, as in the `allocate` command and in logs, and the name that it has in a manifest.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from functools import partial

from rocketfleet.allocation.averagely import averagely
from rocketfleet.allocation.averagely_by_circle import averagely_by_circle
from rocketfleet.allocation.balanced import balanced
from rocketfleet.allocation.config import config
from rocketfleet.allocation.consistent_hash import DEFAULT_VIRTUAL_NODES, check_virtual_nodes, consistent_hash
from rocketfleet.allocation.java_order import sort_members, sort_queues
from rocketfleet.allocation.machine_room import machine_room
from rocketfleet.allocation.machine_room_nearby import machine_room_nearby
from rocketfleet.allocation.request import Allocate, AllocationError, AllocationRequest
from rocketfleet.wire.queue import MessageQueue


class StrategyName(StrEnum):
    """The strategies as a manifest names them."""

    AVERAGELY = "Averagely"
    AVERAGELY_BY_CIRCLE = "AveragelyByCircle"
    CONSISTENT_HASH = "ConsistentHash"
    CONFIG = "Config"
    MACHINE_ROOM = "MachineRoom"
    MACHINE_ROOM_NEARBY = "MachineRoomNearby"
    BALANCED = "Balanced"


class Scope(Enum):
    """Which queues a request to a strategy must hold."""

    TOPIC = "topic"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy with its parameters bound."""

    name: str
    scope: Scope
    allocate: Allocate


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the strategies can be told; each reads only its own."""

    virtual_nodes: int = DEFAULT_VIRTUAL_NODES  # ConsistentHash
    rooms: Collection[str] | None = None  # MachineRoom
    queues: Sequence[MessageQueue] | None = None  # Config
    inner: Strategy | None = None  # MachineRoomNearby, as are the next two
    room_of_queue: Callable[[MessageQueue], str] | None = None
    room_of_member: Callable[[str], str] | None = None


def _consistent_hash(parameters: Parameters) -> Strategy:
    check_virtual_nodes(parameters.virtual_nodes)
    allocate = partial(consistent_hash, virtual_nodes=parameters.virtual_nodes)
    return Strategy("CONSISTENT_HASH", Scope.TOPIC, allocate)


def _machine_room_nearby(parameters: Parameters) -> Strategy:
    if parameters.inner is None:
        raise AllocationError("allocateMessageQueueStrategy is null")
    if parameters.room_of_queue is None or parameters.room_of_member is None:
        raise AllocationError("machineRoomResolver is null")
    allocate = partial(
        machine_room_nearby,
        inner=parameters.inner.allocate,
        room_of_queue=parameters.room_of_queue,
        room_of_member=parameters.room_of_member,
    )
    # Rooms part queues and members and nothing else, so what is within them is asked about whatever it would be asked
    # without them.
    return Strategy(f"MACHINE_ROOM_NEARBY-{parameters.inner.name}", parameters.inner.scope, allocate)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line of the registry. `needs`: the parameters that the strategy cannot do without, and nobody can choose for it
    but the user."""

    short_name: str
    build: Callable[[Parameters], Strategy]
    needs: tuple[str, ...] = ()


_REGISTRY: dict[StrategyName, _Entry] = {
    StrategyName.AVERAGELY: _Entry("AVG", lambda _: Strategy("AVG", Scope.TOPIC, averagely)),
    StrategyName.AVERAGELY_BY_CIRCLE: _Entry(
        "AVG_BY_CIRCLE", lambda _: Strategy("AVG_BY_CIRCLE", Scope.TOPIC, averagely_by_circle)
    ),
    StrategyName.CONSISTENT_HASH: _Entry("CONSISTENT_HASH", _consistent_hash),
    StrategyName.CONFIG: _Entry(
        "CONFIG", lambda given: Strategy("CONFIG", Scope.TOPIC, partial(config, queues=given.queues)), ("queues",)
    ),
    StrategyName.MACHINE_ROOM: _Entry(
        "MACHINE_ROOM",
        lambda given: Strategy("MACHINE_ROOM", Scope.TOPIC, partial(machine_room, rooms=given.rooms)),
        ("rooms",),
    ),
    StrategyName.MACHINE_ROOM_NEARBY: _Entry("MACHINE_ROOM_NEARBY", _machine_room_nearby),
    StrategyName.BALANCED: _Entry("BALANCED", lambda _: Strategy("BALANCED", Scope.GROUP, balanced)),
}

DEFAULT_STRATEGY = StrategyName.BALANCED
DEFAULT_INNER = StrategyName.AVERAGELY  # within a room

_BY_SHORT_NAME = {entry.short_name: name for name, entry in _REGISTRY.items()}
SHORT_NAMES: tuple[str, ...] = tuple(_BY_SHORT_NAME)

_NO_PARAMETERS = Parameters()


def named(name: str) -> StrategyName:
    """The strategy of that name, short or as in a manifest."""
    try:
        return _BY_SHORT_NAME.get(name) or StrategyName(name)
    except ValueError:
        raise AllocationError(f"there is no strategy {name!r}; there are {', '.join(SHORT_NAMES)}") from None


def needed_parameters(name: str) -> tuple[str, ...]:
    """The fields of `Parameters` that have to be given to this strategy."""
    return _REGISTRY[named(name)].needs


def build(name: str, parameters: Parameters = _NO_PARAMETERS) -> Strategy:
    """The strategy of that name, short or as in a manifest. A wrong name or parameter is an AllocationError."""
    return _REGISTRY[named(name)].build(parameters)


def allocate_group(strategy: Strategy, request: AllocationRequest) -> list[MessageQueue]:
    """The member's queues of all topics: sorts both lists as Java's rebalance does, then asks once, or once per topic.

    A queue that is answered twice (Config answers the same to every topic) is one.
    """
    members = sort_members(request.members)
    queues = sort_queues(set(request.queues))
    if strategy.scope is Scope.GROUP:
        return strategy.allocate(replace(request, members=members, queues=queues))
    topics: dict[str, list[MessageQueue]] = {}
    for queue in queues:
        topics.setdefault(queue.topic, []).append(queue)
    share: dict[MessageQueue, None] = {}
    for of_topic in topics.values():
        share.update(dict.fromkeys(strategy.allocate(replace(request, members=members, queues=of_topic))))
    return list(share)
