"""Wall clocks of members that can be set: a member reads from a file of its own how far it is off.

Only the wall clock, and only as Python's code sees it (`set_clock/sitecustomize.py` says why): monotonic clocks, by
which leases and records go, run on.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

VARIABLE: Final = "FAULTS_CLOCK"
PLACE: Final = Path(__file__).parent / "set_clock"


@dataclass(frozen=True)
class MemberClocks:
    """The clocks of all members of a run."""

    directory: Path

    def environment(self, name: str) -> dict[str, str]:
        """What a member is started with, so that its clock can be set."""
        if not self._file(name).exists():
            self.set(name, 0)
        return {VARIABLE: str(self._file(name))}

    def set(self, name: str, seconds: int) -> None:
        """Let a member's clock be off by so much from now on."""
        scratch = self._file(name).with_suffix(".new")
        scratch.write_text(str(seconds))
        scratch.replace(self._file(name))

    def _file(self, name: str) -> Path:
        return self.directory / f"{name}.clock"
