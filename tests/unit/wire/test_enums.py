"""Each word has two spellings, and neither may change: objects are stored with the one, brokers know the other."""

import pytest

from rocketfleet.wire.enums import ConsumeFromWhere, ExpressionType, MessageModel


@pytest.mark.parametrize(
    ("words", "spellings"),
    [
        (MessageModel, {"Clustering": "CLUSTERING", "Broadcasting": "BROADCASTING"}),
        (
            ConsumeFromWhere,
            {
                "LastOffset": "CONSUME_FROM_LAST_OFFSET",
                "FirstOffset": "CONSUME_FROM_FIRST_OFFSET",
                "Timestamp": "CONSUME_FROM_TIMESTAMP",
            },
        ),
        (ExpressionType, {"Tag": "TAG", "SQL92": "SQL92"}),
    ],
)
def test_a_manifest_s_spelling_and_a_broker_s(
    words: type[MessageModel | ConsumeFromWhere | ExpressionType], spellings: dict[str, str]
) -> None:
    assert {str(word): word.wire for word in words} == spellings
