"""How commands reach the Kubernetes API: the one place in `cli/` that knows the client, kubeconfig and HTTP codes.

Objects come as plain dictionaries, as kubectl shows them: a command reads a handful of fields, and an object written
by a newer operator must not stop it. What goes wrong is a click error with a sentence.

Inside a pod without a kubeconfig, the pod's service account is used, as kubectl does.
"""

from __future__ import annotations

import functools
import os
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from rocketfleet.api.names import API_VERSION, GROUP_LABEL, PLURAL
from rocketfleet.cli.access.connection import local_instead

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from rocketfleet.controller.kube.api import KubeApi

F = TypeVar("F", bound="Callable[..., Any]")

REQUEST_SECONDS: Final = 15.0
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MISSING_EXTRA: Final = "this command needs the packages of the operator: in a checkout, pip install '.[operator]'"

Object = dict[str, Any]


class Missing(click.ClickException):
    """The object is not there."""


@dataclass(frozen=True)
class KubeOptions:
    """What the options say about the cluster, before anything is read."""

    namespace: str | None
    context: str | None
    kubeconfig: Path | None

    @property
    def given(self) -> bool:
        """Whether any of them was."""
        return (self.namespace, self.context, self.kubeconfig) != (None, None, None)


def kube_options(command: F) -> F:
    """Give a command kubectl's options; it gets them as `kube`."""

    @functools.wraps(command)
    def with_kube(*args: Any, **options: Any) -> Any:
        fields = {name: options.pop(name) for name in KubeOptions.__dataclass_fields__}
        if ":" in (fields["namespace"] or ""):
            raise click.UsageError(
                f"-n is the namespace, and {fields['namespace']} is not one: a name server is given with --name-server"
            )
        return command(*args, kube=KubeOptions(**fields), **options)

    decorated: Any = with_kube
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    result: F = decorated
    return result


_OPTIONS = (
    click.option("--namespace", "-n", metavar="NAME", help="Namespace. [default: that of the context]"),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig. [default: the current one]"),
    click.option(
        "--kubeconfig",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="[default: KUBECONFIG, ~/.kube/config, or the pod's service account]",
    ),
)


