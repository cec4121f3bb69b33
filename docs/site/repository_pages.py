"""Which page of the site shows which file of the repository, and how links lead from one to the other.

`docs/` holds most pages. README and its neighbours are pages too, straight from where they are, so that nothing is
written twice. What pages link to besides (a manifest, the chart's values, a folder of examples) becomes a page below
`source/`: the site is whole without the repository, and no link leads out of it by accident.
"""

import posixpath
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from markdown_text import Link, links, with_targets

ELSEWHERE = {
    "README.md": "index.md",
    "README.zh-CN.md": "zh-cn.md",
    "docs/README.md": "overview.md",
    "examples/README.md": "examples.md",
    "DESIGN.md": "design.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "bench/README.md": "benchmarks.md",
}
"""Pages whose place on the site is not their place below `docs/`."""

SOURCE = "source/"
_FENCE_LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".sh": "sh", ".toml": "toml", ".json": "json"}


def tracked_files(root: Path) -> list[str]:
    """What git tracks or would track: a file that is not ignored is about to be committed."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return [name for name in listing.stdout.splitlines() if (root / name).exists()]


def pages(files: Iterable[str]) -> dict[str, str]:
    """The page for each document of the repository that has one of its own."""
    found = {}
    for name in files:
        if name in ELSEWHERE:
            found[name] = ELSEWHERE[name]
        elif name.startswith("docs/") and name.endswith(".md") and not name.startswith("docs/site/"):
            found[name] = name.removeprefix("docs/")
    return found


def resolved(document: str, path: str) -> str:
    """The file of the repository that a link in a document leads to; "" is the root."""
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(document), path))
    return "" if joined == "." else joined


class Site:
    """Every page: those of documents, and those of the files and folders that they lead to."""

    def __init__(self, root: Path, files: Iterable[str]) -> None:
        self.root = root
        self.files = sorted(files)
        self.page_of = pages(self.files)
        self.made: dict[str, str] = {}
        """The text of pages that no document is behind, by the file or folder that they show."""
        waiting = [*self.page_of]
        while waiting:
            document = waiting.pop()
            for link in links(self.text_of(document)):
                target = resolved(document, link.path)
                if link.external or not link.path or target in self.page_of or self.is_asset(target):
                    continue
                if target.startswith("..") or not (root / target).exists():
                    raise FileNotFoundError(f"{document} links to {link.path}, which is not in the repository")
                is_document = target.endswith(".md")
                self.page_of[target] = f"{SOURCE}{target}" if is_document else f"{SOURCE}{target}.md"
                if not is_document:
                    self.made[target] = self.shown(target)
                waiting.append(target)
        self.document_of: Mapping[str, str] = {page: document for document, page in self.page_of.items()}

    def text_of(self, document: str) -> str:
        return self.made[document] if document in self.made else (self.root / document).read_text()

    def is_asset(self, name: str) -> bool:
        """Whether MkDocs copies the file as it is: pictures below docs/."""
        return name.startswith("docs/") and name.endswith((".png", ".svg", ".jpg"))

    def shown(self, name: str) -> str:
        """A page that shows a file, or what is in a folder."""
        path = self.root / name
        if path.is_dir():
            inside = sorted({self._child(name, file) for file in self.files if file.startswith(f"{name}/")})
            return f"# {name}\n\n" + "".join(f"- [{child}]({posixpath.basename(name)}/{child})\n" for child in inside)
        language = _FENCE_LANGUAGES.get(path.suffix, "text")
        return f"# {name}\n\n````{language}\n{path.read_text().rstrip()}\n````\n"

    def _child(self, folder: str, file: str) -> str:
        return file.removeprefix(f"{folder}/").split("/")[0]

    def with_links(self, document: str, markdown: str) -> str:
        """The document's text with links to pages of the site in place of links to files of the repository."""
        here = posixpath.dirname(self.page_of[document])

        def moved(link: Link) -> str:
            if link.external or not link.path:
                return link.target
            target = resolved(document, link.path)
            to = target.removeprefix("docs/") if self.is_asset(target) else self.page_of[target]
            return posixpath.relpath(to, here or ".") + (f"#{link.fragment}" if link.fragment else "")

        return with_targets(markdown, moved)
