"""From `module:function` or `file.py` to a pipeline that can be called, or to one sentence that says why not.

A pipeline is a function that takes a SparkSession, and after it the arguments of the command line. In a file it is the
function `pipeline`, unless another is named: `file.py:function`.

Spark's Python workers are other processes, in the end on other machines: what a pipeline's functions come from must be
theirs too. A module is installed where they run. A file is not, nor are the neighbours that it imports: `script_files`
names them, to be sent.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

DEFAULT_FUNCTION: Final = "pipeline"
_OWN: Final = "rocketfleet"  # sent in a way of its own (shipping.py)
_FORM: Final = "write module:function, file.py or file.py:function"


class PipelineError(ValueError):
    """The pipeline cannot be had; the message says why."""


def load_pipeline(reference: str) -> Callable[..., Any]:
    """Import the module or file and find the function in it."""
    where, name = _split(reference)
    if not where or not name:
        raise PipelineError(f"{reference!r} does not name a pipeline: {_FORM}")
    module = _from_file(Path(where)) if where.endswith(".py") else _from_module(where)
    found = getattr(module, name, None)
    if found is None:
        raise PipelineError(f"{where} has no function {name}: a pipeline is a function that takes a SparkSession")
    if not callable(found):
        raise PipelineError(f"{name} in {where} is a {type(found).__name__}, and not a function")
    result: Callable[..., Any] = found
    return result


def script_files(reference: str) -> list[Path]:
    """What of a file's directory is in use, once it is loaded: the file and the neighbours it has imported.

    Files and the directories of packages. A module has nothing to send: it is installed.
    """
    where, _ = _split(reference)
    if not where.endswith(".py"):
        return []
    directory = Path(where).resolve().parent
    found = {_place(module) for name, module in list(sys.modules.items()) if "." not in name and name != _OWN}
    return sorted(path for path in found if path is not None and path.parent == directory)


def _split(reference: str) -> tuple[str, str]:
    """The module or file, and the function."""
    if reference.endswith(".py"):
        return reference, DEFAULT_FUNCTION
    where, _, name = reference.rpartition(":")
    return where, name


def _place(module: ModuleType) -> Path | None:
    """The file of a module, or the directory of a package; None for what was never a file."""
    packages = list(getattr(module, "__path__", ()))
    place = packages[0] if packages else getattr(module, "__file__", None)
    if not isinstance(place, str) or not (packages or place.endswith(".py")):
        return None
    return Path(place).resolve()


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise PipelineError(f"there is no file {path}")
    directory = str(path.resolve().parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)  # as Python does for a script: it may import its neighbours
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None, "a .py file has a spec"
    assert spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _from_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise PipelineError(f"there is no module {name!r} on the Python path") from None
        raise
