"""Manifests as people write them: YAML, several documents per file, ConsumerGroups and what they refer to.

A ConfigMap with a handler and a Secret with credentials may stand beside the group that uses them, so that one file
runs on a laptop as it does in a cluster. Any other kind is refused, for it would have no effect here.

YAML is read as kubectl reads it: a time without quotes is a text. A key that stands twice is an error, since one of
the two would be lost.
"""

import base64
import binascii
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from rocketfleet.api.checking import ManifestError, read_object
from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.names import KIND

Name = tuple[str, str]
"""Namespace and name of what a group refers to."""


@dataclass(frozen=True, slots=True)
class Documents:
    """What a file holds. A Secret's content is in no repr."""

    groups: list[ConsumerGroup] = field(default_factory=list)
    config_maps: dict[Name, dict[str, str]] = field(default_factory=dict)
    secrets: dict[Name, dict[str, bytes]] = field(default_factory=dict, repr=False)


def read_documents(text: str, source: str = "manifest") -> Documents:
    """The ConsumerGroups of a file, and the ConfigMaps and Secrets beside them. ManifestError names all that is wrong
    with it, not the first thing only.
    """
    found, wrong = Documents(), list[str]()
    for place, raw in _documents(text, source):
        try:
            _add(found, raw)
        except ManifestError as error:
            wrong += [f"{place}: {line}" for line in error.problems]
    if not wrong and not found.groups:
        wrong.append(f"{source}: there is no {KIND} in it")
    if wrong:
        raise ManifestError(wrong)
    return found


def _documents(text: str, source: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each object with the words that say which one it is."""
    try:
        loaded = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise ManifestError([f"{source} is not YAML: {' '.join(str(error).split())}"]) from error
    for number, document in enumerate(loaded, start=1):
        place = source if len(loaded) == 1 else f"{source}, document {number}"
        if document is None:
            continue
        listed = document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else [document]
        for raw in listed if isinstance(listed, list) else []:
            if not isinstance(raw, dict):
                raise ManifestError([f"{place} is no object: a manifest has apiVersion, kind, metadata and spec"])
            metadata = raw.get("metadata")
            name = metadata.get("name") if isinstance(metadata, dict) else None
            yield f"{place} ({raw.get('kind')} {name})" if name else place, raw


def _add(found: Documents, raw: Mapping[str, Any]) -> None:
    match raw.get("apiVersion"), raw.get("kind"):
        case "v1", "ConfigMap":
            found.config_maps[_name(raw)] = _texts(raw, "data")
        case "v1", "Secret":
            texts = {name: text.encode() for name, text in _texts(raw, "stringData").items()}
            found.secrets[_name(raw)] = _decoded(raw) | texts
        case _, kind if kind == KIND:
            group = read_object(raw)
            _stands_alone(group, found.groups)
            found.groups.append(group)
        case _, kind:
            raise ManifestError([f"kind {kind!r} is not read here: there are {KIND}, ConfigMap and Secret"])


def _stands_alone(group: ConsumerGroup, others: list[ConsumerGroup]) -> None:
    for other in others:
        if other.key == group.key:
            raise ManifestError([f"metadata.name: {group.metadata.name} stands here twice: rename one of them"])
        same_cluster = set(other.spec.cluster.name_servers) & set(group.spec.cluster.name_servers)
        if other.group_name == group.group_name and same_cluster:
            mixed = (
                f"{other.metadata.name} is the group {group.group_name} at the same RocketMQ: their members would mix"
            )
            raise ManifestError([f"spec.groupName: {mixed}. Give one of them another groupName"])


def _name(raw: Mapping[str, Any]) -> Name:
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise ManifestError(["metadata.name: is missing"])
    return str(metadata.get("namespace") or "default"), metadata["name"]


def _texts(raw: Mapping[str, Any], section: str) -> dict[str, str]:
    data = raw.get(section) or {}
    if not isinstance(data, dict):
        raise ManifestError([f"{section}: give an object with keys"])
    wrong = [f"{section}.{name}: give a text" for name, value in data.items() if not isinstance(value, str)]
    if wrong:
        raise ManifestError(wrong)
    return {str(name): value for name, value in data.items()}


def _decoded(raw: Mapping[str, Any]) -> dict[str, bytes]:
    decoded = {}
    for name, text in _texts(raw, "data").items():
        try:
            decoded[name] = base64.b64decode("".join(text.split()), validate=True)
        except binascii.Error:
            # what it says stays unsaid: it may be the secret itself, under the wrong key
            raise ManifestError([f"data.{name}: is not base64: encode it, or put it under stringData"]) from None
    return decoded


class _Loader(yaml.SafeLoader):
    """YAML as kubectl reads it."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own form
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is no text: put it in quotes", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key} is twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)
