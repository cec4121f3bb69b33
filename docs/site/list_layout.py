"""Lists as Python-Markdown wants them, from lists as GitHub takes them. Pure.

MkDocs renders with Python-Markdown, which knows a list inside a list only by four spaces, and begins none right below
a paragraph. GitHub, editors and our documents follow CommonMark: what is indented as far as an item's text belongs to
the item. So the documents are laid out anew on their way to the site, and only there.
"""

import re

from markdown_text import numbered_lines

_ITEM = re.compile(r"^ *(?P<mark>[-*+]|\d{1,9}[.)]) +(?=\S)")
_STEP = 4
"""The spaces by which Python-Markdown knows a level."""


def relaid(markdown: str) -> str:
    """The document with its lists indented by four spaces for each level, and set off from paragraphs."""
    levels: list[int] = []  # of the items that are open: the column where their text begins
    out: list[str] = []
    after_blank, paragraph, last_block = True, False, None
    for line, block in numbered_lines(markdown):
        blank = not line.strip()
        column = len(line) - len(line.lstrip(" "))
        item = _ITEM.match(line) if block is None else None
        if item and paragraph and item["mark"] not in {"-", "*", "+", "1.", "1)"}:
            item = None  # a number that a wrapped line happens to begin with
        inside_block = block is not None and block == last_block
        if not blank and not inside_block and (item or after_blank or block is not None):
            while levels and column < levels[-1]:
                levels.pop()
        if item and (paragraph or last_block is not None):
            out.append("\n")
        if item:
            out.append(" " * (_STEP * len(levels)) + f"{item['mark']} ".ljust(_STEP) + line[item.end() :])
            levels.append(item.end())
        elif levels and not blank:
            out.append(" " * (_STEP * len(levels)) + line[min(column, levels[-1]) :])
        else:
            out.append(line)
        # Below an item's own text a nested list needs no empty line.
        paragraph = not (blank or item or levels or block is not None or line.startswith(("#", "|", "<")))
        after_blank, last_block = blank, block
    return "".join(out)
