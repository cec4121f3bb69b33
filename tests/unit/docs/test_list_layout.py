import pytest

from list_layout import relaid


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("- one\n- two\n", "-   one\n-   two\n"),
        ("- one\n  goes on\n  - inner\n- two\n", "-   one\n    goes on\n    -   inner\n-   two\n"),
        ("1. one\n   1. inner\n2. two\n", "1.  one\n    1.  inner\n2.  two\n"),
        ("- one\nlazily goes on\n", "-   one\n    lazily goes on\n"),
        ("Words:\n- one\n", "Words:\n\n-   one\n"),
        ("It was in\n1999. A year.\n", "It was in\n1999. A year.\n"),
        ("- one\n\n  more of it\n\nno more\n", "-   one\n\n    more of it\n\nno more\n"),
        (
            "- one\n  ```\n  - code\n    code\n  ```\n- two\n",
            "-   one\n    ```\n    - code\n      code\n    ```\n\n-   two\n",
        ),
        ("- one\n\n```\n- code\n```\n", "-   one\n\n```\n- code\n```\n"),
        ("## Heading\n- one\n", "## Heading\n-   one\n"),
    ],
)
def test_lists_are_laid_out_by_four_spaces(written: str, expected: str) -> None:
    assert relaid(written) == expected


def test_what_has_no_list_stays_as_it_is() -> None:
    text = "# A\n\nb\nc\n\n| d |\n|---|\n| - e |\n\n```\n- f\n```\n"
    assert relaid(text) == text
