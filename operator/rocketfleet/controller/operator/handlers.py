"""kopf at the edge: it watches, and each event goes to the view and wakes a group. Nothing else.

Only `on.event` handlers are used. For those kopf keeps no state on objects: no annotations, no finalizers, and it
writes nothing. Peering (its own election, in which equals all freeze) and its posting of events are off, and so is its
scanning for new resources and namespaces, which would take rights that we have no other use for.

kopf tells an object that it found by listing with an event of no type. It lists once in the beginning, and again
whenever it lost its place in a watch; what vanished meanwhile it does not tell. So after such events the view reads its
own lists.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import kopf
from kubernetes.aio.client import Configuration

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.api.names import GROUP, GROUP_LABEL, PLURAL, VERSION
from rocketfleet.controller.kube.view import KubeView

_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Wakers:
    """What an event leads to: a group to look at, or lists to be read again."""

    wake: Callable[[GroupKey], None]
    relisted: Callable[[], None]


def make_registry(view: KubeView, wakers: Wakers, configuration: Configuration) -> kopf.OperatorRegistry:
    """All of kopf's handlers."""
    registry = kopf.OperatorRegistry()

    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await connection_info(configuration)

    kopf.on.login(registry=registry, id="login")(login)
    for group, version, plural, saw in (
        (GROUP, VERSION, PLURAL, view.saw_group),
        ("", "v1", "pods", view.saw_pod),
        ("policy", "v1", "poddisruptionbudgets", view.saw_budget),
    ):
        kopf.on.event(group, version, plural, registry=registry, id=f"saw-{plural}")(_handler(saw, wakers))
    return registry


def _handler(saw: Callable[[str | None, Mapping[str, Any]], GroupKey | None], wakers: Wakers) -> Any:
    async def handle(event: kopf.RawEvent, **_: Any) -> None:
        key = saw(event["type"], event["object"])
        if key is not None:
            wakers.wake(key)
        if event["type"] is None:
            wakers.relisted()

    return handle


def make_settings() -> kopf.OperatorSettings:
    """kopf's settings: see above for what is off and why."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.watching.label_selectors["v1", "pods"] = GROUP_LABEL
    settings.watching.label_selectors["policy", "v1", "poddisruptionbudgets"] = GROUP_LABEL
    settings.watching.chunk_size = 500
    settings.watching.connect_timeout = 5
    settings.networking.connect_timeout = 5
    settings.networking.request_timeout = 30
    settings.queueing.idle_timeout = 1
    settings.process.ultimate_exiting_timeout = None  # our own stop has its limits
    return settings


async def connection_info(configuration: Configuration) -> kopf.ConnectionInfo:
    """kopf's connection, made from the official client's: one identity for both, token rotation included."""
    token = await configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    if token is not None and token[: len(_BEARER)].lower() == _BEARER:
        token = token[len(_BEARER) :]
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert or None,
        ca_data=configuration.ca_cert_data or None,
        insecure=not configuration.verify_ssl,
        username=configuration.username or None,
        password=configuration.password or None,
        token=token.strip() if token else None,
        certificate_path=configuration.cert_file or None,
        private_key_path=configuration.key_file or None,
        proxy_url=configuration.proxy or None,
    )
