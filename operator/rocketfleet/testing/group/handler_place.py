"""Where a worker under test finds the user's handler and writes its record: variables that it inherits.

Apart from `recorded_worker.py`, whose import looks for the handler at once.
"""

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

HANDLER_VARIABLE: Final = "ROCKETFLEET_TESTING_HANDLER"
PATH_VARIABLE: Final = "ROCKETFLEET_TESTING_PATH"
RECORD_VARIABLE: Final = "ROCKETFLEET_TESTING_RECORD"
MEMBER_VARIABLE: Final = "ROCKETFLEET_TESTING_MEMBER"


@dataclass(frozen=True, slots=True)
class HandlerPlace:
    """`reference` is module:function; `path` is a directory to look in first."""

    reference: str
    path: Path | None = None

    @classmethod
    def of(cls, handler: Callable[[Any], Any] | str, path: Path | str | None = None) -> Self:
        """A reference as it is, or that of a function, which another process must be able to import."""
        if isinstance(handler, str):
            return cls(handler, None if path is None else Path(path))
        name = getattr(handler, "__qualname__", "<")
        if "<" in name:
            raise ValueError(
                f"{handler!r} cannot be imported by another process: give a function of a module, "
                "or its name as module:function"
            )
        module, file = handler.__module__, inspect.getsourcefile(handler)
        if path is None and file is not None:
            # The directory that its module's name counts from.
            path = Path(file).resolve().parents[module.count(".")]
        return cls(f"{module}:{name}", None if path is None else Path(path))

    def variables(self, record: Path, member: str) -> dict[str, str]:
        """For the worker. Its Python path is ours: what a test can import, a handler can."""
        found = {
            HANDLER_VARIABLE: self.reference,
            RECORD_VARIABLE: str(record),
            MEMBER_VARIABLE: member,
            "PYTHONPATH": os.pathsep.join(place or os.curdir for place in sys.path),
        }
        return found if self.path is None else {**found, PATH_VARIABLE: str(self.path)}
