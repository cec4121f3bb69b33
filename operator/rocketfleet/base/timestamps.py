"""Timestamps as Kubernetes writes them."""

from datetime import UTC, datetime


def timestamp(moment: float) -> str:
    """RFC 3339, in seconds."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(wall: float) -> str:
    """Kubernetes' MicroTime."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_of(text: str | None) -> float | None:
    """The same read; None where there is none."""
    return None if text is None else datetime.fromisoformat(text).timestamp()
