"""From `module:function` to a handler that can be called, or to one sentence that says why not.

The module's directory (`--path`, a mounted ConfigMap, else the working directory) goes to the front of `sys.path`. What
the module raises while it is imported is the user's to read, so its traceback is logged; everything else is told in the
sentence.
"""

import importlib
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rocketfleet.consumer.handler import Handler, inspect_handler

_log = logging.getLogger(__name__)
_FORM = "write module:function, as orders:handle"


class HandlerError(ValueError):
    """The handler cannot be had; the message says why."""


def load_handler(reference: str, path: Path | None = None) -> Handler:
    """Import the module and find the handler in it."""
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise HandlerError(f"{reference!r} does not name a handler: {_FORM}")
    put_on_path(Path.cwd() if path is None else path)
    found = _find(_import(module_name, path), module_name, attribute)
    try:
        return inspect_handler(found)
    except TypeError as error:
        raise HandlerError(f"{reference} is not a handler: {error}") from error


def put_on_path(path: Path) -> None:
    """Make modules in `path` the first that are found."""
    if not path.is_dir():
        raise HandlerError(f"{path} is not a directory: --path names the one that the handler's module is in")
    directory = str(path.resolve())
    if directory not in sys.path:
        sys.path.insert(0, directory)


def _import(name: str, path: Path | None) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Only if it is this module that is missing; otherwise it is there, and misses one itself.
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            where = f"in {path} or on the Python path" if path is not None else f"in {Path.cwd()} (give --path DIR?)"
            raise HandlerError(f"there is no module {name!r} {where}") from None
        _log.exception("importing %s failed", name)
        raise HandlerError(f"module {name!r} imports {error.name!r}, which is not installed") from error
    except (Exception, SystemExit) as error:
        _log.exception("importing %s failed", name)
        raise HandlerError(f"module {name!r} raised {_brief(error)} while it was imported: see the log") from error


def _find(module: object, module_name: str, attribute: str) -> Callable[[Any], Any]:
    found: Any = module
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise HandlerError(f"module {module_name!r} has no {attribute!r}: {_FORM}") from None
    if not callable(found):
        raise HandlerError(f"{module_name}:{attribute} is a {type(found).__name__}, which cannot be called: {_FORM}")
    if isinstance(found, type):
        raise HandlerError(f"{module_name}:{attribute} is a class: name a function, or an instance that can be called")
    result: Callable[[Any], Any] = found
    return result


def _brief(error: BaseException) -> str:
    """The error in one line."""
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}"[:200] if text else type(error).__name__
