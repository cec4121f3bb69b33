"""`rocketfleet run` without its screen: what its end waits for."""

import asyncio
from pathlib import Path

import pytest
from tests.support.waiting import until

from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.controller.local.command import LOCAL_DEFAULTS
from rocketfleet.controller.local.manifests import DesiredObjects
from rocketfleet.controller.local.run import LocalRun
from rocketfleet.controller.resources.revision import revision_of

KEY = GroupKey("default", "orders")
GROUP = ConsumerGroup.model_validate(
    {
        "metadata": {"name": "orders"},
        "spec": {
            "cluster": {"nameServers": ["127.0.0.1:9876"]},
            "subscriptions": [{"topic": "orders"}],
            "engine": "Container",
            "template": {"spec": {"containers": [{"name": "consumer", "command": ["/bin/sleep", "60"]}]}},
        },
    }
)


async def test_a_member_that_is_started_while_the_run_ends_is_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def reconcile(group: ConsumerGroup) -> None:
        if group.spec.suspend:
            for seen in await local.backend.look(group):
                await local.backend.delete_pod(group, seen.pod, force=True)
            return
        began.set()
        await go_on.wait()  # a broker takes its time
        await local.backend.create_pod(group, 0, revision_of(group, LOCAL_DEFAULTS))

    async with LocalRun(tmp_path) as local:
        monkeypatch.setattr(local.reconciler, "reconcile", reconcile)
        local.apply(DesiredObjects({KEY: (GROUP, tmp_path)}))
        async with asyncio.timeout(10):
            await began.wait()
            stopping = asyncio.create_task(local.stop())
            await asyncio.sleep(0)
            assert not list(local.backend.members)
            assert not stopping.done()
            go_on.set()
            await until(lambda: bool(list(local.backend.members)) or stopping.done())
            await stopping
        assert not list(local.backend.members)
