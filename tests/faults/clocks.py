"""Wall clocks of members that can be set, by libfaketime: a member reads from a file of its own how far it is off.

Only the wall clock: monotonic clocks, by which leases and records go, run on.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PLACES: Final = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib*/faketime/libfaketimeMT.so.1")


def library() -> Path | None:
    """Where libfaketime is, if it is installed."""
    return next((path for place in _PLACES for path in Path("/").glob(place.lstrip("/"))), None)


def why_not() -> str | None:
    """Why this machine can set no clocks; None if it can."""
    return None if library() is not None else "libfaketime is not installed"


@dataclass(frozen=True)
class MemberClocks:
    """The clocks of all members of a run."""

    directory: Path

    def environment(self, name: str) -> dict[str, str]:
        """What a member is started with, so that its clock can be set."""
        found = library()
        if found is None:
            return {}
        if not self._file(name).exists():
            self.set(name, 0)
        return {
            "LD_PRELOAD": str(found),
            "FAKETIME_TIMESTAMP_FILE": str(self._file(name)),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    def set(self, name: str, seconds: int) -> None:
        """Let a member's clock be off by so much from now on (it looks once per second)."""
        scratch = self._file(name).with_suffix(".new")
        scratch.write_text(f"{seconds:+d}\n")
        scratch.replace(self._file(name))

    def _file(self, name: str) -> Path:
        return self.directory / f"{name}.clock"
