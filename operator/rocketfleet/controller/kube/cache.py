"""What we know of the cluster without asking it: objects by name, kept by watch events, lists and our own writes.

The three come in any order. What the API answers to a write is newer than the watch event that is still on its way, and
a list may have been read before both. So an object is replaced only by a newer version of itself, and one that is gone
is remembered by its uid for a while, so that a late event does not bring it back. This is how "never create a pod
twice" and "never ask twice for a drain" hold without expectations to keep and to time out: what we wrote is in here
before the write returns.

Versions are compared as numbers, which the API promises for objects of one kind. A list says at which version it was
read: whatever we hold that is older than that and not in the list is gone, however its deletion was missed.
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
    version: int
    value: Value


class Cache(Generic[Value]):
    """Objects of one kind. `read` makes of each what is kept; None: it is not one of ours."""

    def __init__(self, read: Callable[[_Raw], Value | None]) -> None:
        self._read = read
        self._entries: dict[Name, Entry[Value]] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry[Value]]:
        return iter(list(self._entries.values()))

    def get(self, name: Name) -> Entry[Value] | None:
        return self._entries.get(name)

    def put(self, raw: _Raw) -> bool:
        """Take in an object as it was seen. Says whether that was news."""
        name, uid, version = identity(raw)
        if uid in self._gone:
            return False
        held = self._entries.get(name)
        if held is not None and held.version >= version:
            return False
        value = self._read(raw)
        if value is None:
            return self._entries.pop(name, None) is not None
        if held is not None and held.uid != uid:
            self._bury(held.uid)
        self._entries[name] = Entry(name, uid, version, value)
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

    def replace(self, items: list[dict[str, Any]], version: str, namespace: str | None) -> set[Name]:
        """Take in a list of all there are in a namespace, or everywhere. Returns whose objects changed."""
        changed = {identity(raw)[0] for raw in items if self.put(raw)}
        listed = {identity(raw)[0] for raw in items}
        read_at = number(version)
        for entry in self:
            here = namespace is None or entry.name[0] == namespace
            if here and entry.name not in listed and entry.version <= read_at:
                self.drop(entry.name, entry.uid)
                changed.add(entry.name)
        return changed

    def _bury(self, uid: str) -> None:
        self._gone[uid] = None
        while len(self._gone) > MOST_GONE:
            self._gone.popitem(last=False)


def identity(raw: _Raw) -> tuple[Name, str, int]:
    """Name, uid and version of an object."""
    metadata = raw.get("metadata") or {}
    name = (str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
    return name, str(metadata.get("uid") or ""), number(metadata.get("resourceVersion"))


def number(version: object) -> int:
    """A version, to compare it with others."""
    text = str(version or "")
    return int(text) if text.isdecimal() else 0
