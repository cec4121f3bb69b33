"""What is a link, a heading and code in a Markdown document. Pure.

The site and the tests ask the same questions of our documents, so they are answered once, and as GitHub answers them:
the documents are read there too. Only what our documents use is known: ATX headings, fenced and inline code, inline
links, reference definitions, and `href` and `src` in HTML.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

_FENCE = re.compile(r"^[ \t]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)$")
_INLINE_CODE = re.compile(r"(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TARGETS = (
    re.compile(r"\]\(\s*(?P<target><[^<>\n]*>|[^\s()<>]+)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"),
    re.compile(r"^ {0,3}\[[^\]\n]+\]:[ \t]*(?P<target>\S+)", re.MULTILINE),
    re.compile(r"<[a-z][^<>]*?\b(?:href|src)=\"(?P<target>[^\"]*)\"", re.IGNORECASE),
)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<text>.+?)(?:[ \t]+#+)?[ \t]*$", re.MULTILINE)
_NAMED = re.compile(r"<[a-z][^<>]*?\b(?:id|name)=\"(?P<name>[^\"]+)\"", re.IGNORECASE)
_EXTERNAL = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)


class Link(NamedTuple):
    """A link's target, and where it stands in the text."""

    target: str
    start: int
    end: int

    @property
    def external(self) -> bool:
        return bool(_EXTERNAL.match(self.target))

    @property
    def path(self) -> str:
        return self.target.partition("#")[0]

    @property
    def fragment(self) -> str:
        return self.target.partition("#")[2]


def numbered_lines(markdown: str) -> Iterator[tuple[str, int | None]]:
    """Each line with its end, and the number of the fenced block that it belongs to, fences included, if it does."""
    number = 0
    closing: re.Pattern[str] | None = None
    for line in markdown.splitlines(keepends=True):
        if closing:
            yield line, number
            if closing.match(line):
                closing, number = None, number + 1
        elif (fence := _FENCE.match(line.rstrip("\n"))) and not (fence["mark"][0] == "`" and "`" in fence["info"]):
            yield line, number
            closing = re.compile(rf"^[ \t]*{fence['mark'][0]}{{{len(fence['mark'])},}}[ \t]*$")
        else:
            yield line, None


def masked(markdown: str) -> str:
    """The document with code and comments blanked out; everything else stays where it was."""
    prose = "".join(line if block is None else _blank(line) for line, block in numbered_lines(markdown))
    for hidden in (_COMMENT, _INLINE_CODE):
        prose = hidden.sub(lambda found: _blank(found[0]), prose)
    return prose


def fenced_blocks(markdown: str) -> list[str]:
    """The fenced blocks of a document, with their fences."""
    blocks: dict[int, str] = {}
    for line, block in numbered_lines(markdown):
        if block is not None:
            blocks[block] = blocks.get(block, "") + line
    return list(blocks.values())


def links(markdown: str) -> list[Link]:
    """The links and images of a document, in the order of the text."""
    prose = masked(markdown)
    found = []
    for pattern in _TARGETS:
        for match in pattern.finditer(prose):
            start, end = match.span("target")
            if prose[start : start + 1] == "<":
                start, end = start + 1, end - 1
            found.append(Link(prose[start:end], start, end))
    return sorted(found, key=lambda link: link.start)


def with_targets(markdown: str, change: Callable[[Link], str]) -> str:
    """The document with the target of each link replaced by what `change` makes of it."""
    pieces, done = [], 0
    for link in links(markdown):
        pieces += [markdown[done : link.start], change(link)]
        done = link.end
    return "".join([*pieces, markdown[done:]])


def slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading, were it the only one of its name."""
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", heading)  # a link is its text
    text = re.sub(r"<[^<>]+>", "", text).replace("`", "")
    text = re.sub(r"(?<!\w)_+|_+(?!\w)|\*+", "", text)  # emphasis, but not snake_case
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(markdown: str) -> set[str]:
    """Every anchor of a document: those of its headings, and those it names itself."""
    found: dict[str, int] = {}
    prose = masked(markdown)
    for match in _HEADING.finditer(prose):
        name = slug(markdown[match.start("text") : match.end("text")])
        seen = found[name] = found.get(name, -1) + 1
        if seen:
            found[f"{name}-{seen}"] = 0
    return {*found, *(match["name"] for match in _NAMED.finditer(prose))}


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
