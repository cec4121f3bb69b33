"""What `rocketfleet` exports: every name once, known to type checkers, described, and imported only when it is used."""

import ast
import collections.abc
import concurrent.futures
import importlib
import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

import rocketfleet
import rocketfleet.spark
from rocketfleet.spark.submitting.shipping import zipped

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(rocketfleet.__file__)
NAMES = sorted(set(rocketfleet.__all__) - {"__version__"})
HOMES: dict[str, str] = rocketfleet._HOMES
CLASSES = [name for name in NAMES if inspect.isclass(getattr(rocketfleet, name))]
# The package's own: a client that several share, whose methods are the whole protocol, and what a broker is told.
# And the parts of a consumer, which worker and tests look at, with its timings, which are for tests alone.
NOT_FOR_USERS = {
    "Client",
    "SubscriptionData",
    "BrokerRequests",
    "ConsumerTimings",
    "Holdings",
    "Membership",
    "Rebalancer",
    "StopStep",
}


def typed_imports(module: Path) -> dict[str, str]:
    """What a type checker sees imported: public name → module:attribute."""
    found: dict[str, str] = {}
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom) and (line.module or "").startswith("rocketfleet"):
                    found |= {name.asname or name.name: f"{line.module}:{name.name}" for name in line.names}
    return found


def loaded_by(code: str) -> set[str]:
    """Which modules of ours a fresh interpreter has loaded after this code."""
    code += "\nimport sys; print(*(m for m in sys.modules if m.startswith('rocketfleet')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_lists_of_public_names_are_the_same() -> None:
    assert sorted(HOMES) == NAMES
    assert typed_imports(SOURCE) == HOMES


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_what_its_module_has(name: str) -> None:
    module, _, attribute = HOMES[name].partition(":")
    assert getattr(rocketfleet, name) is getattr(importlib.import_module(module), attribute)
    assert name in dir(rocketfleet)


def test_everything_can_be_imported_at_once() -> None:
    got: dict[str, Any] = {}
    exec("from rocketfleet import *", got)
    assert set(rocketfleet.__all__) <= got.keys()


def test_no_public_name_hides_a_module() -> None:
    modules = {path.stem for path in SOURCE.parent.iterdir()}
    assert modules.isdisjoint(NAMES)


def test_a_name_that_is_not_there_is_an_error_that_says_so() -> None:
    with pytest.raises(AttributeError, match=r"module 'rocketfleet' has no attribute 'Consumers'"):
        _ = rocketfleet.Consumers  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match=r"cannot import name 'Consumers'"):
        exec("from rocketfleet import Consumers")
    with pytest.raises(AttributeError, match=r"module 'rocketfleet.spark' has no attribute 'Consumers'"):
        _ = rocketfleet.spark.Consumers  # type: ignore[attr-defined]


def test_what_spark_exports() -> None:
    from rocketfleet.spark.repeats import drop_repeats

    assert rocketfleet.spark.drop_repeats is drop_repeats
    assert set(rocketfleet.spark.__all__) <= set(dir(rocketfleet.spark))
    assert typed_imports(Path(rocketfleet.spark.__file__)).keys() <= set(rocketfleet.spark.__all__)


def test_nothing_is_loaded_before_it_is_used() -> None:
    assert loaded_by("import rocketfleet") == {"rocketfleet"}
    assert loaded_by("import rocketfleet.spark") == {"rocketfleet", "rocketfleet.spark"}
    # What a handler needs, in a process that may have nothing to do with sending.
    of_a_handler = loaded_by("from rocketfleet import ReceivedMessage, RETRY, SUCCESS, ConsumeResult")
    assert not any(name.startswith(("rocketfleet.client", "rocketfleet.producer")) for name in of_a_handler)


def test_the_version_is_that_of_the_package_that_is_built() -> None:
    assert ProjectMetadata(str(ROOT), PluginManager()).version == rocketfleet.__version__


def test_the_version_is_known_in_an_archive_too(tmp_path: Path) -> None:
    # As in Spark's executors: from a zip file, with nothing installed.
    archive = zipped(SOURCE.parent, tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import rocketfleet as r; print(r.__version__, r.__file__)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [rocketfleet.__version__, str(archive / "rocketfleet" / "__init__.py")]


def test_every_name_has_a_line_in_the_documentation() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    rows = re.findall(r"^\| `([\w.]+)` \| \S.* \|$", page, re.MULTILINE)
    assert sorted(name for name in rows if not name.startswith("rocketfleet.")) == NAMES
    assert {"rocketfleet.__version__", "rocketfleet.spark"} <= set(rows)


@pytest.mark.parametrize("name", CLASSES)
def test_what_a_public_class_takes_and_gives_is_public_too(name: str) -> None:
    public = {getattr(rocketfleet, other) for other in CLASSES}
    internal = {
        kind.__name__
        for function in public_functions(getattr(rocketfleet, name))
        for kind in kinds_in(function)
        if kind.__module__.startswith("rocketfleet.") and kind not in public
    }
    assert internal <= NOT_FOR_USERS


def public_functions(kind: type) -> Iterator[Any]:
    """The constructor, methods and properties of a class that users may call."""
    for name, member in inspect.getmembers(kind):
        if name == "__init__" or not name.startswith("_"):
            function = member.fget if isinstance(member, property) else member
            if inspect.isfunction(function) and function.__module__.startswith("rocketfleet."):
                yield function
    yield kind


def kinds_in(annotated: Any) -> Iterator[type]:
    """The classes that annotations of a function or class name, also within others."""
    known = {
        "concurrent": concurrent,
        **vars(collections.abc),
        **{other: getattr(rocketfleet, other) for other in NAMES},
    }
    waiting = list(typing.get_type_hints(annotated, localns=known).values())
    while waiting:
        one = waiting.pop()
        if inspect.isclass(one) and not typing.get_args(one):
            yield one
        waiting += [part for part in _flat(typing.get_args(one)) if part is not Ellipsis]


def _flat(parts: tuple[Any, ...]) -> Iterator[Any]:
    for part in parts:
        yield from _flat(tuple(part)) if isinstance(part, list) else [part]
