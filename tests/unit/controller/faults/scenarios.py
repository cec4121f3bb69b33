"""The life of a group in a few short stories, what a group has come to at the end of one, and a run of one.

A story begins in a cluster where the group is at rest, or not there at all. Each of its steps is something that people
do; the next one comes when nothing happens any more. `Undisturbed` has what becomes of a story when nothing goes wrong:
that is what every run in which something does is compared with.
"""

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.unit.controller.faults.api_server import GROUPS, Object
from tests.unit.controller.faults.operator_process import WATCHED, Faults, Run
from tests.unit.controller.faults.virtual_time import run
from tests.unit.controller.faults.world import BEGINS, World, now
from tests.unit.controller.kube_objects import manifest

from rocketfleet.controller.resources.pod import ENGINE_LABEL, REVISION_LABEL, SETTINGS_ANNOTATION
from rocketfleet.wire.topics import RETRY_PREFIX

Step = Callable[[World], None]
CONTAINER = {"spec": {"containers": [{"name": "consumer", "image": "registry.example/theirs:1"}]}}


def edit(**changes: Any) -> Step:
    return lambda world: world.edit(**changes)


@dataclass(frozen=True)
class Story:
    """`spec` is what the group is like before; None: there is none yet. `pause`: the next step does not wait until
    nothing happens any more, but only for so many seconds. Then it depends on the moment how many pods there are.
    """

    name: str
    spec: Object | None
    steps: tuple[Step, ...]
    pause: float | None = None

    def __str__(self) -> str:
        return self.name


async def tell(story: Story, one: Run, begun: int, begin: Callable[[], None] = lambda: None) -> None:
    """The rest of a story, of which so many steps are done."""
    if begun:
        await wait(story, one, begun)
    for number, step in enumerate(story.steps[begun:], begun + 1):
        step(one.world)
        begin()
        await wait(story, one, number)


async def wait(story: Story, one: Run, begun: int) -> None:
    """Until the next step is due, or nothing happens any more."""
    if story.pause is None or begun == len(story.steps):
        await one.settle()
    else:
        await asyncio.sleep(story.pause)


def _spec(**changes: Any) -> Object:
    return {"shutdown": {"drainTimeoutSeconds": 5}, "consumeFromWhere": "LastOffset", **changes}


def _create(world: World) -> None:
    world.apply(manifest(**_spec()))


def _create_to_delete(world: World) -> None:
    world.apply(manifest(**_spec(deletionPolicy="DeleteAll")))  # then nothing is left, had it begun or not


_ENGINES = (
    edit(engine="Container", worker=None, template=CONTAINER),
    edit(engine="Worker", worker={"handler": "app:handle"}, template=None),
)
STORIES = (
    Story("create", None, (_create,)),
    Story("scale 2 to 4 to 1", _spec(), (edit(replicas=4), edit(replicas=1))),
    Story("roll an image", _spec(), (edit(worker={"image": "registry.example/worker:2"}),)),
    Story(
        "roll an image with an extra pod",
        _spec(update={"surge": 1}),
        (edit(worker={"image": "registry.example/worker:2"}),),
    ),
    Story("recreate for a subscription", _spec(), (edit(subscriptions=[{"topic": "orders", "expression": "paid"}]),)),
    Story("suspend and resume", _spec(), (edit(suspend=True), edit(suspend=False))),
    Story(
        "roll somebody's own consumer",
        _spec(engine="Container", worker=None, template=CONTAINER),
        (edit(consume={"threads": 7}),),
    ),
    Story("scale in and out again at once", _spec(replicas=3), (edit(replicas=1), edit(replicas=3)), pause=0.6),
    Story("suspend while it rolls", _spec(), (edit(consume={"threads": 7}), edit(suspend=True)), pause=1.3),
    Story("delete while it is made", None, (_create_to_delete, World.delete), pause=1.0),
    Story("change engines and back", _spec(), _ENGINES, pause=0.8),
    *(
        Story(f"delete with {policy}", _spec(deletionPolicy=policy), (World.delete,))
        for policy in ("Retain", "DeleteOffsets", "DeleteAll", "Delete")
    ),
)


@functools.cache
def at_rest(name: str) -> tuple[World, float]:
    """The cluster in which a story begins, and the time there."""
    story = next(one for one in STORIES if one.name == name)
    return settled(story.spec)


def settled(spec: Object | None) -> tuple[World, float]:
    """A cluster where a group with such a spec is at rest."""

    async def main() -> tuple[World, float]:
        world = World()
        if spec is None:
            return world, now()
        async with Run(world) as one:
            world.apply({**manifest(), "spec": {k: v for k, v in manifest(**spec)["spec"].items() if v is not None}})
            await one.settle()
        assert not world.wrongs, world.wrongs
        return world, now()

    return run(BEGINS, main)


# -- what it has come to ----------------------------------------------------------------------------------------------


