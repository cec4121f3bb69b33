"""What we know of the cluster without asking it: objects by name, kept by watch events, lists and our own writes.

The three come in any order. What the API answers to a write is newer than the watch event that is still on its way, and
a list may have been read before both. So an object is replaced only by a newer version of itself, and one that is gone
is remembered by its uid for a while, so that a late event does not bring it back. This is how "never create a pod
twice" and "never ask twice for a drain" hold without expectations to keep and to time out: what we wrote is in here
before the write returns.

Versions are compared as numbers, which the API promises for objects of one kind. A list says at which version it was
read: whatever we hold that is older than that and not in the list is gone, however its deletion was missed. Versions
that are no numbers cannot be compared: then what comes last counts.

After etcd was restored from a backup the versions are lower than before, and objects are back that were gone. A list
shows it: one that was asked for after we had seen a version cannot have been read at an older one. Then all that is
held is forgotten, and the list taken as it is.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Name = tuple[str, str]
Value = TypeVar("Value")
_Raw = Mapping[str, Any]
MOST_GONE = 20_000


@dataclass(frozen=True, slots=True)
class Entry(Generic[Value]):
    """An object: what was read from it, and which version of which incarnation it is."""

    name: Name
    uid: str
    version: int | None  # None: it cannot be compared
    text: str  # the version as it was given
    value: Value


class Cache(Generic[Value]):
    """Objects of one kind. `read` makes of each what is kept; None: it is not one of ours."""

    def __init__(self, read: Callable[[_Raw], Value | None]) -> None:
        self._read = read
        self._entries: dict[Name, Entry[Value]] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._listed: dict[str | None, int] = {}  # by namespace, None for all: the version of its last list

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry[Value]]:
        return iter(list(self._entries.values()))

    def get(self, name: Name) -> Entry[Value] | None:
        return self._entries.get(name)

    def put(self, raw: _Raw) -> bool:
        """Take in an object as it was seen. Says whether that was news."""
        name, uid, text = identity(raw)
        version = number(text)
        if uid in self._gone:
            return False
        held = self._entries.get(name)
        if held is not None and not _newer(held, version, text):
            return False
        value = self._read(raw)
        if value is None:
            return self._entries.pop(name, None) is not None
        if held is not None and held.uid != uid:
            self._bury(held.uid)
        self._entries[name] = Entry(name, uid, version, text, value)
        return True

    def drop(self, name: Name, uid: str) -> bool:
        """This incarnation is gone. Says whether that was news."""
        if uid in self._gone:
            return False
        self._bury(uid)
        held = self._entries.get(name)
        if held is None or held.uid != uid:
            return False
        del self._entries[name]
        return True

    def lose(self, name: Name, uid: str) -> bool:
        """The API says that there is no such object, and nothing has told of its end. It is not buried: an API server
        that has just started, or whoever stands before it, has said so of objects that are there. Says whether we held
        it.
        """
        held = self._entries.get(name)
        if held is None or held.uid != uid:
            return False
        del self._entries[name]
        return True

    def newest(self, namespace: str | None) -> int:
        """The newest version seen of a namespace, or of all. Take it before asking for a list."""
        held = (entry.version or 0 for entry in self if namespace in (None, entry.name[0]))
        return max(self._listed.get(namespace, 0), max(held, default=0))

    def goes_back(self, version: str, asked_at: int) -> bool:
        """Whether a list was read before what we had seen when we asked for it: the cluster was restored."""
        read_at = number(version)
        return read_at is not None and read_at < asked_at

    def replace(self, items: list[dict[str, Any]], version: str, namespace: str | None, asked_at: int = 0) -> set[Name]:
        """Take in a list of all there are in a namespace, or everywhere. Returns whose objects changed. `asked_at` is
        what `newest` said before the list was asked for.
        """
        changed: set[Name] = set()
        if self.goes_back(version, asked_at):
            changed = {name for name in self._entries if namespace in (None, name[0])}
            for name in changed:
                del self._entries[name]
            self._gone.clear()
        read_at = number(version)
        self._listed[namespace] = read_at or 0
        changed |= {identity(raw)[0] for raw in items if self.put(raw)}
        listed = {identity(raw)[0] for raw in items}
        for entry in self:
            if namespace not in (None, entry.name[0]) or entry.name in listed:
                continue
            if entry.version is None or read_at is None:
                del self._entries[entry.name]  # not buried: it may be newer than the list, and is seen again then
                changed.add(entry.name)
            elif entry.version <= read_at:
                self.drop(entry.name, entry.uid)
                changed.add(entry.name)
        return changed

    def _bury(self, uid: str) -> None:
        self._gone[uid] = None
        while len(self._gone) > MOST_GONE:
            self._gone.popitem(last=False)


def identity(raw: _Raw) -> tuple[Name, str, str]:
    """Name, uid and version of an object."""
    metadata = raw.get("metadata") or {}
    name = (str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
    return name, str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or "")


def number(version: str) -> int | None:
    """A version, to compare it with others; None: it cannot be compared."""
    return int(version) if version.isascii() and version.isdecimal() else None


def _newer(held: Entry[Any], version: int | None, text: str) -> bool:
    if held.version is None or version is None:
        return text != held.text
    return version > held.version
