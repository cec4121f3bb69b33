"""Whose keys requests are signed with: given once, or in a file, or in a directory with a file for each (which is how a
Secret is mounted), that is followed: a key that is renewed there is used from then on.

`current` is what a connection reads for every request, so it is a plain attribute. Somebody else calls `refresh`: the
client every few seconds, every attempt to connect, and a call that was refused. What cannot be read, or is half
written, leaves the keys as they were.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Final

from rocketfleet.client.transport.followed_files import Fingerprint, fingerprint
from rocketfleet.wire.acl import Credentials

_log = logging.getLogger(__name__)
KEY_FILES: Final = ("accessKey", "secretKey", "securityToken")
_READ_TRIES: Final = 3


class Keys:
    """See the module. ValueError if the file cannot be read at the beginning."""

    __slots__ = ("_path", "_seen", "current")

    def __init__(self, credentials: Credentials | None = None, path: str | None = None) -> None:
        self.current = credentials
        self._path = None if path is None else Path(path)
        self._seen: Fingerprint | None = None
        if self._path is not None:
            self.current, self._seen = _read_whole(self._path)

    def refresh(self) -> bool:
        """Look whether the file has changed, and take what it has. Says whether the keys are others now."""
        if self._path is None or fingerprint(_files(self._path)) == self._seen:
            return False
        try:
            found, self._seen = _read_whole(self._path)
        except ValueError as error:
            self._seen = fingerprint(_files(self._path))  # told once; the next change is looked at again
            _log.warning("the credentials have changed, but cannot be used, and those from before are kept: %s", error)
            return False
        if found == self.current:
            return False
        _log.info("the credentials in %s have changed, and are used from now on", self._path)
        self.current = found
        return True


def read_credentials(path: Path) -> Credentials:
    """`accessKey`, `secretKey` and perhaps `securityToken`: from JSON, from `name: value` or `name = value`, or from
    the files of a directory. ValueError has a sentence that names the file, and no secret.
    """
    if path.is_dir():
        found = {name.lower(): text for name in KEY_FILES if (text := _text(path / name, needed=False).strip())}
        advice = "it needs the files accessKey and secretKey"
    else:
        found = _named_values(_text(path))
        advice = "write `accessKey: …` and `secretKey: …` on two lines, or a JSON object of both"
    access_key, secret_key = found.get("accesskey"), found.get("secretkey")
    if not access_key or not secret_key:
        missing = "secretKey" if access_key else "accessKey"
        raise ValueError(f"{path} has no {missing}: {advice}")
    return Credentials(access_key, secret_key, found.get("securitytoken") or None)


def _read_whole(path: Path) -> tuple[Credentials, Fingerprint]:
    """The credentials, all of the same moment, and the fingerprint of that moment."""
    for _ in range(_READ_TRIES):
        before = fingerprint(_files(path))
        found = read_credentials(path)
        if fingerprint(_files(path)) == before:
            return found, before
    raise ValueError(f"{path} changes all the time")


def _files(path: Path) -> tuple[str, ...]:
    return (str(path), *(str(path / name) for name in KEY_FILES))


def _text(path: Path, *, needed: bool = True) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        if not needed and isinstance(error, FileNotFoundError):
            return ""
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ValueError(f"cannot read credentials from {path}: {reason}") from error


def _named_values(text: str) -> dict[str, str]:
    """Names without regard to case, `_` and `-`. What is not understood is left out, never quoted: it may be secret."""
    pairs: dict[str, str] = {}
    try:
        content = json.loads(text)
    except ValueError:
        for line in text.splitlines():
            stripped = line.strip()
            if stripped.startswith("#"):
                continue
            cut = min((place for place in (stripped.find(":"), stripped.find("=")) if place > 0), default=0)
            if cut:
                pairs[stripped[:cut].strip()] = _unquoted(stripped[cut + 1 :].strip())
    else:
        if isinstance(content, dict):
            pairs = {str(name): value for name, value in content.items() if isinstance(value, str)}
    return {name.lower().replace("_", "").replace("-", ""): value for name, value in pairs.items()}


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"" else value
