import re
from pathlib import Path

import pytest

from repository_pages import Site

FILES = {
    "README.md": "[docs](docs/README.md) [run](docs/run.md#start) [licence](LICENSE)",
    "LICENSE": "free",
    "docs/README.md": "[run](run.md)",
    "docs/run.md": "[home](../README.md) ![p](p.png) [examples](../examples) [out](https://example.com) [here](#start)",
    "docs/p.png": "",
    "docs/site/notes.md": "[x](nowhere)",
    "examples/one.yaml": "a: 1",
    "examples/more/two.py": "b = 2",
}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Site(tmp_path, FILES)


def test_every_document_and_what_it_leads_to_has_a_page(site: Site) -> None:
    assert site.page_of == {
        "README.md": "index.md",
        "docs/README.md": "overview.md",
        "docs/run.md": "run.md",
        "LICENSE": "source/LICENSE.md",
        "examples": "source/examples.md",
        "examples/one.yaml": "source/examples/one.yaml.md",
        "examples/more": "source/examples/more.md",
        "examples/more/two.py": "source/examples/more/two.py.md",
    }


def test_links_lead_to_pages(site: Site) -> None:
    def moved(document: str) -> str:
        return site.with_links(document, site.text_of(document))

    assert moved("README.md") == "[docs](overview.md) [run](run.md#start) [licence](source/LICENSE.md)"
    assert moved("docs/run.md") == (
        "[home](index.md) ![p](p.png) [examples](source/examples.md) [out](https://example.com) [here](#start)"
    )
    assert "[one.yaml](examples/one.yaml.md)" in moved("examples")
    assert "[two.py](more/two.py.md)" in moved("examples/more")


def test_a_file_is_shown_as_it_is(site: Site) -> None:
    assert site.text_of("examples/more/two.py") == "# examples/more/two.py\n\n````python\nb = 2\n````\n"


@pytest.mark.parametrize("target", ["gone.yaml", "gone.md", "docs/gone/", "../outside.md"])
def test_a_link_to_nothing_is_an_error(tmp_path: Path, target: str) -> None:
    (tmp_path.parent / "outside.md").touch()
    (tmp_path / "README.md").write_text(f"[x]({target})")
    with pytest.raises(FileNotFoundError, match=rf"README\.md links to {re.escape(target)}"):
        Site(tmp_path, ["README.md"])
