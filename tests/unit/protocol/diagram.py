"""The tables of handover and of stopping as diagrams: `python -m tests.unit.protocol.diagram` writes them to DESIGN.md.

They are made from the tables themselves, and a test sees to it that they are fresh.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from tests.unit.design import DESIGN, with_part

from rocketfleet.consumer import shutdown
from rocketfleet.consumer.handover.ownership import LOCK, TABLE, Lock, News, OwnershipState


def diagram() -> str:
    """The tables in Mermaid: what is believed about the lock, what is done with the queue, and how a member stops."""
    beliefs = {key: (after, () if news is News.NOTHING else (news,)) for key, (after, news) in LOCK.items()}
    return "\n".join(
        [
            "What is believed about the lock; after the slash, what that is news of:",
            "",
            *_block(Lock.NONE, beliefs),
            "",
            "What is done with the queue, by events and by that news; after the slash, the effects:",
            "",
            *_block(OwnershipState.WANTED, TABLE),
            "",
            "How a member stops (`consumer/shutdown.py`); after the slash, the steps:",
            "",
            *_block(shutdown.StopPhase.RUNNING, shutdown.TABLE),
            "",
        ]
    )


def _block(first: Enum, table: Mapping[Any, tuple[Enum, tuple[Enum, ...]]]) -> list[str]:
    arrows: dict[tuple[str, str], list[str]] = {}
    for (before, cause), (after, effects) in table.items():
        if before is after and not effects:
            continue  # nothing happens
        label = _words(cause) + (f" / {', '.join(map(_words, effects))}" if effects else "")
        arrows.setdefault((before.name, after.name), []).append(label)
    lines = [f"    {before} --> {after}: {'<br/>'.join(labels)}" for (before, after), labels in arrows.items()]
    return ["```mermaid", "stateDiagram-v2", f"    [*] --> {first.name}", *lines, "```"]


def _words(one: Enum) -> str:
    return one.name.lower().replace("_", " ")


def written(document: str) -> str:
    """The document with the diagrams of now between its marks."""
    return with_part(document, "protocol diagram", diagram())


if __name__ == "__main__":
    DESIGN.write_text(written(DESIGN.read_text()))
