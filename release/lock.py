"""`make lock`: what the images install, exact versions with the hashes of their files.

One file per image, in `release/requirements/`. A version is one that every supported Python can have, and the hashes
are of all its files, so one lock serves each Python and each platform. No file names a package index: which one is used
is up to whoever builds.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIRECTORY = ROOT / "release" / "requirements"

EXTRAS = {"worker": "", "operator": "operator", "operator-history": "operator,history", "spark": "spark"}
"""The images by the name of their lock file, and the extras of the package that each one has."""

BUILD = "build"
"""The lock file of what packages are built with, where there is no wheel of them: our own, and PySpark's."""

PYSPARK_BUILD = ["setuptools", "wheel"]  # PySpark is published as source only, and does not say what it is built with


def requirements(name: str) -> list[str]:
    """What a lock file is made from."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    if name == BUILD:
        return [*project["build-system"]["requires"], *PYSPARK_BUILD]
    extras = project["project"]["optional-dependencies"]
    wanted = [extra for extra in EXTRAS[name].split(",") if extra]
    return [*project["project"]["dependencies"], *(one for extra in wanted for one in extras[extra])]


def lock(name: str, *arguments: str) -> None:
    """Write one lock file. Versions in it are kept as long as they fit, unless `--upgrade` is among the arguments."""
    file = DIRECTORY / f"{name}.txt"
    pythons = ["--universal", "--fork-strategy", "fewest", "--python-version", lowest_python()]
    quiet = ["--quiet", "--no-header", "--no-annotate"]
    subprocess.run(
        ["uv", "pip", "compile", "--generate-hashes", *pythons, *quiet, *arguments, "--output-file", str(file), "-"],
        input="\n".join(requirements(name)),
        text=True,
        check=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    file.write_text(f"# Written by `make lock` from pyproject.toml; do not edit.\n{file.read_text()}")


def lowest_python() -> str:
    """The oldest Python that we support, as in 3.11."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["requires-python"]).removeprefix(">=")


def main(arguments: list[str]) -> None:
    """The command line: arguments are those of `uv pip compile`, such as --upgrade."""
    DIRECTORY.mkdir(exist_ok=True)
    for name in (BUILD, *EXTRAS):
        print(f"locking {name}", flush=True)
        lock(name, *arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
