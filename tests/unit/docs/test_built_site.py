from pathlib import Path

import pytest

from built_site import problems

WHOLE = (
    '<link rel="stylesheet" href="a/s.css"><p id="x"></p><a href="b.html#y">b</a><a href="https://example.com">out</a>'
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "s.css").write_text("p { background: url(../p.png) } q { src: url(data:font/woff2;base64,AA) }")
    (tmp_path / "p.png").touch()
    (tmp_path / "index.html").write_text(WHOLE)
    (tmp_path / "b.html").write_text('<h1 id="y">b</h1><a href="index.html#x">i</a><a href="/b.html">b</a><a href=".">')
    return tmp_path


def test_a_whole_site_has_no_problems(site: Path) -> None:
    assert list(problems(site)) == []


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="c.html">', "links to c.html, which is not there"),
        ('<a href="b.html#z">', "but b.html has no such anchor"),
        ('<a href="#z">', "but index.html has no such anchor"),
        ('<img src="c.png">', "loads c.png, which is not there"),
        ('<script src="https://cdn.example/x.js">', "loads https://cdn.example/x.js from another host"),
        ('<script src="//cdn.example/x.js">', "from another host"),
        ('<link rel="preconnect" href="https://fonts.example">', "from another host"),
        ('<img srcset="p.png 1x, https://cdn.example/p.png 2x">', "from another host"),
        ('<p style="background: url(https://cdn.example/p.png)">', "from another host"),
        ("<style>@import 'https://cdn.example/s.css';</style>", "from another host"),
    ],
)
def test_what_is_not_there_or_elsewhere_is_said(site: Path, html: str, problem: str) -> None:
    (site / "index.html").write_text(WHOLE + html)
    found = list(problems(site))
    assert len(found) == 1
    assert problem in found[0]


def test_style_sheets_are_read_too(site: Path) -> None:
    (site / "a" / "s.css").write_text("@import url('https://fonts.example/css');")
    assert list(problems(site)) == ["a/s.css loads https://fonts.example/css from another host"]
