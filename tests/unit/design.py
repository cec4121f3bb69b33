"""DESIGN.md, and the parts of it that are written from the code: each stands between two marks."""

from pathlib import Path

DESIGN = Path(__file__).resolve().parents[2] / "DESIGN.md"


def with_part(document: str, name: str, content: str) -> str:
    """The document with this content between the marks of that name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = document.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"DESIGN.md has no {begin} and {end}")
    return f"{before}{begin}\n{content}{end}{after}"
