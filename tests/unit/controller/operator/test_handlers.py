"""kopf's part: it watches and tells, and has nothing else to do."""

import re
from pathlib import Path
from typing import Any

import kopf
from kubernetes.aio.client import ApiClient, Configuration

import rocketfleet.controller.kube
from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.controller.kube.api import KubeApi
from rocketfleet.controller.kube.view import KubeView
from rocketfleet.controller.operator.handlers import Wakers, _handler, connection_info, make_registry, make_settings


def test_all_that_kopf_could_do_by_itself_is_off() -> None:
    settings = make_settings()
    assert not settings.posting.enabled
    assert settings.peering.standalone
    assert settings.scanning.disabled
    assert settings.process.ultimate_exiting_timeout is None


def test_nothing_private_of_kopf_is_imported() -> None:
    for path in Path(rocketfleet.controller.kube.__path__[0]).glob("*.py"):
        assert not re.search(r"(from|import) kopf[._]\S*_", path.read_text()), path.name


async def test_there_are_only_handlers_that_keep_no_state() -> None:
    view = KubeView(KubeApi(ApiClient(Configuration(host="http://127.0.0.1:1"))))
    registry = make_registry(view, Wakers(lambda key: None, lambda: None), Configuration())
    assert len(registry._watching.get_all_handlers()) == 3
    for stateful in (registry._changing, registry._spawning, registry._indexing, registry._webhooks):
        assert stateful.get_all_handlers() == []


async def test_an_event_wakes_whom_it_concerns_and_a_listed_object_asks_for_lists() -> None:
    woken: list[GroupKey] = []
    lists: list[str] = []
    news: list[GroupKey | None] = [GroupKey("ns", "orders"), None, None]

    def saw(kind: str | None, raw: Any) -> GroupKey | None:
        return news.pop(0)

    handle = _handler(saw, Wakers(woken.append, lambda: lists.append("again")))
    await handle(event={"type": "MODIFIED", "object": {}}, anything="else")
    assert (woken, lists) == ([("ns", "orders")], [])
    await handle(event={"type": "DELETED", "object": {}})
    await handle(event={"type": None, "object": {}})
    assert (woken, lists) == ([("ns", "orders")], ["again"])


async def test_kopf_connects_as_the_official_client_does() -> None:
    configuration = Configuration(host="https://cluster:6443")
    configuration.ssl_ca_cert = "/ca.crt"
    configuration.api_key["BearerToken"] = "bearer first"
    assert await connection_info(configuration) == kopf.ConnectionInfo(
        server="https://cluster:6443", ca_path="/ca.crt", token="first", insecure=False
    )

    def rotated(of: Configuration) -> None:
        of.api_key["BearerToken"] = "bearer second\n"

    vars(configuration)["refresh_api_key_hook"] = rotated
    assert (await connection_info(configuration)).token == "second"
