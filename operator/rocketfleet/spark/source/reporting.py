"""How far a streaming query is, told by its source to the driver that runs it.

Spark keeps the source's own state in a Python process of its own, where nobody can ask it. Its progress reports say how
far a batch went, but only once one is done: not where a query begins, nor where it goes on after a restart. The source
hears both first. So whoever runs a driver names a directory (`REPORTS` in the environment, from which Spark's Python
processes have it too), and the source of each group keeps a file there that says what is done.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from rocketfleet.spark.source.offsets import Offsets, flat, nested

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocketfleet.wire.queue import MessageQueue

REPORTS: Final = "ROCKETFLEET_SPARK_REPORTS"


@dataclass(frozen=True)
class Report:
    """Everything before these offsets is done; `lost` messages of it were gone before they could be read."""

    done: Offsets
    lost: int = 0


def leave(group: str, done: Mapping[MessageQueue, int], lost: int) -> None:
    """Write the group's report, if anybody wants it."""
    directory = os.environ.get(REPORTS)
    if not directory:
        return
    path = _path(Path(directory), group)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps({"done": nested(done), "lost": lost}))
    draft.replace(path)


def read(directory: Path, group: str) -> Report | None:
    """The group's report; None if there is none yet."""
    try:
        content = json.loads(_path(directory, group).read_bytes())
    except FileNotFoundError:
        return None
    return Report(flat(content["done"]), int(content["lost"]))


def _path(directory: Path, group: str) -> Path:
    return directory / f"{quote(group, safe='')}.json"
