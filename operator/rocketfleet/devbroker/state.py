"""What a fleet's directory remembers: what was asked for, which ports were chosen, which processes were started.

One JSON file, replaced as a whole, so that a reader never sees half of it. Secrets are not in it.
"""

import dataclasses
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocketfleet.base.processes import Identity
from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.devbroker.setup.config import FleetSpec

FORMAT = 1


@dataclass
class FleetState:
    """A fleet, running or not."""

    spec: FleetSpec
    ports: dict[str, int]
    java: str
    jars: str
    processes: dict[str, Identity] = field(default_factory=dict)
    """Started and not yet stopped by us; whether they still live is another question."""
    ready: bool = False
    """False while a start is under way, or when it was cut off."""

    @property
    def living(self) -> dict[str, Identity]:
        return {name: identity for name, identity in self.processes.items() if identity.alive}


def load(path: Path) -> FleetState | None:
    """Read the state; None if there is none yet."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    try:
        return _from_json(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DevBrokerError(
            f"{path} is not a state file that this version reads. If nothing of it runs any more, remove it."
        ) from None


def save(path: Path, state: FleetState) -> None:
    """Replace the state file."""
    write_private(path, json.dumps(_to_json(state), indent=2) + "\n")


def write_private(path: Path, text: str) -> None:
    """Replace a file by one that only its owner can read."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _to_json(state: FleetState) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "ready": state.ready,
        "java": state.java,
        "jars": state.jars,
        "spec": dataclasses.asdict(state.spec),
        "ports": state.ports,
        "processes": {name: dataclasses.asdict(identity) for name, identity in state.processes.items()},
    }


def _from_json(content: dict[str, Any]) -> FleetState:
    if content["format"] != FORMAT:
        raise ValueError(content["format"])
    spec = dict(content["spec"])
    spec["properties"] = tuple((str(key), str(value)) for key, value in spec["properties"])
    return FleetState(
        spec=FleetSpec(**spec),
        ports={str(name): int(port) for name, port in content["ports"].items()},
        java=str(content["java"]),
        jars=str(content["jars"]),
        processes={
            str(name): Identity(int(identity["pid"]), str(identity["began"]))
            for name, identity in content["processes"].items()
        },
        ready=bool(content["ready"]),
    )
