"""Java programs of the tests: the oracle that the Python client is held against, and members of mixed groups.

A program is one file, `tests/broker/java/Name.java`, with a `main`. It is compiled once, into the cache outside the
tree, under a name made of its content; where there is a Java but no compiler, Java's source launcher compiles it at
every run instead.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocketfleet.devbroker.distribution.jars import cache_directory, classpath_of, provide_jars
from rocketfleet.devbroker.distribution.java import LIGHT_FLAGS, MODULE_FLAGS, find_java
from rocketfleet.devbroker.launch import clean_environment

SOURCES = Path(__file__).parent / "java"


class JavaProgramError(AssertionError):
    """A Java program of the tests ended with an exit code other than 0."""


class JavaPrograms:
    """Runs `tests/broker/java/*.java` on the same jars as the broker."""

    def __init__(self, home: Path, sources: Path = SOURCES) -> None:
        self._java = find_java()
        self._classpath = classpath_of(provide_jars())
        self._home = home
        self._sources = sources
        self._started: list[subprocess.Popen[str]] = []

    def run(
        self,
        source: str,
        *arguments: str,
        stdin: str | None = None,
        timeout: float = 60.0,
        properties: Mapping[str, str] | None = None,
    ) -> str:
        """Run a program to its end and return its standard output; fails with its standard error."""
        answer = subprocess.run(
            self.command(source, arguments, properties),
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=clean_environment(),
        )
        if answer.returncode != 0:
            raise JavaProgramError(f"{source} ended with {answer.returncode}:\n{answer.stdout}\n{answer.stderr}")
        return answer.stdout

    def start(
        self, source: str, *arguments: str, properties: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        """Start a program that is talked to by stdin and stdout, line by line; it is ended with the test."""
        process = subprocess.Popen(
            self.command(source, arguments, properties),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=clean_environment(),
        )
        self._started.append(process)
        return process

    def end_started(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
        self._started.clear()

    def command(
        self, source: str, arguments: Sequence[str] = (), properties: Mapping[str, str] | None = None
    ) -> list[str]:
        """The command line that runs a program."""
        # RocketMQ's client logs below user.home.
        given = {"user.home": str(self._home), "java.io.tmpdir": str(self._home), **(properties or {})}
        flags = [*LIGHT_FLAGS, *MODULE_FLAGS, *(f"-D{name}={value}" for name, value in given.items())]
        path = self._sources / source
        classes = self._compiled(path)
        if classes is None:
            return [self._java, *flags, "-cp", self._classpath, str(path), *arguments]
        return [self._java, *flags, "-cp", f"{classes}{os.pathsep}{self._classpath}", path.stem, *arguments]

    def _compiled(self, path: Path) -> Path | None:
        compiler = shutil.which(
            "javac", path=f"{Path(self._java).resolve().parent}{os.pathsep}{Path(self._java).parent}"
        )
        if compiler is None:
            return None
        name = hashlib.sha256(path.read_bytes() + self._classpath.encode()).hexdigest()[:24]
        directory = cache_directory() / "test-classes" / f"{path.stem}-{name}"
        if not directory.exists():
            temporary = directory.with_name(f"{directory.name}.{os.getpid()}.part")
            temporary.mkdir(parents=True, exist_ok=True)
            answer = subprocess.run(
                [compiler, "-proc:none", "-nowarn", "-d", str(temporary), "-cp", self._classpath, str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
            if answer.returncode != 0:
                shutil.rmtree(temporary)
                raise JavaProgramError(f"{path.name} does not compile:\n{answer.stderr}")
            try:
                temporary.rename(directory)
            except OSError:  # another test run was quicker
                shutil.rmtree(temporary)
        return directory
