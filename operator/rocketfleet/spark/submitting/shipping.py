"""Packages in archives, for executors that lack them: the base package, and those of a pipeline.

The base package goes as an archive that Spark unpacks where executors run, with PYTHONPATH set to it, and not as Python
files: two of the libraries it needs are compiled, and Python imports those from files only. So the executors need the
driver's version of Python and its processor, as they do for Spark anyway, besides pyspark and pyarrow.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

UNPACKED: Final = "rocketfleet-packages"
PACKAGES: Final = ("rocketfleet", "lz4", "zstandard")
_CACHE: Final = frozenset({"__pycache__"})


def pack(target: Path) -> Path:
    """Write the archive."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in PACKAGES:
            _add(archive, _directory_of(name), _CACHE | {"tests"})
    return target


def zipped(package: Path, directory: Path) -> Path:
    """One package of pure Python, as a file that Python can import from."""
    target = directory / f"{package.name}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, package, _CACHE)
    return target


def _add(archive: zipfile.ZipFile, package: Path, left_out: AbstractSet[str]) -> None:
    for path in sorted(package.rglob("*")):
        relative = path.relative_to(package.parent)
        if path.is_file() and left_out.isdisjoint(relative.parts):
            archive.write(path, relative)


def shipped(archive: Path) -> dict[str, str]:
    """The settings by which Spark unpacks it at the executors and Python finds it there."""
    return {"spark.archives": f"{archive}#{UNPACKED}", "spark.executorEnv.PYTHONPATH": UNPACKED}


def _directory_of(package: str) -> Path:
    found = importlib.util.find_spec(package)
    assert found is not None, f"{package} is installed: this very package needs it"
    assert found.submodule_search_locations, f"{package} is a package"
    return Path(found.submodule_search_locations[0])