class KubeAccess:
    """One cluster and one namespace of it."""

    def __init__(self, api: KubeApi, client: Any, namespace: str, *, in_cluster: bool) -> None:
        self._api = api
        self._client = client
        self.namespace = namespace
        self.in_cluster = in_cluster

    # -- ConsumerGroups -----------------------------------------------------------------------------------------------

    async def groups(self, *, everywhere: bool = False) -> list[Object]:
        """All ConsumerGroups of the namespace, or of all namespaces."""
        return await self._list(_path(API_VERSION, PLURAL, None if everywhere else self.namespace))

    async def group(self, name: str) -> Object:
        """One ConsumerGroup."""
        try:
            return await self._get(self._group_path(name))
        except Missing as error:
            raise Missing(
                f"there is no ConsumerGroup {name} in namespace {self.namespace}: "
                f"`kubectl get consumergroups -n {self.namespace}` lists those there are ({error.message})"
            ) from error

    async def annotate_group(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Set annotations; None takes one away."""
        await self._annotate(self._group_path(name), annotations)

    async def change_group(self, name: str, change: Mapping[str, Any]) -> None:
        """Change a ConsumerGroup by a merge patch. What the API server refuses is said in its words."""
        with self._sentences():
            await self._api.merge(self._group_path(name), change)

    def _group_path(self, name: str) -> str:
        return _path(API_VERSION, PLURAL, self.namespace, name)

    # -- pods and secrets ---------------------------------------------------------------------------------------------

    async def pods(self, group: str) -> list[Object]:
        """The pods of a ConsumerGroup."""
        return await self._list(_path("v1", "pods", self.namespace), labelSelector=f"{GROUP_LABEL}={group}")

    async def pod(self, name: str) -> Object:
        try:
            return await self._get(_path("v1", "pods", self.namespace, name))
        except Missing as error:
            raise Missing(
                f"there is no pod {name} in namespace {self.namespace}: `rocketfleet members GROUP` lists the "
                "pods of a group"
            ) from error

    async def annotate_pod(self, pod: Object, annotations: Mapping[str, str]) -> None:
        """Annotate this very pod: one that took its name meanwhile is left alone, and Missing raised."""
        path = _path("v1", "pods", self.namespace, pod["metadata"]["name"])
        await self._annotate(path, annotations, uid=pod["metadata"].get("uid"))

    async def secret(self, name: str) -> Object:
        return await self._get(_path("v1", "secrets", self.namespace, name))

    # -- calls --------------------------------------------------------------------------------------------------------

    async def time(self) -> float:
        """The time by the API server's clock, to the second; by ours, if it does not say.

        The operator reckons from the times that we write. By the clock of a laptop that is minutes late, a drain would
        be out of time before it began.
        """
        import aiohttp

        try:
            method, url, headers, _, _ = await self._client.param_serialize(
                "GET", "/version", query_params=[], header_params={}, auth_settings=["BearerToken"]
            )
            response = await self._client.call_api(method, url, headers, _request_timeout=REQUEST_SECONDS)
            await response.read()
            return parsedate_to_datetime(response.headers["Date"]).timestamp()
        except (aiohttp.ClientError, OSError, TimeoutError, KeyError, ValueError, TypeError):
            return time.time()

    async def _annotate(self, path: str, annotations: Mapping[str, str | None], uid: str | None = None) -> None:
        metadata: Object = {"annotations": dict(annotations)}
        if uid is not None:
            metadata["uid"] = uid  # the API server refuses the patch with a conflict if it is another
        with self._sentences():
            await self._api.merge(path, {"metadata": metadata})

    async def _get(self, path: str) -> Object:
        with self._sentences():
            return await self._api.get(path, REQUEST_SECONDS)

    async def _list(self, path: str, **query: str) -> list[Object]:
        with self._sentences():
            return (await self._api.list_all(path, **query))[0]

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """What the API refuses, in words; Missing is what a caller may want to say in its own."""
        from rocketfleet.controller.kube.api import KubeError

        try:
            yield
        except KubeError as error:
            if error.conflict:
                raise Missing(f"it changed meanwhile: {error}") from error
            if error.not_found and error.reason != "NotFound":
                # Not an object that is missing, but the path to it.
                raise click.ClickException(
                    "the cluster knows no ConsumerGroups: install Rocketfleet there, or choose another --context"
                ) from error
            if error.not_found:
                raise Missing(str(error)) from error
            advice = ": log in, then try again" if error.status == 401 else ""
            raise click.ClickException(f"{error}{advice}") from error


@asynccontextmanager
async def open_cluster(options: KubeOptions) -> AsyncIterator[KubeAccess]:
    """Connect as kubectl would."""
    try:
        from kubernetes.aio.client import ApiClient, Configuration

        from rocketfleet.controller.kube.api import KubeApi
    except ModuleNotFoundError as error:
        raise click.ClickException(MISSING_EXTRA) from error

    configuration = Configuration()
    in_cluster, namespace = await _configure(configuration, options)
    client = ApiClient(configuration)
    api = KubeApi(client)
    try:
        yield KubeAccess(api, client, options.namespace or namespace or "default", in_cluster=in_cluster)
    finally:
        await api.close()


def _path(api: str, plural: str, namespace: str | None, name: str = "") -> str:
    from rocketfleet.controller.kube.api import path_of

    return path_of(api, plural, namespace, name)


def _no_cluster(why: str) -> click.ClickException:
    return click.ClickException(
        f"cannot reach a Kubernetes cluster: {why}. Give --kubeconfig or --context; or, for what needs no cluster, "
        f"-f with a manifest, or --name-server with the group's name{local_instead(())}"
    )


async def _configure(configuration: Any, options: KubeOptions) -> tuple[bool, str | None]:
    """Fill the client's settings in; whether we are in a pod, and the namespace that goes without saying."""
    import yaml
    from kubernetes.aio import config as kube_config

    config: Any = kube_config
    given = options.kubeconfig or os.environ.get("KUBECONFIG")
    default = Path.home() / ".kube" / "config"
    missing = not given and not default.exists()
    try:
        if missing and options.context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
            config.load_incluster_config(client_configuration=configuration)
            return True, _read(SERVICE_ACCOUNT / "namespace")
        if missing:  # the library would say so in words of its own, and log a line beside them
            raise _no_cluster(f"there is no {default}, and KUBECONFIG is not set")
        loader = await config.load_kube_config(
            config_file=str(given or default), context=options.context, client_configuration=configuration,
            persist_config=False,
        )  # fmt: skip
    except (config.ConfigException, yaml.YAMLError, OSError) as error:
        raise _no_cluster(str(error)) from error
    context = loader.current_context or {}
    return False, (context.get("context") or {}).get("namespace")


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8").strip() or None
    except OSError:
        return None
