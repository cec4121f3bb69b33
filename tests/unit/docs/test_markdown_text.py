import pytest
from hypothesis import given
from hypothesis import strategies as st

from markdown_text import anchors, fenced_blocks, links, masked, slug, with_targets

DOCUMENT = """# One `two` three

See [a
page](other.md#part), ![a picture](picture.png "its title"), [both](<with blank.md>) and [here](#one-two-three).
`[no](code.md)` is code, and so is
```
[no](block.md)
# no heading
```
- ```yaml
  [no](item.md)
  ```
<!-- [no](comment.md) --> <a id="named"></a> <img src="drawn.svg">

[below]: reference.md

## Again
## Again
"""


def test_links_are_found_and_code_is_not_searched() -> None:
    assert [link.target for link in links(DOCUMENT)] == [
        "other.md#part",
        "picture.png",
        "with blank.md",
        "#one-two-three",
        "drawn.svg",
        "reference.md",
    ]


def test_a_link_has_a_path_and_a_fragment() -> None:
    first = links(DOCUMENT)[0]
    assert (first.path, first.fragment, first.external) == ("other.md", "part", False)
    assert links("[x](https://example.com/a#b)")[0].external
    assert links("[x](mailto:somebody@example.com)")[0].external


def test_targets_are_replaced_where_they_stand() -> None:
    changed = with_targets(DOCUMENT, lambda link: link.target.upper())
    assert "page](OTHER.MD#PART)" in changed
    assert "`[no](code.md)`" in changed
    assert changed.lower() == DOCUMENT.lower()


def test_anchors_are_those_of_github() -> None:
    assert anchors(DOCUMENT) == {"one-two-three", "named", "again", "again-1"}


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("What is promised, and when", "what-is-promised-and-when"),
        ("`rocketfleet run` & more", "rocketfleet-run--more"),
        ("[A link](somewhere.md) in **bold**", "a-link-in-bold"),
        ("the name snake_case, and _emphasis_", "the-name-snake_case-and-emphasis"),
        ("消费组", "消费组"),
    ],
)
def test_slugs(heading: str, expected: str) -> None:
    assert slug(heading) == expected


def test_blocks_are_told_apart_even_without_a_line_between_them() -> None:
    assert fenced_blocks("```\na\n```\n~~~ x\n```\n~~~\nb\n") == ["```\na\n```\n", "~~~ x\n```\n~~~\n"]


@given(st.text(st.sampled_from("ab`~\n #-[]()<>!") | st.characters(codec="utf-8"), max_size=80))
def test_masking_moves_nothing(text: str) -> None:
    hidden = masked(text)
    assert len(hidden) == len(text)
    assert all(shown in (was, " ") for shown, was in zip(hidden, text, strict=True))
    assert with_targets(text, lambda link: link.target) == text
