"""Processes of this machine as pods: the backend of `rocketfleet run`.

It does what the API server and the kubelet do in a cluster: keeps objects and pods, starts processes, asks whether they
are ready, starts again what failed (after a pause that grows), ends what is deleted and kills what does not end in its
grace period. A task tends to all of this; `look` only reports.

Processes outlive us. A later run on the same state directory finds them by their id and the moment they began, and goes
on with them, drains included; it never touches a process that it cannot be sure of.
"""

import asyncio
import contextlib
import logging
import secrets
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.spec import CodeUpdate
from rocketfleet.client.config import ClientConfig, new_client_id
from rocketfleet.controller.local.command import LOCAL_DEFAULTS, MemberCommand, MemberFiles, command_of
from rocketfleet.controller.local.files import StateDirectory, write_json, write_private
from rocketfleet.controller.local.member import LocalMember
from rocketfleet.controller.local.objects import LocalObjects
from rocketfleet.controller.local.secrets import LocalSecrets
from rocketfleet.controller.planning.actions import Event
from rocketfleet.controller.planning.claims import Claim, claim_of_group
from rocketfleet.controller.planning.snapshot import DrainMark, Evictions, NodeState, Pod, PodPhase
from rocketfleet.controller.reconciling.backend import BackendError, ObjectChanged, PodSighting
from rocketfleet.controller.reconciling.worker_calls import WorkerCalls
from rocketfleet.controller.resources.code import Code, seen_revision, with_code
from rocketfleet.controller.resources.pod import grace_of, pod_name
from rocketfleet.controller.resources.revision import revision_of
from rocketfleet.controller.resources.shared_settings import shared_settings_of
from rocketfleet.controller.resources.worker_settings import settings_of

if TYPE_CHECKING:
    from rocketfleet.control.messages import DrainOutcome

_log = logging.getLogger(__name__)
TEND_SECONDS = 0.1
PROBE_SECONDS = 0.2  # between two questions to a process that is not ready
READY_PROBE_SECONDS = 2.0  # and to one that is
SAME_EVENT_SECONDS = 300.0
HURRY_SECONDS = 0.5  # between two signals to a process that is to hurry: one would not be told from the other


