"""Secrets, read by name when they are needed, and how a group's RocketMQ is reached with them.

They are not watched: that would take the right to list every Secret there is. What was read is believed for a short
while. Nothing here shows a secret: not in a repr, not in an error, not in a log. Certificates have to be files for the
TLS library; they are in a directory that only we can read, named by their content, and go when we end.
"""

import base64
import binascii
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.spec import Tls
from rocketfleet.client.config import ClientConfig, TlsConfig, new_client_id
from rocketfleet.controller.kube.api import KubeApi, KubeError, path_of
from rocketfleet.controller.reconciling.backend import BackendError
from rocketfleet.wire.acl import Credentials

FRESH = 60.0  # seconds that somebody's Secret is believed
MOST_KEPT = 10_000


class Secrets:
    """Secrets by namespace and name."""

    def __init__(self, api: KubeApi, clock: Callable[[], float]) -> None:
        self._api = api
        self._clock = clock
        self._kept: dict[tuple[str, str], tuple[float, dict[str, bytes]]] = {}

    def __repr__(self) -> str:
        return f"Secrets({len(self._kept)} kept)"

    async def read(self, namespace: str, name: str, fresh: float = FRESH) -> Mapping[str, bytes] | None:
        """Its content, no older than so many seconds; None: there is no such Secret."""
        kept = self._kept.get((namespace, name))
        if kept is not None and self._clock() < kept[0] + fresh:
            return kept[1]
        try:
            raw = await self._api.get(path_of("v1", "secrets", namespace, name))
        except KubeError as error:
            if not error.not_found:
                raise
            self.forget(namespace, name)
            return None
        content = _decoded(raw.get("data"))
        self.keep(namespace, name, content)
        return content

    def keep(self, namespace: str, name: str, content: dict[str, bytes]) -> None:
        """What we have written ourselves need not be read."""
        self._kept[namespace, name] = (self._clock(), content)
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    def forget(self, namespace: str, name: str) -> None:
        self._kept.pop((namespace, name), None)


def _decoded(data: object) -> dict[str, bytes]:
    if not isinstance(data, Mapping):
        return {}
    content = {}
    for key, value in data.items():
        try:
            content[str(key)] = base64.b64decode(value or "")
        except (binascii.Error, ValueError, TypeError):
            continue
    return content


class Connections:
    """How the controller reaches the RocketMQ of each group."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        # One id for all, so that equal settings make equal configurations, and clients can be shared.
        self._client_id = new_client_id("rocketfleet-operator")
        self._directory: Path | None = None

    async def of(self, group: ConsumerGroup) -> ClientConfig:
        """The configuration; a Secret that is missing or incomplete is a BackendError that names it."""
        namespace, cluster = group.metadata.namespace, group.spec.cluster
        credentials = None
        if cluster.credentials is not None:
            credentials = await self._credentials(namespace, cluster.credentials.secret_name)
        tls = None
        if cluster.tls is not None and cluster.tls.enabled:
            tls = await self._tls(namespace, cluster.tls)
        try:
            return ClientConfig(
                name_servers=tuple(cluster.name_servers), credentials=credentials, tls=tls, client_id=self._client_id
            )
        except ValueError as error:
            raise BackendError(f"spec.cluster: {error}") from error

    def close(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    async def _read(self, namespace: str, name: str, purpose: str) -> Mapping[str, bytes]:
        content = await self._secrets.read(namespace, name)
        if content is None:
            raise BackendError(f"the Secret {name} with the {purpose} is not in namespace {namespace}: create it")
        return content

    async def _credentials(self, namespace: str, name: str) -> Credentials:
        content = await self._read(namespace, name, "credentials")
        values = {}
        for key in ("accessKey", "secretKey", "securityToken"):
            try:
                values[key] = content.get(key, b"").decode().strip()
            except UnicodeDecodeError:
                raise BackendError(f"{key} in the Secret {name} is not text") from None
        for key in ("accessKey", "secretKey"):
            if not values[key]:
                raise BackendError(f"the Secret {name} has no {key}: add it")
        return Credentials(values["accessKey"], values["secretKey"], values["securityToken"] or None)

    async def _tls(self, namespace: str, tls: Tls) -> TlsConfig:
        files: dict[str, str] = {}
        if tls.secret_name is not None:
            content = await self._read(namespace, tls.secret_name, "certificates")
            found = {key: content[key] for key in ("ca.crt", "tls.crt", "tls.key") if content.get(key)}
            if ("tls.crt" in found) is not ("tls.key" in found):
                raise BackendError(f"the Secret {tls.secret_name} has only one of tls.crt and tls.key: give both")
            if not found:
                raise BackendError(f"the Secret {tls.secret_name} has neither ca.crt nor tls.crt and tls.key: add them")
            files = self._files(found)
        return TlsConfig(
            ca_file=files.get("ca.crt"),
            cert_file=files.get("tls.crt"),
            key_file=files.get("tls.key"),
            check_hostname=tls.check_hostname,
            server_name=tls.server_name,
        )

    def _files(self, content: Mapping[str, bytes]) -> dict[str, str]:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="rocketfleet-"))  # for its owner only
        paths = {}
        for key, data in content.items():
            path = self._directory / f"{hashlib.sha256(data).hexdigest()[:32]}-{key}"
            if not path.exists():
                draft = path.with_suffix(".new")
                draft.write_bytes(data)
                draft.replace(path)
            paths[key] = str(path)
        return paths
