"""A manifest as the settings of one worker or driver, and the name that it has at the broker.

All members of a group get the same settings, so that they agree on subscriptions and strategy, with two exceptions that
go by the ordinal: with Config each member is told its own queues, with MachineRoomNearby each has a room, which is the
beginning of its client id.
"""

from collections.abc import Mapping
from typing import Any

from rocketfleet.allocation.machine_room_nearby import DEFAULT_SEPARATOR
from rocketfleet.allocation.strategies import StrategyName
from rocketfleet.api.allocation import Allocation
from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Engine
from rocketfleet.client.variables import POD_NAME_VARIABLE, POD_UID_VARIABLE
from rocketfleet.control.identity import choose_client_id, process_client_id

_OF_THE_POD = ("image", "path", "codeConfigMap", "codeUpdate")  # of the section `spark`: what the pod is made of
_SHARED = (
    "subscriptions",
    "messageModel",
    "consumeMode",
    "consumeFromWhere",
    "consumeTimestamp",
    "initialOffset",
    "rebalance",
    "shutdown",
)


def settings_of(group: ConsumerGroup, ordinal: int) -> dict[str, Any]:
    """The worker's settings file. What is as the manifest's defaults have it is left out: those stand with the worker
    too, and one that is older than the operator has not heard of a setting that is new. Strategy and threads are always
    written: old workers have other defaults for them.
    """
    spec = group.spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    settings: dict[str, Any] = {"groupName": group.group_name}
    settings |= {key: spec[key] for key in _SHARED if key in spec}
    settings["allocation"] = _allocation(group.spec.allocation, spec.get("allocation", {}), ordinal)
    settings["consume"] = {"threads": group.spec.consume.threads, **spec.get("consume", {})}
    if group.spec.engine is Engine.SPARK:
        settings["spark"] = {key: value for key, value in spec["spark"].items() if key not in _OF_THE_POD}
    return settings


def _allocation(allocation: Allocation, written: Mapping[str, Any], ordinal: int) -> dict[str, Any]:
    # memberRooms and assignments are about all members; a worker knows only of itself.
    own: dict[str, Any] = {"strategy": allocation.strategy.value}
    own |= {key: value for key, value in written.items() if key not in ("memberRooms", "assignments")}
    if allocation.strategy is StrategyName.CONFIG:
        own["queues"] = [
            queue.model_dump(mode="json", by_alias=True)
            for assignment in allocation.assignments or ()
            if assignment.ordinal == ordinal
            for queue in assignment.queues
        ]
    return own


def room_prefix_of(group: ConsumerGroup, ordinal: int) -> str:
    """What a client id begins with, so that it tells its member's room. Empty where rooms play no part."""
    allocation = group.spec.allocation
    if allocation.strategy is not StrategyName.MACHINE_ROOM_NEARBY or not allocation.member_rooms:
        return ""
    room = allocation.member_rooms[ordinal % len(allocation.member_rooms)]
    return room + (allocation.separator or DEFAULT_SEPARATOR)


def client_id_of(group: ConsumerGroup, ordinal: int, pod_name: str, uid: str) -> str:
    """The client id of a pod's worker; with several processes, what their ids begin with."""
    own = choose_client_id(None, {POD_NAME_VARIABLE: pod_name, POD_UID_VARIABLE: uid})
    return room_prefix_of(group, ordinal) + own


def client_ids_of(group: ConsumerGroup, ordinal: int, pod_name: str, uid: str) -> tuple[str, ...]:
    """The client ids of all members in a pod, as its worker makes them."""
    client_id = client_id_of(group, ordinal, pod_name, uid)
    processes = group.spec.worker.processes if group.spec.worker is not None else 1
    if processes == 1:
        return (client_id,)
    return tuple(process_client_id(client_id, process) for process in range(processes))
