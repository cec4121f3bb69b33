"""Where `rocketfleet run` keeps what it knows, and how it writes: a later run must find everything, or nothing.

STATE/lock                            held by the run that owns the directory, which is noted in it
STATE/groups/NAMESPACE/NAME/object.json   the object: manifest, uid, generation, finalizer, status
                           /token         the control ports' token
                           /mounted/…     credentials, certificates and handlers out of Secrets and ConfigMaps
                           /logs/ORDINAL.log  what members have printed, one after the other
                           /ORDINAL/pod.json, settings.json, control, last-words, offsets/
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rocketfleet.api.consumer_group import GroupKey
from rocketfleet.base.processes import Identity, began
from rocketfleet.controller.reconciling.backend import BackendError


@dataclass(frozen=True, slots=True)
class PodFiles:
    """The files of one member."""

    directory: Path

    @property
    def record(self) -> Path:
        return self.directory / "pod.json"

    @property
    def settings(self) -> Path:
        return self.directory / "settings.json"

    @property
    def control(self) -> Path:
        return self.directory / "control"

    @property
    def last_words(self) -> Path:
        return self.directory / "last-words"

    @property
    def log(self) -> Path:
        return self.directory.parent / "logs" / f"{self.directory.name}.log"

    @property
    def offsets(self) -> Path:
        return self.directory / "offsets"


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """The files of one object."""

    directory: Path

    @property
    def object(self) -> Path:
        return self.directory / "object.json"

    @property
    def token(self) -> Path:
        return self.directory / "token"

    @property
    def mounted(self) -> Path:
        return self.directory / "mounted"

    @property
    def credentials(self) -> Path:
        return self.mounted / "credentials"

    def pod(self, ordinal: int) -> PodFiles:
        return PodFiles(self.directory / str(ordinal))

    def pods(self) -> Iterator[PodFiles]:
        if self.directory.is_dir():
            for path in sorted(self.directory.iterdir()):
                if path.name.isdigit() and (path / "pod.json").is_file():
                    yield PodFiles(path)


class StateDirectory:
    """One directory, in the hands of one run at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: IO[bytes] | None = None

    def claim(self) -> None:
        """Make it ours. BackendError if another run has it."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = self._lock_file.open("ab")  # whoever has it has noted itself there
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise BackendError(
                f"another rocketfleet run works with {self.path}: stop it, or choose another --state-dir"
            ) from None
        self._lock = lock
        me = os.getpid()
        lock.truncate(0)
        lock.write(json.dumps({"pid": me, "began": began(me)}).encode())
        lock.flush()

    @property
    def claimed(self) -> bool:
        """Whether a run works with it now. The lock itself is not tried: a run that begins just then would fail."""
        noted = read_json(self._lock_file) or {}
        return isinstance(noted.get("pid"), int) and Identity(noted["pid"], str(noted.get("began"))).alive

    @property
    def _lock_file(self) -> Path:
        return self.path / "lock"

    def release(self) -> None:
        if self._lock is not None:
            self._lock.truncate(0)
            self._lock.close()
            self._lock = None

    def group(self, key: GroupKey) -> GroupFiles:
        return GroupFiles(self.path / "groups" / key.namespace / key.name)

    def groups(self) -> Iterator[tuple[GroupKey, GroupFiles]]:
        """All objects that were ever written here and not removed."""
        for path in sorted(self.path.glob("groups/*/*/object.json")):
            directory = path.parent
            yield GroupKey(directory.parent.name, directory.name), GroupFiles(directory)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_private(path, json.dumps(content, indent=1, ensure_ascii=False).encode())


def write_private(path: Path, data: bytes) -> None:
    """Write a file in one step, for its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    draft.replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """What was written; None if there is nothing, or nothing that makes sense."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
