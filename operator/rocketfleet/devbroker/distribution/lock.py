"""The lock file: which jars make up RocketMQ, each pinned by its size and SHA-256.

`jars.lock` has one line a jar, `group:artifact:version[:classifier] sha256 size`, so that a development broker is built
out of exactly these bytes, whoever serves them, and without Maven: no dependency is ever resolved here.

To make it anew (for another RocketMQ version; this is the one step that needs Maven): write a pom.xml that depends on
rocketmq-namesrv, -broker, -proxy, -tools and -client (group org.apache.rocketmq) at that version, then

    mvn dependency:copy-dependencies -DincludeScope=runtime -Dmdep.useRepositoryLayout=true -DoutputDirectory=DIRECTORY
    python -m rocketfleet.devbroker.distribution.lock DIRECTORY > operator/rocketfleet/devbroker/distribution/jars.lock

and change `VERSION` below. Platform jars (netty's native transports) are kept for every platform: they are small, and
the lock file is then the same for all.
"""

import hashlib
import sys
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from rocketfleet.devbroker.errors import DevBrokerError

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "5.5.0"
"""The RocketMQ that the lock file describes."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One file of Maven's repository, and what it must contain."""

    group: str
    artifact: str
    version: str
    classifier: str | None
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{tail}.jar"

    @property
    def repository_path(self) -> str:
        """Where the jar lies below the base address of a repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"

    @property
    def coordinates(self) -> str:
        tail = f":{self.classifier}" if self.classifier else ""
        return f"{self.group}:{self.artifact}:{self.version}{tail}"

    def __str__(self) -> str:
        return f"{self.coordinates} {self.sha256} {self.size}"


def parse_lock(text: str) -> tuple[Jar, ...]:
    """Read a lock file; empty lines and lines that begin with # are skipped."""
    jars = [
        _parse_line(number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.startswith("#")
    ]
    names: set[str] = set()
    for jar in jars:
        # All jars end up in one directory, for a class path of `directory/*`.
        if jar.file_name in names:
            raise DevBrokerError(f"The lock file names {jar.file_name} twice.")
        names.add(jar.file_name)
    return tuple(jars)


def _parse_line(number: int, line: str) -> Jar:
    try:
        coordinates, sha256, size_text = line.split()
        group, artifact, version, *rest = coordinates.split(":")
        classifier = rest[0] if rest else None
        size = int(size_text)
        sound = len(rest) <= 1 and size > 0 and len(bytes.fromhex(sha256)) == 32 and "/" not in coordinates
    except ValueError:
        sound = False
    if not sound or not (group and artifact and version):
        raise DevBrokerError(
            f"Line {number} of the lock file is not `group:artifact:version[:classifier] sha256 size`: {line!r}."
        )
    return Jar(group, artifact, version, classifier, sha256.lower(), size)


def locked_jars() -> tuple[Jar, ...]:
    """The jars of RocketMQ `VERSION`."""
    return parse_lock(resources.files("rocketfleet.devbroker.distribution").joinpath("jars.lock").read_text("utf-8"))


def lock_of(directory: "Path") -> tuple[Jar, ...]:
    """Describe the jars of a directory in Maven's repository layout, sorted by their coordinates."""
    found = []
    for path in directory.rglob("*.jar"):
        *group, artifact, version, name = path.relative_to(directory).parts
        classifier = name.removeprefix(f"{artifact}-{version}").removesuffix(".jar").removeprefix("-") or None
        content = path.read_bytes()
        found.append(
            Jar(".".join(group), artifact, version, classifier, hashlib.sha256(content).hexdigest(), len(content))
        )
    return tuple(sorted(found, key=lambda jar: jar.coordinates))


if __name__ == "__main__":
    from pathlib import Path

    sys.stdout.writelines(f"{jar}\n" for jar in lock_of(Path(sys.argv[1])))
