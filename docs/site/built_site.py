"""Whether the built site is whole: every link leads somewhere, and nothing is loaded from another host.

MkDocs checks the links of Markdown. Here the finished HTML is read, the theme's part of it too.
"""

import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {"src", "srcset", "data", "poster"}
"""Attributes that make a browser load something by itself."""
_ONLY_SAID = {"canonical", "next", "prev", "alternate", "author", "license"}
"""What a `<link>` may be without anything being loaded for it."""
_CSS_LOAD = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(?P<target>[^'\")\s]+)")


class Page(HTMLParser):
    """The anchors of a page, where it links to, and what it loads."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self._in_style = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self._in_style = tag == "style"
        self.loads += [target for name in _LOADS & given.keys() if tag != "meta" for target in _candidates(name, given)]
        self.loads += [match["target"] for match in _CSS_LOAD.finditer(given.get("style", ""))]
        if tag == "link":
            said = set(given.get("rel", "").split()) <= _ONLY_SAID
            (self.links if said else self.loads).append(given.get("href", ""))
        elif "href" in given:
            self.links.append(given["href"])

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.loads += [match["target"] for match in _CSS_LOAD.finditer(data)]


def problems(site: Path) -> Iterator[str]:
    """A sentence for each link that leads nowhere, and for each thing that would be loaded from elsewhere."""
    pages = {path.relative_to(site).as_posix(): Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for name, page in pages.items():
        for target in page.loads:
            yield from _load_problem(site, name, target)
        for target in page.links:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue  # the reader may follow it, the browser does not by itself
            to = _place(name, parts.path)
            if not (site / to).is_file():
                yield f"{name} links to {target}, which is not there"
            elif parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].anchors:
                yield f"{name} links to {target}, but {to} has no such anchor"
    for path in sorted(site.rglob("*.css")):
        name = path.relative_to(site).as_posix()
        for match in _CSS_LOAD.finditer(path.read_text()):
            yield from _load_problem(site, name, match["target"])


def _load_problem(site: Path, name: str, target: str) -> Iterator[str]:
    parts = urlsplit(target)
    if parts.scheme == "data":
        return
    if parts.scheme or parts.netloc:
        yield f"{name} loads {target} from another host"
    elif parts.path and not (site / _place(name, parts.path)).is_file():
        yield f"{name} loads {target}, which is not there"


def _place(page: str, path: str) -> str:
    """The file of the site that a path in a page names."""
    decoded = unquote(path)
    if decoded.startswith("/"):
        place = decoded.lstrip("/")
    else:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(page), decoded)) if decoded else page
    return posixpath.join(place, "index.html") if place in {"", "."} or decoded.endswith("/") else place


def _candidates(name: str, given: dict[str, str]) -> list[str]:
    if name == "srcset":
        return [part.split()[0] for part in given[name].split(",") if part.strip()]
    return [given[name]]
