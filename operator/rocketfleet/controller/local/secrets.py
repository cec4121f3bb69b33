"""Secrets and ConfigMaps on this machine: those that stand in the manifest's file, beside the groups that use them.

Credentials may also come from the environment of `rocketfleet run`, by the variables that all commands read. What has
to be a file (certificates, a handler's module) is written into the state directory, for its owner only.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.manifest import Name
from rocketfleet.client.config import ClientConfig, TlsConfig
from rocketfleet.client.variables import ACCESS_KEY_VARIABLE, SECRET_KEY_VARIABLE, SECURITY_TOKEN_VARIABLE
from rocketfleet.controller.local.files import GroupFiles, write_private
from rocketfleet.controller.reconciling.backend import BackendError
from rocketfleet.controller.resources.code import Code, digest_of
from rocketfleet.wire.acl import Credentials

_VARIABLES = {
    "accessKey": ACCESS_KEY_VARIABLE,
    "secretKey": SECRET_KEY_VARIABLE,
    "securityToken": SECURITY_TOKEN_VARIABLE,
}
CERTIFICATES = ("ca.crt", "tls.crt", "tls.key")


@dataclass(slots=True)
class LocalSecrets:
    """What the manifests bring along. Never shown."""

    secrets: Mapping[Name, Mapping[str, bytes]] = field(default_factory=dict, repr=False)
    config_maps: Mapping[Name, Mapping[str, str]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        found = self.secrets.get((namespace, name))
        if found is not None:
            return found
        given = {
            key: self.environment[variable].encode() for key, variable in _VARIABLES.items() if self._has(variable)
        }
        return given if "accessKey" in given and "secretKey" in given else None

    def _has(self, variable: str) -> bool:
        return bool(self.environment.get(variable))

    def connection(self, group: ConsumerGroup, files: GroupFiles, client_id: str) -> ClientConfig:
        """How the controller reaches the group's RocketMQ."""
        cluster = group.spec.cluster
        credentials = None
        if cluster.credentials is not None:
            content = self.mount_credentials(group, files)
            values = {key: content.get(key, b"").decode("utf-8", "replace").strip() for key in _VARIABLES}
            if not values["accessKey"] or not values["secretKey"]:
                raise BackendError(f"the Secret {cluster.credentials.secret_name} needs accessKey and secretKey")
            credentials = Credentials(values["accessKey"], values["secretKey"], values["securityToken"] or None)
        tls = None
        if cluster.tls is not None and cluster.tls.enabled:
            paths = self.mount_certificates(group, files)
            tls = TlsConfig(
                ca_file=_text(paths.get("ca.crt")),
                cert_file=_text(paths.get("tls.crt")),
                key_file=_text(paths.get("tls.key")),
                check_hostname=cluster.tls.check_hostname,
                server_name=cluster.tls.server_name,
            )
        try:
            return ClientConfig(tuple(cluster.name_servers), credentials=credentials, tls=tls, client_id=client_id)
        except ValueError as error:
            raise BackendError(f"spec.cluster: {error}") from error

    def mount_credentials(self, group: ConsumerGroup, files: GroupFiles) -> Mapping[str, bytes]:
        """Write the credentials where the members follow them."""
        credentials = group.spec.cluster.credentials
        if credentials is None:
            return {}
        content = self._needed(group, credentials.secret_name, "credentials")
        _mounted(files.credentials, {name: content[name] for name in _VARIABLES if name in content})
        for name in _VARIABLES.keys() - content.keys():
            (files.credentials / name).unlink(missing_ok=True)
        return content

    def mount_certificates(self, group: ConsumerGroup, files: GroupFiles) -> dict[str, Path]:
        """Write the certificates where the members look for them."""
        tls = group.spec.cluster.tls
        if tls is None or not tls.enabled or tls.secret_name is None:
            return {}
        content = self._needed(group, tls.secret_name, "certificates")
        return _mounted(files.mounted / "tls", {name: content[name] for name in CERTIFICATES if name in content})

    def code(self, group: ConsumerGroup) -> Code:
        """What is in the ConfigMap of the group's code."""
        program = group.spec.program
        if program is None or program.code_config_map is None:
            return Code()
        content = self.config_maps.get((group.metadata.namespace, program.code_config_map))
        if content is None:
            return Code(missing=_no_config_map(program.code_config_map))
        return Code(digest_of(content))

    def mount_code(self, group: ConsumerGroup, files: GroupFiles) -> Path | None:
        """Write the handler's or the pipeline's module out of its ConfigMap; None if it is not in one."""
        program = group.spec.program
        if program is None or program.code_config_map is None:
            return None
        content = self.config_maps.get((group.metadata.namespace, program.code_config_map))
        if content is None:
            raise BackendError(_no_config_map(program.code_config_map))
        _mounted(files.mounted / "code", {name: text.encode() for name, text in content.items()})
        return files.mounted / "code"

    def _needed(self, group: ConsumerGroup, name: str, purpose: str) -> Mapping[str, bytes]:
        content = self.secret(group.metadata.namespace, name)
        if content is None:
            raise BackendError(f"the Secret {name} with the {purpose} is missing: put it beside the group")
        return content


def _no_config_map(name: str) -> str:
    return f"the ConfigMap {name} is missing: put it beside the group in the manifest"


def _mounted(directory: Path, content: Mapping[str, bytes]) -> dict[str, Path]:
    paths = {}
    for name, data in content.items():
        if "/" in name or name.startswith("."):
            raise BackendError(f"{name!r} is no name for a file: a Secret's or ConfigMap's keys become files")
        path = directory / name
        if not path.exists() or path.read_bytes() != data:
            write_private(path, data)
        paths[name] = path
    return paths


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
