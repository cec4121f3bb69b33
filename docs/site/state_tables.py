"""State diagrams as tables. Pure.

GitHub draws a Mermaid diagram in the browser. On the site that would take three megabytes of script from another host,
and the site loads nothing from other hosts. A table of the same transitions says as much, and can be searched.
"""

import re
from itertools import groupby

from markdown_text import numbered_lines

_ARROW = re.compile(r"^\s*(?P<before>\S+) --> (?P<after>[^\s:]+)(?::\s*(?P<labels>.*?))?\s*$")


def with_tables(markdown: str) -> str:
    """The document with every Mermaid state diagram replaced by the table of its transitions."""
    out: list[str] = []
    for block, numbered in groupby(numbered_lines(markdown), key=lambda pair: pair[1]):
        lines = [line for line, _ in numbered]
        out += [_table(lines)] if block is not None and lines[0].strip() == "```mermaid" else lines
    return "".join(out)


def _table(block: list[str]) -> str:
    if block[1].strip() != "stateDiagram-v2":
        raise ValueError(f"only state diagrams can be shown on the site, not {block[1].strip()!r}")
    rows = ["| from | on | gives | to |", "|---|---|---|---|"]
    for line in block[2:-1]:
        arrow = _ARROW.match(line)
        if not arrow:
            raise ValueError(f"no transition of a state diagram: {line.strip()!r}")
        before = "(start)" if arrow["before"] == "[*]" else f"`{arrow['before']}`"
        for label in (arrow["labels"] or "").split("<br/>"):
            cause, _, effects = label.partition(" / ")
            rows.append(f"| {before} | {cause} | {effects} | `{arrow['after']}` |")
    return "\n".join(rows) + "\n"
