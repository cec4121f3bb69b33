"""The facade's consumer without a broker: what it takes as the original does."""

import pytest

from rocketfleet.facade.client import PushConsumer


def test_tags_that_no_message_has_are_taken_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    consumer = PushConsumer("orders")
    consumer.subscribe("orders", lambda _: None, "created || paid")
    assert not caplog.records
    consumer.subscribe("orders", lambda _: None, "created, paid")
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "orders: the tag 'created, paid' has a comma in it" in record.getMessage()
