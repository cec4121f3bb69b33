"""The end of a group whose object is deleted and whose pods are gone: what is still waited for, and what is removed.

`deletionPolicy` says what becomes of the group at its brokers. It is removed only when nobody else is in it: whoever
consumes under its name would lose its offsets in the middle of its work. What the deletion waits for is told, and so is
the way out. It does not wait for ever: after the time that a deletion gets, the group stays at the broker and the
object goes.
"""

from collections.abc import Iterator

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.base.counting import counted
from rocketfleet.controller.planning.actions import Action, DeleteGroup, Emit, Event, EventReason, RemoveFinalizer
from rocketfleet.controller.planning.snapshot import Snapshot

MOST_NAMES = 5


def finish(group: ConsumerGroup, snapshot: Snapshot, *, late: bool) -> Iterator[Action]:
    """What to do next. `late`: the deletion has had all its time."""
    if snapshot.taken_by is not None:  # nothing at the brokers is ours, whatever deletionPolicy says
        yield RemoveFinalizer()
        return
    why = waits_for(group, snapshot)
    own = bool(snapshot.departed or snapshot.lingering)
    if why is not None and not late:
        yield Emit(Event(EventReason.DELETION_WAITS, why, warning=not own))
        return
    if group.spec.deletes_group:
        hindrance = _hindrance(snapshot)
        if hindrance is None:
            yield DeleteGroup(topics_too=group.spec.deletes_topics, late=late)
        else:
            yield Emit(gave_up(group, hindrance))
    yield RemoveFinalizer()


def waits_for(group: ConsumerGroup, snapshot: Snapshot) -> str | None:
    """What a deletion waits for, now that no pod is left, as a sentence; None: for nothing."""
    own = snapshot.departed | snapshot.lingering
    if own:
        return (
            f"The deletion waits for members of the group's former pods that the brokers still list, or may still "
            f"list: {_names(own)}. What they have locked is released when they are gone."
        )
    hindrance = _hindrance(snapshot) if group.spec.deletes_group else None
    if hindrance is None:
        return None
    return waits_because(group, hindrance)


def waits_because(group: ConsumerGroup, why: str) -> str:
    """Why the group is not deleted at its brokers yet, and how to end that."""
    namespace, name = group.key
    return (
        f"The deletion waits: {why}. To let the object go now and leave the group at the broker: "
        f'kubectl patch cg {name} -n {namespace} --type merge -p \'{{"spec":{{"deletionPolicy":"Retain"}}}}\''
    )


def gave_up(group: ConsumerGroup, why: str) -> Event:
    """The deletion's time is over: the object goes without the group."""
    text = f"the group {group.group_name} stays at the broker: {why}. Delete it by hand"
    return Event(EventReason.DELETION_GAVE_UP, text, warning=True)


def _hindrance(snapshot: Snapshot) -> str | None:
    """Why the group cannot be deleted at the broker now."""
    if snapshot.reachable is False:
        return "the broker cannot be reached"
    if snapshot.members is None:
        return "it is not known whether anybody still consumes"
    guests = snapshot.members - snapshot.departed - snapshot.lingering
    if guests:
        one, many = "member that is not its pod still consumes", "members that are not its pods still consume"
        return f"{counted(len(guests), one, many)} in the group: {_names(guests)}"
    return None


def _names(names: frozenset[str]) -> str:
    found = sorted(names)
    return ", ".join(found[:MOST_NAMES]) + (f" and {len(found) - MOST_NAMES} more" if len(found) > MOST_NAMES else "")
