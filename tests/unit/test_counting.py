"""Numbers in sentences: one thing is one thing."""

import pytest

from rocketfleet.base.counting import counted


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (counted(1), "1 message"),
        (counted(0), "0 messages"),
        (counted(2, "queue"), "2 queues"),
        (counted(1, "message waits", "messages wait"), "1 message waits"),
        (counted(7, "message waits", "messages wait"), "7 messages wait"),
        (counted(12000, grouped=True), "12,000 messages"),
        (counted(1, "empty line", grouped=True), "1 empty line"),
    ],
)
def test_a_number_and_its_noun_agree(said: str, expected: str) -> None:
    assert said == expected
