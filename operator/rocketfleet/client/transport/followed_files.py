"""Whether files have changed since they were last looked at: for secrets that are renewed under a running process.

Kubernetes renews a Secret's files by turning one symbolic link (`..data`) to another directory, others write a new file
and rename it, or write in place. All of it shows in what `stat` says of the file at the end of the links, so nothing
has to be read to know that nothing has changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Fingerprint = tuple["tuple[int, int, int, int] | None", ...]


def fingerprint(paths: Iterable[str]) -> Fingerprint:
    """What tells these files from others that were at the same places. A file that is not there is None."""
    return tuple(_of(path) for path in paths)


def _of(path: str) -> tuple[int, int, int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
