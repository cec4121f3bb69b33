"""The lock file: what is in it, and what is refused in it."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketfleet.devbroker.distribution.lock import VERSION, Jar, lock_of, locked_jars, parse_lock
from rocketfleet.devbroker.errors import DevBrokerError

_words = st.from_regex(r"[a-z][a-z0-9_.-]{0,12}", fullmatch=True)
_jars = st.builds(
    Jar,
    group=_words,
    artifact=_words,
    version=_words,
    classifier=st.none() | _words,
    sha256=st.binary(min_size=32, max_size=32).map(bytes.hex),
    size=st.integers(1, 1 << 40),
)


@settings(deadline=None)  # a busy machine is no bug
@given(st.lists(_jars, unique_by=lambda jar: jar.file_name))
def test_what_is_written_is_read_back(jars: list[Jar]) -> None:
    text = "# a comment\n\n" + "".join(f"{jar}\n" for jar in jars)
    assert parse_lock(text) == tuple(jars)


@pytest.mark.parametrize(
    "line",
    [
        "group:artifact:1 " + "0" * 64,
        "group:artifact " + "0" * 64 + " 1",
        "group:artifact:1:x:y " + "0" * 64 + " 1",
        "group:artifact:1 " + "0" * 62 + " 1",
        "group:artifact:1 " + "z" * 64 + " 1",
        "group:artifact:1 " + "0" * 64 + " 0",
        "group:../artifact:1 " + "0" * 64 + " 1",
        "group::1 " + "0" * 64 + " 1",
    ],
)
def test_a_line_that_is_not_one_is_refused_by_number(line: str) -> None:
    with pytest.raises(DevBrokerError, match="Line 2"):
        parse_lock("# first\n" + line)


def test_two_jars_of_one_name_are_refused() -> None:
    line = "{}:artifact:1 " + "0" * 64 + " 1\n"
    with pytest.raises(DevBrokerError, match=r"artifact-1\.jar twice"):
        parse_lock(line.format("a") + line.format("b"))


def test_paths_follow_mavens_layout() -> None:
    jar = Jar("io.netty", "netty-epoll", "4.1.Final", "linux-x86_64", "0" * 64, 1)
    assert jar.repository_path == "io/netty/netty-epoll/4.1.Final/netty-epoll-4.1.Final-linux-x86_64.jar"


def test_the_packages_lock_holds_all_of_rocketmq() -> None:
    jars = locked_jars()
    ours = {jar.artifact: jar for jar in jars if jar.group == "org.apache.rocketmq"}
    for part in ("namesrv", "broker", "proxy", "tools", "client", "auth", "store", "remoting"):
        assert ours[f"rocketmq-{part}"].version == VERSION
    assert len(jars) == 150


def test_a_directory_is_described_as_it_is(tmp_path: Path) -> None:
    for path, content in {
        "org/a/b/1.0/b-1.0.jar": b"one",
        "org/a/b/1.0/b-1.0-linux.jar": b"three",
        "org/a/b/maven-metadata-local.xml": b"",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    plain, linux = lock_of(tmp_path)
    assert plain == Jar("org.a", "b", "1.0", None, hashlib.sha256(b"one").hexdigest(), 3)
    assert linux.classifier == "linux"
    assert parse_lock(f"{plain}\n{linux}\n") == (plain, linux)