def end_state(world: World) -> Object:
    """All that a run may not change: what is there, not when it was made or how it was called."""
    pods = {}
    for body in world.server.all("pods"):
        metadata, status = body["metadata"], body.get("status") or {}
        ready = next((one["status"] for one in status.get("conditions") or () if one["type"] == "Ready"), None)
        labels = {key: metadata["labels"].get(key) for key in (REVISION_LABEL, ENGINE_LABEL)}
        shown = (status.get("phase"), ready, bool(metadata.get("deletionTimestamp")))
        settings = (metadata.get("annotations") or {}).get(SETTINGS_ANNOTATION)
        pods[metadata["name"]] = (labels, shown, settings, body["spec"]["containers"])
    uids = {uid: one.name for uid, one in world.pods.processes.items()}
    members = {group: sorted(_named(one, uids) for one in them) for group, them in world.mq.members.items() if them}
    owned: dict[str, int] = {}
    for (_, queue), (client_id, _) in world.mq.locks.items():
        if queue.topic.startswith(RETRY_PREFIX):
            continue  # an operator that dies while it writes where a group begins leaves this one, which ends by itself
        owned[_named(client_id, uids)] = owned.get(_named(client_id, uids), 0) + 1
    return {
        "object": _object(world),
        "pods": pods,
        "budgets": {body["metadata"]["name"]: body["spec"] for body in world.server.all("poddisruptionbudgets")},
        "secrets": [body["metadata"]["name"] for body in world.server.all("secrets")],
        "members": members,
        "owned": owned,
        "groups": {f"{broker} {name}": settings for (broker, name), settings in world.mq.groups.items()},
        "retry topics": dict(world.mq.retry_topics),
        "offsets": sorted(f"{group} {queue}" for group, queue in world.mq.offsets),
    }


def _object(world: World) -> Object | None:
    body = world.server.get(GROUPS, "orders")
    if body is None:
        return None
    status = body.get("status") or {}
    conditions = {one["type"]: (one["status"], one["reason"]) for one in status.get("conditions") or ()}
    words = ("observedGeneration", "replicas", "readyReplicas", "updatedReplicas", "desiredReplicas", "revision")
    told = {key: status.get(key) for key in (*words, "readySummary", "state", "queues", "prepared", "groupName")}
    metadata = body["metadata"]
    return {
        "spec": body["spec"],
        "finalizers": metadata.get("finalizers"),
        "deleted": bool(metadata.get("deletionTimestamp")),
        "conditions": conditions,
        **told,
    }


def _named(client_id: str, uids: dict[str, str]) -> str:
    """A member by its pod's name: uids and addresses are others in each run."""
    for uid, name in uids.items():
        if uid in client_id:
            return name
    return "somebody" if "@1#" in client_id else client_id


def differences(one: Object, other: Object, place: str = "") -> list[str]:
    """Where two end states differ."""
    found = []
    for key in sorted({*one, *other}):
        left, right = one.get(key), other.get(key)
        if left == right:
            continue
        if isinstance(left, dict) and isinstance(right, dict):
            found += differences(left, right, f"{place}{key}: ")
        else:
            found.append(f"{place}{key}: {left} / {right}")
    return found


def pods_made(world: World, since: int) -> tuple[int, int]:
    """How many pods were created and how many were removed after this version."""
    kinds = [change.kind for change in world.server.log if change.key[0] == "pods" and change.version > since]
    return kinds.count("ADDED"), kinds.count("DELETED")


# -- a run ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moment:
    """The world right after a write. `steps` of the story had been begun."""

    number: int
    what: str
    steps: int
    world: World
    time: float


@dataclass(frozen=True)
class Read:
    """A read of the API server: the version that it was answered from, and what it was answered."""

    number: int
    what: str
    version: int


@dataclass
class Undisturbed:
    """A story in which nothing goes wrong."""

    story: Story
    began: int = 0  # the version at its beginning
    end: Object = field(default_factory=dict)
    made: tuple[int, int] = (0, 0)
    moments: list[Moment] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    news: list[bool] = field(default_factory=list)  # of each change that the watch told, whether it was news
    writes: int = 0
    wrongs: list[str] = field(default_factory=list)


class _Reading(Faults):
    """Notes the reads."""

    def __init__(self, world: World, notes: Undisturbed) -> None:
        self._world, self._notes = world, notes

    def api(self, asked: Any) -> Any:
        if not asked.writes:
            self._notes.reads.append(Read(len(self._notes.reads), str(asked), self._world.server.version))
        return super().api(asked)


@functools.cache
def undisturbed(name: str) -> Undisturbed:
    story = next(one for one in STORIES if one.name == name)
    rested, time = at_rest(name)
    found = Undisturbed(story)

    async def main() -> None:
        world = rested.fork()
        found.began = world.server.version
        begun = 0

        def wrote(what: str) -> None:
            found.moments.append(Moment(len(found.moments), what, begun, world.fork(), now()))

        async with Run(world, _Reading(world, found)) as one:
            await one.settle()
            world.on_write = wrote

            def begin() -> None:
                nonlocal begun
                begun += 1

            await tell(story, one, 0, begin)
            found.news = one.operator.fresh
        found.end, found.made = end_state(world), pods_made(world, found.began)
        found.writes, found.wrongs = len(world.writes), world.wrongs

    run(time, main)
    assert not found.wrongs, found.wrongs
    return found


@dataclass
class Ending:
    """What became of a run."""

    end: Object
    made: tuple[int, int]
    writes: int
    wrongs: list[str]

    def judged(self, plain: Undisturbed, *, more_writes: int | None) -> list[str]:
        """What is not as it is without faults. `more_writes` None: the way there may be any, only the end counts."""
        found = [*self.wrongs, *differences(plain.end, self.end)]
        if more_writes is None:
            return found
        if self.made != plain.made and plain.story.pause is None:
            found.append(f"{self.made} pods were created and removed, and {plain.made} undisturbed")
        if self.writes > plain.writes + more_writes and plain.story.pause is None:
            found.append(f"{self.writes} writes, and {plain.writes} undisturbed")
        return found


def told(world: World) -> int:
    """How many changes a watch would tell."""
    return sum(change.key[0] in WATCHED for change in world.server.log)
