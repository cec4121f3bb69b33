"""Actions → the backend, the brokers and the workers.

Everything is done at once and within bounds, and one thing that fails keeps no other from being done: it is in the next
plan again. Pods are created in batches (slow_start.py), and the first that is refused ends that, unless it is for its
name, which is no other pod's. Only the end has an order: the finalizer goes last, and only if nothing failed before it.

What may take as long as somebody's handlers (a drain, a round of rebalancing) runs in a task of its own, one for each
pod, that outlives the pass. Its result goes into the group's state, and the group is woken.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.status import LastDrain
from rocketfleet.base.counting import counted
from rocketfleet.base.timestamps import timestamp
from rocketfleet.client.errors import RocketMQError
from rocketfleet.control.budget import Margin
from rocketfleet.control.http_call import CallFailed
from rocketfleet.controller.planning import actions as act
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.controller.planning.broker_trouble import BrokerTrouble, hindrance_of
from rocketfleet.controller.planning.deletion import gave_up, waits_because
from rocketfleet.controller.planning.drain import outcome_of, read_back, unsafe_offsets
from rocketfleet.controller.planning.snapshot import DrainMark, Pod
from rocketfleet.controller.reconciling.backend import Backend, BackendError, NameTaken, ObjectChanged
from rocketfleet.controller.reconciling.group_state import Applied, Asking
from rocketfleet.controller.reconciling.observe import Observation, stable
from rocketfleet.controller.reconciling.slow_start import batches
from rocketfleet.controller.reconciling.worker_calls import WorkerCalls
from rocketfleet.controller.rocketmq.brokers import GroupAccess
from rocketfleet.controller.rocketmq.group_removal import Leftovers, removal

_log = logging.getLogger(__name__)
ACTION_SECONDS = 15.0
REMOVAL_SECONDS = 12.0  # of them, for the group at its brokers
PREPARE_SECONDS = 60.0  # hundreds of queues
DRAIN_PAUSE = 0.5  # seconds before a worker that did not take a drain is asked again


class Applier:
    """Does what the planner wants. `wake` is called with a group's key when something of its own accord has ended,
    `drained` with each member that was drained and let go.
    """

    def __init__(
        self,
        backend: Backend,
        workers: WorkerCalls,
        wake: Callable[[GroupKey], None],
        clock: Callable[[], float],
        ticks: Callable[[], float],
        drained: Callable[[LastDrain], None] = lambda done: None,
    ) -> None:
        self._backend = backend
        self._workers = workers
        self._wake = wake
        self._clock = clock  # the time of day
        self._ticks = ticks  # durations
        self._drained = drained

    async def apply(
        self, group: ConsumerGroup, actions: Sequence[act.Action], observation: Observation, applied: Applied
    ) -> list[str]:
        """Do them. Returns what did not work, as sentences."""
        _forget_pods(applied, observation.observed.pods)
        applied.refused = applied.evictions_unlimited = False
        last = [action for action in actions if isinstance(action, act.DeleteGroup | act.RemoveFinalizer)]
        failures = await self._all([action for action in actions if action not in last], group, observation, applied)
        for action in last:
            if failures:
                break
            failures += await self._all([action], group, observation, applied)
        return failures

    @staticmethod
    def tell_again(applied: Applied) -> None:
        """Let whoever was told to rebalance be told once more, when that is next wanted."""
        applied.told = applied.telling = frozenset()

    async def _all(
        self, actions: Sequence[act.Action], group: ConsumerGroup, observation: Observation, applied: Applied
    ) -> list[str]:
        taken: list[str] = []  # failures that concern one pod's name, and nobody else

        async def one(action: act.Action) -> str | None:
            limit = PREPARE_SECONDS if isinstance(action, act.PrepareGroup) else ACTION_SECONDS
            what = type(action).__name__
            try:
                async with asyncio.timeout(limit):
                    await self._one(action, group, observation, applied)
            except TimeoutError as error:
                return f"{what}: {stable(str(error))}" if str(error) else f"{what}: not done within {limit:g} s"
            except NameTaken as error:
                taken.append(f"{what}: {error}")
                return taken[-1]
            except (BackendError, RocketMQError) as error:
                applied.refused = applied.refused or hindrance_of(error) is BrokerTrouble.NO_PERMISSION
                return f"{what}: {stable(str(error))}"
            return None

        async def in_batches(creations: list[act.Action]) -> list[str]:
            for batch in batches(creations):
                failed = [failure for failure in await asyncio.gather(*map(one, batch)) if failure is not None]
                refused = [failure for failure in failed if failure not in taken]
                if refused:
                    left = len(creations) - creations.index(batch[-1]) - 1
                    return [f"{refused[0]}; {left} more were not tried" if left else refused[0]]
            return taken[:1]

        creations = [action for action in actions if isinstance(action, act.CreatePod)]
        others = [action for action in actions if not isinstance(action, act.CreatePod)]
        refused, failures = await asyncio.gather(in_batches([*creations]), asyncio.gather(*map(one, others)))
        return [*(failure for failure in failures if failure is not None), *refused]

    async def _one(self, action: act.Action, group: ConsumerGroup, observation: Observation, applied: Applied) -> None:
        match action:
            case act.AddFinalizer():
                await self._backend.add_finalizer(group)
            case act.RemoveFinalizer():
                await self._backend.remove_finalizer(group)
            case act.EnsureObjects():
                await self._backend.ensure_objects(group)
            case act.LimitEvictions(keep):
                await self._limit_evictions(group, keep, applied)
            case act.PrepareGroup():
                await self._prepare(group, _access(observation), applied)
            case act.CreatePod(ordinal):
                uid = await self._backend.create_pod(group, ordinal, observation.snapshot.revision)
                await self._tell_people(group, EventReason.CREATED, f"{group.metadata.name}-{ordinal} is created", uid)
            case act.MarkDrain(pod, reason):
                await self._backend.mark_drain(group, pod, DrainMark(self._clock(), reason))
                await self._tell_people(group, EventReason.DRAINING, f"{pod.name} drains: {reason}", pod.uid)
            case act.NoteShared(pod, shared):
                await self._backend.note_shared(group, pod, shared)
            case act.RequestDrain(pod):
                self._begin_drain(group, pod, observation, applied)
            case act.DeletePod(pod, force):
                await self._delete(group, pod, observation, applied, force=force)
            case act.TellMembers(pods):
                self._begin_telling(group, pods, observation, applied)
            case act.ReleaseLocks(client_ids):
                await self._release(group, client_ids, _access(observation), applied)
            case act.DeleteGroup():
                await self._delete_group(group, action, _access(observation))
            case act.Emit(event):
                await self._backend.emit(group, event)

    async def _tell_people(self, group: ConsumerGroup, reason: EventReason, message: str, pod_uid: str = "") -> None:
        await self._backend.emit(group, Event(reason, message, pod_uid=pod_uid))

    # -- at the brokers -----------------------------------------------------------------------------------------------

    async def _prepare(self, group: ConsumerGroup, access: GroupAccess, applied: Applied) -> None:
        done = await access.prepare()
        applied.preparations += 1  # whether it is there now is seen in the next look
        if done.changed or done.started:
            where = f" at {', '.join(done.changed)}" if done.changed else ""
            written = f"start offsets of {counted(done.started, 'queue')} were written"
            text = f"group {group.group_name} is prepared{where}; {written}"
            if done.away:
                text += f". {', '.join(done.away)} did not answer: prepared when back"
            await self._tell_people(group, EventReason.PREPARED, text)

    async def _limit_evictions(self, group: ConsumerGroup, keep: int, applied: Applied) -> None:
        """Nobody waits for it, and a group is as ready without: what stands in the way is told, and tried again."""
        try:
            await self._backend.limit_evictions(group, keep)
        except BackendError as error:
            applied.evictions_unlimited = True
            await self._backend.emit(group, Event(EventReason.EVICTIONS, stable(str(error)), warning=True))

    async def _delete_group(self, group: ConsumerGroup, action: act.DeleteGroup, access: GroupAccess) -> None:
        async def confirm(left: Leftovers) -> None:
            await self._backend.confirm_deletion(group)
            loses = action.topics_too and bool(left.retries or left.dead_letters)
            text = removal(group.group_name, left, topics_too=action.topics_too)
            await self._backend.emit(group, Event(EventReason.GROUP_REMOVED, text, warning=loses))

        try:
            async with asyncio.timeout(REMOVAL_SECONDS):
                await access.delete_group(confirm, topics_too=action.topics_too)
        except (BackendError, RocketMQError, TimeoutError) as error:
            why = stable(str(error)) or "the brokers did not answer in time"
            if action.late:
                await self._backend.emit(group, gave_up(group, why))
                return
            if not isinstance(error, ObjectChanged):
                waits = Event(EventReason.DELETION_WAITS, waits_because(group, why), warning=True)
                await self._backend.emit(group, waits)
            raise

    async def _release(
        self, group: ConsumerGroup, client_ids: frozenset[str], access: GroupAccess, applied: Applied
    ) -> None:
        released = await access.release_locks(client_ids)
        applied.released |= released
        if released:
            names = ", ".join(sorted(released))
            await self._tell_people(group, EventReason.LOCKS_RELEASED, f"released the locks that {names} still held")

    # -- pods ---------------------------------------------------------------------------------------------------------

    async def _delete(
        self, group: ConsumerGroup, pod: Pod, observation: Observation, applied: Applied, *, force: bool
    ) -> None:
        await self._backend.delete_pod(group, pod, force)
        now = self._ticks()
        applied.deletions[pod.uid] = now
        outcome = outcome_of(pod)
        if pod.drain is not None and outcome is not None:
            known = outcome.offsets is not None and read_back(observation.snapshot, pod)
            applied.last_drain = LastDrain(
                pod=pod.name,
                verified=known and unsafe_offsets(group, observation.snapshot, pod, outcome) == [],
                seconds=round(now - pod.drain.since, 3),
                queues=len(outcome.offsets or ()),
                unfinished=outcome.unfinished or None,
                completed_at=timestamp(self._clock()),
            )
            applied.drains += 1
            applied.unverified += not applied.last_drain.verified
            self._drained(applied.last_drain)

    def _begin_drain(self, group: ConsumerGroup, pod: Pod, observation: Observation, applied: Applied) -> None:
        control = observation.controls.get(pod.uid)
        if control is None:
            return  # it has ended or has not begun; the next look will tell
        limit = Margin.OPERATOR_CALL.after(group.spec.shutdown.drain_timeout_seconds)
        credential = observation.credentials.get(pod.uid)

        async def drain() -> None:
            try:
                applied.outcomes[pod.uid] = await self._workers.drain(control, credential, limit)
            except CallFailed as error:
                _log.info("%s was asked to drain: %s", pod.name, error)
                await asyncio.sleep(DRAIN_PAUSE)

        self._begin(Asking.DRAIN, frozenset({pod.uid}), drain, group.key, applied)

    def _begin_telling(
        self, group: ConsumerGroup, pods: tuple[Pod, ...], observation: Observation, applied: Applied
    ) -> None:
        """Tell those that have joined, as soon as others than last time have: one that has not can't be told, and is
        nobody's business yet.
        """
        joined = frozenset(pod.uid for pod in pods) & observation.joined
        if not joined or joined == applied.telling:
            return
        applied.telling = joined

        async def tell() -> None:
            calls = (
                self._workers.rebalance(observation.controls[uid], observation.credentials.get(uid))
                for uid in sorted(joined)
            )
            answers = await asyncio.gather(*calls, return_exceptions=True)
            applied.told_at = self._ticks()
            if all(answer is None for answer in answers):
                applied.told = joined
            for answer in answers:
                if isinstance(answer, CallFailed):
                    _log.info("a member of %s was told to rebalance: %s", group.group_name, answer)
                elif isinstance(answer, BaseException):
                    raise answer

        self._begin(Asking.REBALANCE, joined, tell, group.key, applied)

    def _begin(
        self, asking: Asking, pods: frozenset[str], run: Callable[[], Awaitable[None]], key: GroupKey, applied: Applied
    ) -> None:
        """Run it beside the passes, unless it is running already."""
        if (asking, pods) in applied.tasks:
            return
        name = f"{asking.value} {' '.join(sorted(pods))}"

        async def to_its_end() -> None:
            try:
                await run()
            except Exception:
                _log.exception("%s: %s failed", key, name)
            finally:
                applied.tasks.pop((asking, pods), None)
            self._wake(key)

        applied.tasks[asking, pods] = asyncio.get_running_loop().create_task(to_its_end(), name=name)


def _forget_pods(applied: Applied, present: Collection[str]) -> None:
    """Let go of what was noted of pods that are no more. `present` has the uids of the others."""
    for table in (applied.outcomes, applied.deletions):
        for uid in table.keys() - present:
            del table[uid]


def _access(observation: Observation) -> GroupAccess:
    if observation.access is None:
        raise BackendError(observation.trouble or "the brokers cannot be reached")
    return observation.access
