"""Finding Java: JAVA_HOME's, else the one on PATH; 17 or newer."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from rocketfleet.devbroker.errors import JavaError

OLDEST = 17

# RocketMQ reaches into these packages of the JDK for its memory-mapped files.
MODULE_FLAGS = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
)

# For programs that live for a second or idle for hours: what starts quickest and takes least memory.
LIGHT_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


def find_java(environment: Mapping[str, str] | None = None) -> str:
    """The path of a Java that is new enough."""
    environment = os.environ if environment is None else environment
    home = environment.get("JAVA_HOME")
    if home:
        java = str(Path(home) / "bin" / "java")
        if not os.access(java, os.X_OK):
            raise JavaError(f"JAVA_HOME is {home}, but there is no bin/java in it; correct it or unset it.")
    else:
        found = shutil.which("java", path=environment.get("PATH", os.defpath))
        if found is None:
            raise JavaError(f"No Java found: install a Java runtime {OLDEST} or newer, or set JAVA_HOME.")
        java = found
    try:
        # `-version` writes to stderr, and JAVA_TOOL_OPTIONS adds a line of its own there.
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise JavaError(f"{java} does not run: {problem}.") from None
    major = java_major(answer.stderr)
    if major is None:
        raise JavaError(f"{java} -version does not tell its version: {answer.stderr.strip()[:200]!r}.")
    if major < OLDEST:
        raise JavaError(
            f"{java} is Java {major}; RocketMQ needs {OLDEST} or newer here: install one, or set JAVA_HOME."
        )
    return java


def java_major(version_text: str) -> int | None:
    """The major version in what `java -version` writes: 17 for `17.0.15`, 8 for `1.8.0_402`."""
    match = re.search(r'version "(?:1\.)?(\d+)', version_text)
    return int(match.group(1)) if match else None
