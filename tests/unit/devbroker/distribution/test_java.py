"""Finding Java: stand-ins that answer `-version` as various Javas do."""

from pathlib import Path

import pytest

from rocketfleet.devbroker.distribution.java import find_java, java_major
from rocketfleet.devbroker.errors import JavaError


def make_java(directory: Path, version: str) -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'Picked up JAVA_TOOL_OPTIONS: -Dx' >&2\necho '{version}' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ("no such thing", None),
    ],
)
def test_the_major_version_is_read(text: str, major: int | None) -> None:
    assert java_major(text) == major


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home = make_java(tmp_path / "home", 'openjdk version "21.0.1"')
    other = make_java(tmp_path / "other", 'openjdk version "17.0.1"')
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)}) == str(home)
    assert find_java({"PATH": str(other.parent)}) == str(other)


def test_no_java(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match="No Java found: install"):
        find_java({"PATH": str(tmp_path)})


def test_a_java_home_without_java(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match="JAVA_HOME"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"})


def test_a_java_that_is_too_old(tmp_path: Path) -> None:
    java = make_java(tmp_path, 'openjdk version "11.0.2" 2019-01-15')
    with pytest.raises(JavaError, match="is Java 11; RocketMQ needs 17"):
        find_java({"PATH": str(java.parent)})


def test_something_that_is_not_java(tmp_path: Path) -> None:
    java = make_java(tmp_path, "hello")
    with pytest.raises(JavaError, match="does not tell its version"):
        find_java({"PATH": str(java.parent)})


def test_a_java_that_does_not_run(tmp_path: Path) -> None:
    java = make_java(tmp_path, "")
    java.write_bytes(b"\x7fELF nonsense")
    with pytest.raises(JavaError, match="does not run"):
        find_java({"PATH": str(java.parent)})
