"""Manifest files as they are edited: read, checked as a whole, and read again when they change.

A file that is broken at this moment changes nothing: what was read last goes on. All files together are one wish, so an
object that is in none of them any more is to be deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rocketfleet.api.checking import ManifestError
from rocketfleet.api.consumer_group import ConsumerGroup, GroupKey
from rocketfleet.api.manifest import Name, read_documents


@dataclass(frozen=True, slots=True)
class DesiredObjects:
    """What the files ask for: groups, each with the directory of its file, and what they refer to."""

    groups: dict[GroupKey, tuple[ConsumerGroup, Path]] = field(default_factory=dict)
    config_maps: dict[Name, dict[str, str]] = field(default_factory=dict)
    secrets: dict[Name, dict[str, bytes]] = field(default_factory=dict, repr=False)


class ManifestFiles:
    """Some files, or directories of them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(path.absolute() for path in paths)
        self._stamp: object = None

    def changed(self) -> bool:
        """Whether they are others than at the last call, by their names, times and sizes."""
        stamp = tuple(_stamp(path) for path in self._files())
        before, self._stamp = self._stamp, stamp
        return stamp != before

    def read(self) -> DesiredObjects:
        """All of them. ManifestError says everything that is wrong."""
        wish, wrong = DesiredObjects(), list[str]()
        for path in self._files():
            try:
                text = path.read_text("utf-8")
                found = read_documents(text, path.name)
            except OSError as error:
                wrong.append(f"{path.name} cannot be read: {error.strerror}")
                continue
            except UnicodeDecodeError:
                wrong.append(f"{path.name} is not UTF-8 text")
                continue
            except ManifestError as error:
                wrong += error.problems
                continue
            for group in found.groups:
                if group.key in wish.groups:
                    wrong.append(f"{path.name}: {group.metadata.name} stands in another file too: remove one of them")
                wish.groups[group.key] = (group, path.parent)
            wish.config_maps.update(found.config_maps)
            wish.secrets.update(found.secrets)
        if wrong:
            raise ManifestError(wrong)
        return wish

    def _files(self) -> list[Path]:
        files = []
        for path in self._paths:
            files += sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
        return files


def _stamp(path: Path) -> object:
    try:
        state = path.stat()
    except OSError:
        return path, None
    return path, state.st_mtime_ns, state.st_size, state.st_ino
