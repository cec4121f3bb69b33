"""Processes of this machine as pods: started, watched, started again, ended, and found again by the next run."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import until

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.names import FINALIZER
from rocketfleet.controller.local.backend import LocalBackend
from rocketfleet.controller.local.command import LOCAL_DEFAULTS
from rocketfleet.controller.local.files import read_json, write_json
from rocketfleet.controller.planning.actions import Event, EventReason
from rocketfleet.controller.planning.claims import claim_of_group, holder
from rocketfleet.controller.planning.snapshot import DrainMark, Pod, PodPhase
from rocketfleet.controller.reconciling.backend import BackendError
from rocketfleet.controller.resources.code import with_code
from rocketfleet.controller.resources.revision import revision_of
from rocketfleet.controller.resources.shared_settings import shared_settings_of

SLEEP = "trap 'exit 0' TERM; echo here; while true; do sleep 0.05; done"


def shell(script: str, **spec: Any) -> ConsumerGroup:
    """A group whose members are shell scripts."""
    container = {"name": "consumer", "command": ["/bin/sh", "-c", script], "env": spec.pop("env", [])}
    given = {
        "cluster": {"nameServers": ["127.0.0.1:9876"]},
        "subscriptions": [{"topic": "orders"}],
        "engine": "Container",
        "template": {"spec": {"containers": [container]}},
        **spec,
    }
    return ConsumerGroup.model_validate({"metadata": {"name": "orders"}, "spec": given})


class Machine:
    """A backend with one group."""

    def __init__(self, backend: LocalBackend) -> None:
        self.backend = backend

    @property
    def group(self) -> ConsumerGroup:
        held = self.backend.objects.get(GroupKey("default", "orders"))
        assert held is not None
        return held.group

    async def pods(self) -> list[Pod]:
        return [seen.pod for seen in await self.backend.look(self.group)]

    async def pod(self, ordinal: int = 0) -> Pod:
        return next(pod for pod in await self.pods() if pod.ordinal == ordinal)

    async def create(self, ordinal: int = 0, revision: str | None = None) -> Pod:
        await self.backend.create_pod(self.group, ordinal, revision or revision_of(self.group, LOCAL_DEFAULTS))
        return await self.pod(ordinal)

    def pid(self, ordinal: int = 0) -> int:
        member = next(one for one in self.backend.members if one.ordinal == ordinal)
        assert member.process is not None
        return member.process.identity.pid

    async def becomes(self, condition: Callable[[Pod], bool], ordinal: int = 0) -> Pod:
        async with asyncio.timeout(10):
            while not condition(pod := await self.pod(ordinal)):  # noqa: ASYNC110 - it may be anything
                await asyncio.sleep(0.01)
        return pod

    async def gone(self) -> None:
        await until(lambda: not list(self.backend.members))


@asynccontextmanager
async def machine(state: Path, group: ConsumerGroup | None = None) -> AsyncIterator[Machine]:
    async with LocalBackend(state) as backend:
        if group is not None:
            backend.objects.put(group, state)
            backend.objects.add_finalizer(group.key)
        yield Machine(backend)


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path) -> Any:
    yield
    for record in tmp_path.rglob("pod.json"):
        process = (read_json(record) or {}).get("process")
        if process is not None:
            try:
                os.killpg(process["pid"], signal.SIGKILL)
            except ProcessLookupError:
                continue


async def test_a_pod_runs_with_its_identity_and_ends_when_it_is_deleted(tmp_path: Path) -> None:
    script = f"echo I am $POD_NAME of $POD_UID in $1 $ROCKETFLEET_GROUP >{tmp_path}/said; {SLEEP}"
    async with machine(tmp_path / "state", shell(script)) as here:
        pod = await here.create()
        assert pod.phase is PodPhase.RUNNING
        await here.becomes(lambda pod: pod.ready)
        await until(lambda: (tmp_path / "said").exists() and (tmp_path / "said").read_text().endswith("\n"))
        assert (tmp_path / "said").read_text() == f"I am orders-0 of {pod.uid} in orders\n"
        await here.backend.delete_pod(here.group, pod, force=False)
        await here.gone()
        assert not list((tmp_path / "state").rglob("pod.json"))


async def test_creating_and_deleting_twice_is_the_same_as_once(tmp_path: Path) -> None:
    async with machine(tmp_path, shell(SLEEP)) as here:
        first, second = await here.create(), await here.create()
        assert first.uid == second.uid
        for _ in range(2):
            await here.backend.delete_pod(here.group, first, force=False)
        await here.gone()
        third = await here.create()
        await here.backend.delete_pod(here.group, first, force=True)
        assert (await here.pod()).uid == third.uid
        assert (await here.pod()).deleting is None
        await here.backend.delete_pod(here.group, third, force=True)
        await here.gone()


async def test_the_older_of_two_objects_has_the_group_here_too(tmp_path: Path) -> None:
    async with machine(tmp_path, shell(SLEEP, groupName="g")) as here:
        younger = shell(SLEEP, groupName="g")
        younger = younger.model_copy(update={"metadata": younger.metadata.model_copy(update={"name": "another"})})
        here.backend.objects.put(younger, tmp_path)
        here.backend.objects.put(shell(SLEEP, groupName="g", replicas=3), tmp_path)  # an edit changes no age
        held = here.backend.objects.get(GroupKey("default", "another"))
        assert held is not None
        found = holder(claim_of_group(held.group), await here.backend.claims(held.group))
        assert found is not None
        assert str(found) == "default/orders"
        assert holder(claim_of_group(here.group), await here.backend.claims(here.group)) is None


async def test_what_members_have_to_agree_on_is_kept_with_the_pod_and_can_be_noted_later(tmp_path: Path) -> None:
    async with machine(tmp_path, shell(SLEEP)) as here:
        pod = await here.create()
        assert pod.shared == shared_settings_of(here.group)
    record = tmp_path / "groups/default/orders/0/pod.json"
    content = read_json(record) or {}
    del content["shared"]  # as a former version wrote it
    write_json(record, content)
    async with machine(tmp_path) as here:
        assert (await here.pod()).shared is None
        await here.backend.note_shared(here.group, pod, {"consumeMode": "Orderly"})
    async with machine(tmp_path) as here:
        assert (await here.pod()).shared == {"consumeMode": "Orderly"}
        await here.backend.delete_pod(here.group, pod, force=True)
        await here.gone()


async def test_what_fails_is_started_again_and_says_why(tmp_path: Path) -> None:
    script = f"echo tried >>{tmp_path}/tries; echo no luck; exit 3"
    async with machine(tmp_path / "state", shell(script)) as here:
        pod = await here.create()
        failed = await here.becomes(lambda pod: pod.trouble is not None)
        assert failed.trouble == "exit code 3: no luck"
        assert failed.idle
        await until(lambda: (tmp_path / "tries").read_text().count("tried") >= 2)
        assert (await here.pod()).uid == pod.uid
        await here.backend.delete_pod(here.group, pod, force=False)
        await here.gone()


async def test_what_fails_after_its_manifest_has_changed_is_left_to_the_planner(tmp_path: Path) -> None:
    async with machine(tmp_path, shell("exit 1")) as here:
        await here.create(revision="older")
        assert (await here.becomes(lambda pod: pod.ended)).phase is PodPhase.FAILED


async def test_one_that_ends_well_has_succeeded_and_stays_so(tmp_path: Path) -> None:
    async with machine(tmp_path, shell("exit 0")) as here:
        await here.create()
        pod = await here.becomes(lambda pod: pod.ended)
        assert pod.phase is PodPhase.SUCCEEDED


async def test_one_that_does_not_end_in_its_grace_period_is_killed_with_all_it_started(tmp_path: Path) -> None:
    script = (
        f"trap '' TERM; (trap '' TERM; echo $$ >{tmp_path}/began; while true; do sleep 0.05; done) & wait; sleep 60"
    )
    async with machine(tmp_path / "state", shell(script)) as here:
        pod = await here.create()
        await until((tmp_path / "began").exists)
        leader = here.pid()
        next(here.backend.members).grace = 0.2
        await here.backend.delete_pod(here.group, pod, force=False)
        await here.gone()
        await until(lambda: not _group_alive(leader))


async def test_one_that_is_to_hurry_gets_the_two_signals_that_it_takes(tmp_path: Path) -> None:
    script = f"trap 'echo told >>{tmp_path}/told' TERM; echo here >{tmp_path}/here; while true; do sleep 0.02; done"
    async with machine(tmp_path / "state", shell(script)) as here:
        pod = await here.create()
        await until((tmp_path / "here").exists)
        await here.backend.mark_drain(here.group, pod, DrainMark(0.0, "scale-in"))
        here.backend.hurry()
        await until(lambda: (tmp_path / "told").exists() and (tmp_path / "told").read_text().count("told") >= 2)
        await here.backend.delete_pod(here.group, pod, force=True)
        await here.gone()


def _group_alive(leader: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-g", str(leader)], capture_output=True, text=True, check=False)
    return any(not line.startswith("Z") for line in found.stdout.split())


async def test_the_next_run_finds_processes_marks_and_objects_again(tmp_path: Path) -> None:
    async with machine(tmp_path, shell(SLEEP)) as here:
        pod = await here.create()
        await here.create(1)
        await here.backend.mark_drain(here.group, pod, DrainMark(12.5, "scale-in"))
        pids = [here.pid(0), here.pid(1)]
    async with machine(tmp_path) as there:
        assert there.group.metadata.finalizers == [FINALIZER]
        assert [there.pid(0), there.pid(1)] == pids
        found = await there.becomes(lambda pod: pod.ready)
        assert (found.uid, found.drain) == (pod.uid, DrainMark(12.5, "scale-in"))
        for one in await there.pods():
            await there.backend.delete_pod(there.group, one, force=False)
        await there.gone()
        assert not _group_alive(pids[0])


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


async def test_a_strangers_process_is_never_touched(tmp_path: Path, stranger: "subprocess.Popen[bytes]") -> None:
    async with machine(tmp_path, shell(SLEEP)) as here:
        pod = await here.create()
        mine, record = here.pid(), next(here.backend.members).files.record
    content = read_json(record)
    assert content is not None
    # Its number was ours, long ago: ours of just now may have begun in the same hundredth of a second as the stranger.
    content["process"] = {"pid": stranger.pid, "began": f"{content['process']['began'].partition('/')[0]}/1"}
    write_json(record, content)
    async with machine(tmp_path) as there:
        await there.backend.delete_pod(there.group, pod, force=True)
        await there.gone()
    assert stranger.poll() is None
    os.killpg(mine, signal.SIGKILL)


async def test_two_runs_do_not_share_a_directory(tmp_path: Path) -> None:
    async with machine(tmp_path):
        with pytest.raises(BackendError, match="another rocketfleet run"):
            async with machine(tmp_path):
                pass
    async with machine(tmp_path):
        pass


async def test_the_same_event_is_told_once(tmp_path: Path) -> None:
    told: list[Event] = []
    async with machine(tmp_path, shell(SLEEP)) as here:
        here.backend.tell = lambda _, event: told.append(event)
        for message in ("one", "one", "two"):
            await here.backend.emit(here.group, Event(EventReason.CREATED, message))
    assert [event.message for event in told] == ["one", "two"]


async def test_an_object_is_not_let_go_while_a_process_of_it_is_there(tmp_path: Path) -> None:
    async with machine(tmp_path, shell(SLEEP)) as here:
        pod = await here.create()
        here.backend.objects.delete(here.group.key)
        with pytest.raises(BackendError):
            await here.backend.remove_finalizer(here.group)
        await here.backend.delete_pod(here.group, pod, force=True)
        await here.gone()
        await here.backend.remove_finalizer(here.group)
        assert here.backend.objects.keys == frozenset()


async def test_the_token_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    async with machine(tmp_path, shell(SLEEP)) as here:
        assert not await here.backend.objects_ready(here.group)
        await here.backend.ensure_objects(here.group)
        token = await here.backend.control_token(here.group)
        await here.backend.ensure_objects(here.group)
        assert await here.backend.control_token(here.group) == token
        assert await here.backend.objects_ready(here.group)
        token_file = next(path for path in _files(tmp_path) if path.name == "token")
        assert token_file.stat().st_mode & 0o077 == 0


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


async def test_a_process_whose_code_was_edited_is_not_started_again_under_its_old_revision(tmp_path: Path) -> None:
    worker = {"handler": "orders:handle", "codeConfigMap": "code"}
    spec = {"cluster": {"nameServers": ["127.0.0.1:1"]}, "subscriptions": [{"topic": "orders"}], "worker": worker}
    group = ConsumerGroup.model_validate({"metadata": {"name": "orders"}, "spec": spec})
    async with machine(tmp_path / "state", group) as here:
        broken = "raise SystemExit('as it was')"
        here.backend.secrets.config_maps = {("default", "code"): {"orders.py": broken}}
        before = await here.backend.code(here.group)
        await here.backend.ensure_objects(here.group)
        await here.create(revision=with_code(revision_of(here.group, LOCAL_DEFAULTS), before.digest))
        await here.becomes(lambda pod: pod.trouble is not None)
        assert (await here.pod()).phase is PodPhase.RUNNING  # it is started again, and again
        here.backend.secrets.config_maps = {("default", "code"): {"orders.py": f"{broken}  # and now"}}
        assert await here.backend.code(here.group) != before
        await here.becomes(lambda pod: pod.phase is PodPhase.FAILED)


async def test_a_config_map_that_is_missing_is_said_before_a_pod_is_made(tmp_path: Path) -> None:
    worker = {"handler": "orders:handle", "codeConfigMap": "code"}
    spec = {"cluster": {"nameServers": ["127.0.0.1:1"]}, "subscriptions": [{"topic": "orders"}], "worker": worker}
    group = ConsumerGroup.model_validate({"metadata": {"name": "orders"}, "spec": spec})
    async with machine(tmp_path / "state", group) as here:
        missing = (await here.backend.code(here.group)).missing
        assert missing is not None
        assert "put it beside the group" in missing