class LocalBackend:
    """Use as `async with`. `woken` is called with the key of a group of which something has changed."""

    def __init__(
        self,
        state: Path,
        *,
        woken: Callable[[GroupKey], None] = lambda key: None,
        tell: Callable[[ConsumerGroup, Event], None] = lambda group, event: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._state = StateDirectory(state)
        self.woken = woken
        self.tell = tell
        self._clock = clock
        self.objects = LocalObjects(self._state, self._wake)
        self.secrets = LocalSecrets()
        self._members: dict[GroupKey, dict[int, LocalMember]] = {}
        self._workers = WorkerCalls()
        self._client_id = new_client_id("rocketfleet-run")
        self._told: dict[tuple[GroupKey, Event], float] = {}
        self._tending: asyncio.Task[None] | None = None
        self._probing: set[asyncio.Task[None]] = set()
        self.ended: list[DrainOutcome | None] = []  # what members of ours said at their end; None: nothing

    # -- life ---------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._state.claim()
        self.objects.load()
        for key, files in self._state.groups():
            for pod_files in files.pods():
                member = LocalMember.load(pod_files)
                if member is not None:
                    self._members.setdefault(key, {})[member.ordinal] = member
        self._tending = asyncio.get_running_loop().create_task(self._tend_for_ever(), name="tend processes")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of everything; processes that run go on running."""
        if self._tending is not None:
            self._tending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._tending
        for task in list(self._probing):
            task.cancel()
        await asyncio.gather(*self._probing, return_exceptions=True)
        self._state.release()

    @property
    def members(self) -> Iterator[LocalMember]:
        for table in list(self._members.values()):
            yield from list(table.values())

    @property
    def state(self) -> StateDirectory:
        return self._state

    def hurry(self) -> None:
        """Have processes that drain wait for their handlers no longer."""
        for member in self.members:
            if member.drain is not None or member.deleting is not None:
                member.hurried = True  # it takes two signals, and how many it has had is not known: they follow

    # -- what the controller asks for ---------------------------------------------------------------------------------

    async def look(self, group: ConsumerGroup) -> tuple[PodSighting, ...]:
        return tuple(member.seen() for _, member in sorted(self._members.get(group.key, {}).items()))

    async def objects_ready(self, group: ConsumerGroup) -> bool:
        return self._state.group(group.key).token.exists()

    async def ensure_objects(self, group: ConsumerGroup) -> None:
        file = self._state.group(group.key).token
        if not file.exists():
            write_private(file, secrets.token_urlsafe(32).encode())

    async def evictions_kept(self, group: ConsumerGroup) -> Evictions:
        return Evictions.NONE  # nobody evicts processes

    async def limit_evictions(self, group: ConsumerGroup, keep: int) -> None: ...

    async def code(self, group: ConsumerGroup) -> Code:
        return self.secrets.code(group)

    async def connection(self, group: ConsumerGroup) -> ClientConfig:
        return self.secrets.connection(group, self._state.group(group.key), self._client_id)

    async def control_token(self, group: ConsumerGroup) -> str | None:
        try:
            return self._state.group(group.key).token.read_text().strip()
        except OSError as error:
            raise BackendError(f"the control ports' token cannot be read: {error.strerror}") from error

    async def create_pod(self, group: ConsumerGroup, ordinal: int, revision: str) -> str:
        table = self._members.setdefault(group.key, {})
        if ordinal in table:
            return table[ordinal].uid
        now = self._clock()
        files = self._state.group(group.key).pod(ordinal)
        member = LocalMember(
            name=pod_name(group, ordinal),
            ordinal=ordinal,
            uid=str(uuid.uuid4()),
            revision=revision,
            engine=group.spec.engine,
            created=now,
            grace=grace_of(group),
            files=files,
            shared=shared_settings_of(group),
        )
        command, directory = self._command(group, member)
        files.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_json(files.settings, settings_of(group, ordinal))
        member.save()
        table[ordinal] = member
        self._start(member, command, directory, now)
        self.woken(group.key)
        return member.uid

    async def mark_drain(self, group: ConsumerGroup, pod: Pod, mark: DrainMark) -> None:
        member = self._member(group.key, pod)
        if member is not None and member.drain is None:
            member.drain = mark
            member.save()
            self.woken(group.key)

    async def note_shared(self, group: ConsumerGroup, pod: Pod, shared: Mapping[str, str]) -> None:
        member = self._member(group.key, pod)
        if member is not None:
            member.shared = dict(shared)
            member.save()

    async def delete_pod(self, group: ConsumerGroup, pod: Pod, force: bool) -> None:
        member = self._member(group.key, pod)
        if member is None:
            return
        if member.deleting is None:
            member.deleting = self._clock() + member.grace
            member.save()
        if force:
            member.kill()
        else:
            member.signalled = self._clock()
            member.terminate()
        if not member.running:
            self._remove(group.key, member)

    async def nodes(self, names: Collection[str]) -> Mapping[str, NodeState]:
        return {}  # a process here is dead or alive, and that is known

    async def claims(self, group: ConsumerGroup) -> tuple[Claim, ...]:
        found = [held.group for key in self.objects.keys if (held := self.objects.get(key)) is not None]
        return tuple(claim_of_group(each) for each in found if each.group_name == group.group_name)

    async def add_finalizer(self, group: ConsumerGroup) -> None:
        self.objects.add_finalizer(group.key)

    async def remove_finalizer(self, group: ConsumerGroup) -> None:
        if self._members.get(group.key):
            raise BackendError("processes of it are still there")
        self.objects.remove_finalizer(group.key)

    async def confirm_deletion(self, group: ConsumerGroup) -> None:
        held = self.objects.get(group.key)
        if held is None or held.group.metadata.uid != group.metadata.uid:
            raise ObjectChanged(f"{group.metadata.name} is gone already: the group is left alone")

    async def write_status(self, group: ConsumerGroup, status: Mapping[str, Any]) -> None:
        self.objects.write_status(group.key, status)

    async def emit(self, group: ConsumerGroup, event: Event) -> None:
        now = self._clock()
        self._told = {told: at for told, at in self._told.items() if now - at < SAME_EVENT_SECONDS}
        if (group.key, event) not in self._told:
            self._told[group.key, event] = now
            self.tell(group, event)

    def _wake(self, key: GroupKey) -> None:
        self.woken(key)  # whoever that is by now

    # -- tending ------------------------------------------------------------------------------------------------------

    async def _tend_for_ever(self) -> None:
        while True:
            for key in list(self._members):
                for member in list(self._members.get(key, {}).values()):
                    try:
                        self._tend(key, member)
                    except Exception:
                        _log.exception("%s could not be tended to", member.name)
            await asyncio.sleep(TEND_SECONDS)

    def _tend(self, key: GroupKey, member: LocalMember) -> None:
        """Do for one pod what is due now."""
        now = self._clock()
        if member.running:
            if member.deleting is not None and now > member.deleting:
                member.kill()
            elif member.hurried and now - member.signalled >= HURRY_SECONDS:
                member.signalled = now
                member.terminate()
            self._probe(key, member, now)
            return
        if member.deleting is not None:
            self._remove(key, member)
        elif member.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED):
            return
        elif member.trouble is None:
            member.note_end(now)
            self.woken(key)
        elif member.restart_at is not None and now >= member.restart_at:
            self._start_again(key, member, now)

    def _start_again(self, key: GroupKey, member: LocalMember, now: float) -> None:
        held = self.objects.get(key)
        if held is None or not self._is_current(held.group, member):
            member.phase, member.restart_at = PodPhase.FAILED, None  # what it was made from is no more
            self.woken(key)
            return
        try:
            command, directory = self._command(held.group, member)
        except BackendError as error:
            member.trouble, member.restart_at = str(error), now + member.restarts.ended(0.0)
            return
        self._start(member, command, directory, now)
        self.woken(key)

    def _is_current(self, group: ConsumerGroup, member: LocalMember) -> bool:
        """Whether what it was made from is still there. A process that is started again loads the code that is there
        now: with other code it has to be another pod.
        """
        wanted = with_code(revision_of(group, LOCAL_DEFAULTS), self.secrets.code(group).digest)
        program = group.spec.program
        rolls = program is None or program.code_update is not CodeUpdate.IGNORE
        return seen_revision(member.revision, wanted, None, rolls=rolls) == wanted

    def _start(self, member: LocalMember, command: MemberCommand, directory: Path, now: float) -> None:
        try:
            member.start(command, directory, now)
        except OSError as error:
            member.phase = PodPhase.RUNNING
            member.trouble = f"{command.argv[0]} cannot be started: {error.strerror or error}"
            member.restart_at = now + member.restarts.ended(0.0)

    def _probe(self, key: GroupKey, member: LocalMember, now: float) -> None:
        """Ask whether it is ready, now and then. Somebody's own consumer is ready when it runs."""
        if now - member.probed < (READY_PROBE_SECONDS if member.ready else PROBE_SECONDS):
            return
        member.probed = now
        if not member.engine.is_ours:
            self._note_ready(key, member, ready=True)
            return
        control = member.control
        if control is None:
            self._note_ready(key, member, ready=False)
            return

        async def ask() -> None:
            self._note_ready(key, member, ready=await self._workers.ready(control))

        task = asyncio.get_running_loop().create_task(ask(), name=f"probe {member.name}")
        self._probing.add(task)
        task.add_done_callback(self._probing.discard)

    def _note_ready(self, key: GroupKey, member: LocalMember, *, ready: bool) -> None:
        if ready != member.ready and (member.running or not ready):
            member.note_ready(ready, self._clock())
            self.woken(key)

    # -- single members -----------------------------------------------------------------------------------------------

    def _command(self, group: ConsumerGroup, member: LocalMember) -> tuple[MemberCommand, Path]:
        held = self.objects.get(group.key)
        base = Path.cwd() if held is None else held.base
        files = self._state.group(group.key)
        self.secrets.mount_credentials(group, files)
        self.secrets.mount_certificates(group, files)
        path = self.secrets.mount_code(group, files)
        program = group.spec.program
        if path is None and program is not None:
            path = base / (program.path or "")
        namespace = group.metadata.namespace
        around = MemberFiles(
            pod=member.files,
            group=files,
            path=path,
            secret=lambda name: self.secrets.secret(namespace, name),
            config_map=lambda name: self.secrets.config_maps.get((namespace, name)),
            inherited=self.secrets.environment,
        )
        return command_of(group, member.ordinal, member.uid, member.revision, around), base

    def _member(self, key: GroupKey, pod: Pod) -> LocalMember | None:
        """The pod with this uid; none if another has its place by now."""
        member = self._members.get(key, {}).get(pod.ordinal)
        return member if member is not None and member.uid == pod.uid else None

    def _remove(self, key: GroupKey, member: LocalMember) -> None:
        table = self._members.get(key, {})
        if table.get(member.ordinal) is member:
            del table[member.ordinal]
            if member.engine.is_ours and member.trouble is None:
                self.ended.append(member.last_words())
            member.remove()
        if not table:
            self._members.pop(key, None)
        self.woken(key)
