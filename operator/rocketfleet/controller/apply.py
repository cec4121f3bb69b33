"""Actions → the backend, the brokers and the workers.

Everything is done at once and within bounds, and one thing that fails keeps no other from being done: it is in the next
plan again. Only the end has an order: the finalizer goes last, and only if nothing failed before it.

What may take as long as somebody's handlers (a drain, a round of rebalancing) runs in a task of its own, one for each
pod, that outlives the pass. Its result goes into the memory, and the group is woken.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.status import LastDrain
from rocketfleet.client.errors import RocketMQError
from rocketfleet.controller.actions import (
    Action,
    AddFinalizer,
    CreatePod,
    DeleteGroup,
    DeletePod,
    Emit,
    EnsureObjects,
    Event,
    LimitEvictions,
    MarkDrain,
    PrepareGroup,
    Reason,
    ReleaseLocks,
    RemoveFinalizer,
    RequestDrain,
    TellMembers,
)
from rocketfleet.controller.backend import Backend, BackendError
from rocketfleet.controller.brokers import GroupAccess
from rocketfleet.controller.drain import outcome_of, unsafe_offsets
from rocketfleet.controller.group_memory import Memory
from rocketfleet.controller.group_preparation import preparation_of
from rocketfleet.controller.moments import timestamp
from rocketfleet.controller.observe import Observation
from rocketfleet.controller.snapshot import DrainMark, Pod
from rocketfleet.controller.worker_calls import DRAIN_MARGIN, WorkerCalls
from rocketfleet.worker.http_call import CallFailed

_log = logging.getLogger(__name__)
ACTION_SECONDS = 15.0
PREPARE_SECONDS = 60.0  # hundreds of queues
DRAIN_PAUSE = 0.5  # seconds before a worker that did not take a drain is asked again

Key = tuple[str, str]


class Applier:
    """Does what the planner wants. `wake` is called with a group's key when something of its own accord has ended."""

    def __init__(
        self, backend: Backend, workers: WorkerCalls, wake: Callable[[Key], None], clock: Callable[[], float]
    ) -> None:
        self._backend = backend
        self._workers = workers
        self._wake = wake
        self._clock = clock

    async def apply(
        self, group: ConsumerGroup, actions: Sequence[Action], observation: Observation, memory: Memory
    ) -> list[str]:
        """Do them. Returns what did not work, as sentences."""
        last = [action for action in actions if isinstance(action, DeleteGroup | RemoveFinalizer)]
        failures = await self._all([action for action in actions if action not in last], group, observation, memory)
        for action in last:
            if failures:
                break
            failures += await self._all([action], group, observation, memory)
        return failures

    async def _all(
        self, actions: Sequence[Action], group: ConsumerGroup, observation: Observation, memory: Memory
    ) -> list[str]:
        async def one(action: Action) -> str | None:
            limit = PREPARE_SECONDS if isinstance(action, PrepareGroup) else ACTION_SECONDS
            what = type(action).__name__
            try:
                async with asyncio.timeout(limit):
                    await self._one(action, group, observation, memory)
            except TimeoutError as error:
                return f"{what}: {error}" if str(error) else f"{what}: not done within {limit:g} s"
            except (BackendError, RocketMQError) as error:
                return f"{what}: {error}"
            return None

        return [failure for failure in await asyncio.gather(*map(one, actions)) if failure is not None]

    async def _one(self, action: Action, group: ConsumerGroup, observation: Observation, memory: Memory) -> None:
        match action:
            case AddFinalizer():
                await self._backend.add_finalizer(group)
            case RemoveFinalizer():
                await self._backend.remove_finalizer(group)
            case EnsureObjects():
                await self._backend.ensure_objects(group)
            case LimitEvictions(keep):
                await self._backend.limit_evictions(group, keep)
            case PrepareGroup():
                await self._prepare(group, _access(observation), memory)
            case CreatePod(ordinal):
                await self._backend.create_pod(group, ordinal, observation.snapshot.revision)
                await self._tell_people(group, Reason.CREATED, f"{group.metadata.name}-{ordinal} is created")
            case MarkDrain(pod, reason):
                await self._backend.mark_drain(group, pod, DrainMark(self._clock(), reason))
                await self._tell_people(group, Reason.DRAINING, f"{pod.name} drains: {reason}")
            case RequestDrain(pod):
                self._begin_drain(group, pod, observation, memory)
            case DeletePod(pod, force):
                await self._delete(group, pod, observation, memory, force=force)
            case TellMembers(pods):
                self._begin_telling(group, pods, observation, memory)
            case ReleaseLocks(client_ids):
                await self._release(group, client_ids, _access(observation), memory)
            case DeleteGroup():
                await _access(observation).delete_group()
            case Emit(event):
                await self._backend.emit(group, event)

    async def _tell_people(self, group: ConsumerGroup, reason: Reason, message: str) -> None:
        await self._backend.emit(group, Event(reason, message))

    # -- at the brokers -----------------------------------------------------------------------------------------------

    async def _prepare(self, group: ConsumerGroup, access: GroupAccess, memory: Memory) -> None:
        done = await access.prepare()
        memory.prepared = preparation_of(group)
        if done.changed or done.started:
            where = f" at {', '.join(done.changed)}" if done.changed else ""
            await self._tell_people(
                group,
                Reason.PREPARED,
                f"group {group.group_name} is prepared{where}; start offsets of {done.started} queues were written",
            )

    async def _release(
        self, group: ConsumerGroup, client_ids: frozenset[str], access: GroupAccess, memory: Memory
    ) -> None:
        released = await access.release_locks(client_ids)
        memory.gone -= released
        memory.released |= released
        if released:
            names = ", ".join(sorted(released))
            await self._tell_people(group, Reason.LOCKS_RELEASED, f"what {names} still held is free again")

    # -- pods ---------------------------------------------------------------------------------------------------------

    async def _delete(
        self, group: ConsumerGroup, pod: Pod, observation: Observation, memory: Memory, *, force: bool
    ) -> None:
        await self._backend.delete_pod(group, pod, force)
        now = self._clock()
        memory.deletions[pod.uid] = now
        outcome = outcome_of(pod)
        if pod.drain is not None and outcome is not None:
            read_back = outcome.offsets is not None
            memory.last_drain = LastDrain(
                pod=pod.name,
                verified=read_back and unsafe_offsets(group, outcome, observation.snapshot.committed) == [],
                seconds=round(now - pod.drain.since, 3),
                queues=len(outcome.offsets or ()),
                completed_at=timestamp(now),
            )
            memory.counts.drains += 1
            memory.counts.unverified += not memory.last_drain.verified

    def _begin_drain(self, group: ConsumerGroup, pod: Pod, observation: Observation, memory: Memory) -> None:
        control = observation.controls.get(pod.uid)
        if control is None:
            return  # it has ended or has not begun; the next look will tell
        limit = group.spec.shutdown.drain_timeout_seconds + DRAIN_MARGIN

        async def drain() -> None:
            try:
                memory.outcomes[pod.uid] = await self._workers.drain(control, observation.token, limit)
            except CallFailed as error:
                _log.info("%s was asked to drain: %s", pod.name, error)
                await asyncio.sleep(DRAIN_PAUSE)

        self._begin(f"drain {pod.uid}", drain, group.key, memory)

    def _begin_telling(
        self, group: ConsumerGroup, pods: tuple[Pod, ...], observation: Observation, memory: Memory
    ) -> None:
        """Tell those that have joined, as soon as others than last time have: one that has not can't be told, and is
        nobody's business yet.
        """
        joined = frozenset(pod.uid for pod in pods) & observation.joined
        if not joined or joined == memory.telling:
            return
        memory.telling = joined

        async def tell() -> None:
            calls = (self._workers.rebalance(observation.controls[uid], observation.token) for uid in sorted(joined))
            answers = await asyncio.gather(*calls, return_exceptions=True)
            memory.told_at = self._clock()
            if all(answer is None for answer in answers):
                memory.told = joined
            for answer in answers:
                if isinstance(answer, CallFailed):
                    _log.info("a member of %s was told to rebalance: %s", group.group_name, answer)
                elif isinstance(answer, BaseException):
                    raise answer

        self._begin(f"tell {' '.join(sorted(joined))}", tell, group.key, memory)

    def _begin(self, name: str, run: Callable[[], Awaitable[None]], key: Key, memory: Memory) -> None:
        """Run it beside the passes, unless it is running already."""
        if name in memory.tasks:
            return

        async def to_its_end() -> None:
            try:
                await run()
            except Exception:
                _log.exception("%s: %s failed", key, name)
            finally:
                memory.tasks.pop(name, None)
            self._wake(key)

        memory.tasks[name] = asyncio.get_running_loop().create_task(to_its_end(), name=name)


def _access(observation: Observation) -> GroupAccess:
    if observation.access is None:
        raise BackendError(observation.trouble or "the brokers cannot be reached")
    return observation.access
