"""Where the control port listens, and how others learn it."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rocketfleet.base.settings_error import SettingsError

_log = logging.getLogger(__name__)
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ControlPort:
    """An address and a port, 0 for a free one. `file` is written once it listens."""

    bind: str = LOOPBACK
    port: int = 0
    file: Path | None = None

    def open(self, start: Callable[[str, int], tuple[str, int]]) -> tuple[str, int]:
        """Listen by calling `start`; what goes wrong is a sentence."""
        try:
            return start(self.bind, self.port)
        except OSError as error:
            raise self.refused(error) from error

    def refused(self, error: OSError) -> SettingsError:
        return SettingsError(
            f"cannot listen on {shown(self.bind, self.port)}: {error.strerror or error}; "
            "choose another --bind or --port (0 is a free one)"
        )

    def announce(self, host: str, port: int) -> int:
        """Say where it listens: in the log, and in the file for whoever started us with port 0."""
        _log.info("control port: %s", shown(host, port), extra={"control": shown(host, port)})
        if self.file is not None:
            draft = self.file.with_name(f".{self.file.name}.{os.getpid()}")
            draft.write_text(f"{shown(host, port)}\n")
            draft.replace(self.file)
        return port


def shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
