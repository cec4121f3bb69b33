"""`module:function` to a handler, or to a sentence."""

import itertools
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocketfleet.worker.handler_loading import HandlerError, load_handler

_numbers = itertools.count()


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Write a module with this source to tmp_path; returns its name."""
    path, modules = list(sys.path), set(sys.modules)

    def write(source: str) -> str:
        name = f"handler_module_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(source)
        return name

    yield write
    sys.path[:] = path
    for name in sys.modules.keys() - modules:
        del sys.modules[name]


def test_a_plain_function(write: Callable[[str], str], tmp_path: Path) -> None:
    name = write("def handle(message):\n    return message * 2\n")
    handler = load_handler(f"{name}:handle", tmp_path)
    assert handler.call(3) == 6
    assert not handler.is_async
    assert not handler.takes_batch
    assert sys.path[0] == str(tmp_path.resolve())


def test_a_batch_a_coroutine_and_an_attribute_of_an_attribute(write: Callable[[str], str], tmp_path: Path) -> None:
    name = write(
        "class Orders:\n"
        "    async def handle(self, messages: list): ...\n"
        "    def __call__(self, message): ...\n"
        "orders = Orders()\n"
    )
    handler = load_handler(f"{name}:orders.handle", tmp_path)
    assert handler.is_async
    assert handler.takes_batch
    assert not load_handler(f"{name}:orders", tmp_path).takes_batch


def test_the_path_comes_first(write: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "colorsys.py").write_text("def handle(message): return 'ours'\n")
    sys.modules.pop("colorsys", None)
    assert load_handler("colorsys:handle", tmp_path).call(None) == "ours"


@pytest.mark.parametrize("reference", ["", "module", ":f", "module:", "::"])
def test_what_names_nothing(reference: str) -> None:
    with pytest.raises(HandlerError, match="module:function"):
        load_handler(reference)


def test_no_such_module_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(HandlerError, match=r"no module 'absent_xyz' in .* or on the Python path"):
        load_handler("absent_xyz:f", tmp_path)
    with pytest.raises(HandlerError, match="--path"):
        load_handler("absent_xyz.inner:f")
    with pytest.raises(HandlerError, match="not a directory"):
        load_handler("x:f", tmp_path / "absent")


def test_a_module_that_misses_another_is_not_missing_itself(
    write: Callable[[str], str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = write("import absent_dependency_xyz\n")
    with pytest.raises(HandlerError, match="imports 'absent_dependency_xyz', which is not installed"):
        load_handler(f"{name}:f", tmp_path)
    assert "absent_dependency_xyz" in caplog.text


@pytest.mark.parametrize("source", ["1 / 0\n", "def f(:\n", "raise SystemExit(5)\n", "raise ValueError('a\\nb')\n"])
def test_what_it_raises_is_logged_whole_and_told_in_one_line(
    write: Callable[[str], str], tmp_path: Path, caplog: pytest.LogCaptureFixture, source: str
) -> None:
    name = write(source)
    with caplog.at_level(logging.ERROR), pytest.raises(HandlerError, match="while it was imported") as raised:
        load_handler(f"{name}:f", tmp_path)
    assert "\n" not in str(raised.value)
    assert len([record for record in caplog.records if record.exc_info]) == 1
    assert f"{name}.py" in caplog.text  # the traceback


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "has no 'handle'"),
        ("handle = 5\n", "cannot be called"),
        ("class handle: ...\n", "is a class"),
        ("def handle(): ...\n", "exactly one argument"),
        ("def handle(a, b): ...\n", "exactly one argument"),
        ("def handle(*, message): ...\n", "exactly one argument"),
    ],
)
def test_what_is_no_handler(write: Callable[[str], str], tmp_path: Path, source: str, said: str) -> None:
    name = write(source)
    with pytest.raises(HandlerError, match=said):
        load_handler(f"{name}:handle", tmp_path)


def test_the_working_directory_is_looked_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "beside_me.py").write_text("def handle(message):\n    return 'here'\n")
    assert load_handler("beside_me:handle").call(None) == "here"
    with pytest.raises(HandlerError, match=r"there is no module 'not_beside_me' in .* \(give --path DIR\?\)"):
        load_handler("not_beside_me:handle")
