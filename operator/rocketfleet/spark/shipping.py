"""The base package in an archive, for executors whose image lacks it.

An archive and not `--py-files`: two of the libraries it needs are compiled, and Python imports those from files only.
Spark unpacks an archive where executors run and the Python workers find it by PYTHONPATH. So the executors need the
driver's version of Python and its processor, as they do for Spark anyway, besides pyspark and pyarrow.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import Final

UNPACKED: Final = "rocketfleet-packages"
PACKAGES: Final = ("rocketfleet", "lz4", "zstandard")
_LEFT_OUT: Final = frozenset({"__pycache__", "tests"})


def pack(target: Path) -> Path:
    """Write the archive."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in PACKAGES:
            root = _directory_of(name)
            for path in sorted(root.rglob("*")):
                relative = path.relative_to(root.parent)
                if path.is_file() and _LEFT_OUT.isdisjoint(relative.parts):
                    archive.write(path, relative)
    return target


def shipped(archive: Path) -> dict[str, str]:
    """The settings by which Spark unpacks it at the executors and Python finds it there."""
    return {"spark.archives": f"{archive}#{UNPACKED}", "spark.executorEnv.PYTHONPATH": UNPACKED}


def _directory_of(package: str) -> Path:
    found = importlib.util.find_spec(package)
    assert found is not None, f"{package} is installed: this very package needs it"
    assert found.submodule_search_locations, f"{package} is a package"
    return Path(found.submodule_search_locations[0])
