"""The code in a group's ConfigMap, and what it has to do with the revision of pods.

A revision is a hash of the manifest and, where the code comes from a ConfigMap, a hash of that behind it:
`a67bb10e2e.0c5f8a4e31`. Pods keep the two apart, the first as a label and the second as an annotation: operators from
before know the label only, and must not take every pod for outdated. A pod of theirs has no hash of its code; it is
taken to have the code that was there when such pods were first seen. So an upgrade restarts nobody, and a later edit
reaches them all the same.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

LENGTH = 10


@dataclass(frozen=True, slots=True)
class Code:
    """What is known of the ConfigMap. `digest` is None where there is none, or it cannot be read now; `missing` says,
    as a sentence, that it should be there and is not.
    """

    digest: str | None = None
    missing: str | None = None


def digest_of(files: Mapping[str, object]) -> str:
    """A short hash of the files, by their names."""
    text = json.dumps(files, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]


def with_code(revision: str, digest: str | None) -> str:
    """A manifest's revision and the code's hash as one."""
    return revision if digest is None else f"{revision}.{digest}"


def parts_of(revision: str) -> tuple[str, str | None]:
    """The manifest's revision, and the code's hash if it has one."""
    manifest, _, digest = revision.partition(".")
    return manifest, digest or None


def seen_revision(of_pod: str, wanted: str, unmarked: str | None, *, rolls: bool) -> str:
    """A pod's revision as the planner is to see it: the wanted one, if the pod need not be replaced. `unmarked` is the
    code of pods that have no hash of it; `rolls`: whether another code is a reason to replace a pod.
    """
    (manifest, digest), (wanted_manifest, wanted_digest) = parts_of(of_pod), parts_of(wanted)
    if manifest != wanted_manifest:
        return of_pod
    same_code = wanted_digest is None or (digest or unmarked or wanted_digest) == wanted_digest
    return wanted if same_code or not rolls else of_pod


def unmarked_code(known: str | None, wanted: str, of_pods: list[str]) -> str | None:
    """The code of pods that have no hash of it: what there was when they were first seen. Where there are none it is as
    it is now.
    """
    digest = parts_of(wanted)[1]
    if known is not None and (digest is None or any(parts_of(each)[1] is None for each in of_pods)):
        return known
    return digest
