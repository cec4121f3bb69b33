"""`spec.allocation`: how queues are shared out, as a union by `strategy`.

A structural schema has no real unions, so it is one flat model, and rules say which parameter goes with which strategy.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from rocketfleet.allocation.strategies import DEFAULT_STRATEGY, StrategyName
from rocketfleet.api.model import Model

MOST_ASSIGNMENTS = 256
MOST_QUEUES = 256
MOST_ROOMS = 32

Room = Annotated[str, Field(max_length=63, description="A machine room's name.")]


class InnerStrategy(StrEnum):
    """What may share out queues within a room: any strategy that needs no parameters of its own. A test holds it
    against the registry."""

    AVERAGELY = "Averagely"
    AVERAGELY_BY_CIRCLE = "AveragelyByCircle"
    CONSISTENT_HASH = "ConsistentHash"
    BALANCED = "Balanced"


class QueueRef(Model):
    """One queue by name."""

    topic: Annotated[str, Field(min_length=1, max_length=127, description="One of the subscribed topics.")]
    broker: Annotated[str, Field(min_length=1, max_length=255, description="The broker's name, not its address.")]
    queue_id: Annotated[int, Field(ge=0, le=1_000_000, description="The queue's number at this broker.")]


class QueueAssignment(Model):
    """Config: the queues of the member with this ordinal."""

    ordinal: Annotated[int, Field(ge=0, le=10_000, description="The pod's number: orders-3 has 3.")]
    queues: Annotated[
        list[QueueRef],
        Field(
            min_length=1,
            max_length=MOST_QUEUES,
            description="The queues of this member, and of no other.",
            json_schema_extra={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["topic", "broker", "queueId"],
            },
        ),
    ]


class Allocation(Model):
    """How queues are allocated to members."""

    strategy: Annotated[
        StrategyName,
        Field(
            description="One of Java's six strategies, or Balanced: even over all topics together, moving few queues. "
            "Ignored by engine Container, which does it its own way."
        ),
    ] = DEFAULT_STRATEGY
    virtual_nodes: Annotated[
        int | None, Field(ge=1, le=10_000, description="ConsistentHash: nodes on the ring per member. Default 10.")
    ] = None
    rooms: Annotated[
        list[Room] | None,
        Field(
            min_length=1,
            max_length=MOST_ROOMS,
            description="MachineRoom: the rooms to consume from; a broker is named room@broker.",
            json_schema_extra={"x-kubernetes-list-type": "set"},
        ),
    ] = None
    separator: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=8,
            description="MachineRoomNearby: separator after the room in a broker's name. Default @.",
        ),
    ] = None
    member_rooms: Annotated[
        list[Room] | None,
        Field(
            min_length=1,
            max_length=MOST_ROOMS,
            description="MachineRoomNearby: the members' rooms, assigned in turn by ordinal. A room may be repeated.",
        ),
    ] = None
    inner: Annotated[
        InnerStrategy | None, Field(description="MachineRoomNearby: the strategy within a room. Default Averagely.")
    ] = None
    assignments: Annotated[
        list[QueueAssignment] | None,
        Field(
            min_length=1,
            max_length=MOST_ASSIGNMENTS,
            description="Config: the queues of each member.",
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["ordinal"]},
        ),
    ] = None
