"""What the broker's answers mean, single and batch."""

import pytest

from rocketfleet.client.errors import ProtocolError
from rocketfleet.producer.errors import BatchAnswerMismatch
from rocketfleet.producer.result import STATUS_OF_CODE, SendResult, SendStatus, read_batch, read_single
from rocketfleet.wire.queue import MessageQueue

FIELDS = {"msgId": "7F00A1", "queueId": "3", "queueOffset": "41", "transactionId": "tx", "MSG_REGION": "r1"}


def test_every_status_has_its_code() -> None:
    assert {code: status.name for code, status in STATUS_OF_CODE.items()} == {
        0: "SEND_OK",
        10: "FLUSH_DISK_TIMEOUT",
        11: "SLAVE_NOT_AVAILABLE",
        12: "FLUSH_SLAVE_TIMEOUT",
    }


def test_a_single_answer() -> None:
    result = read_single(SendStatus.SEND_OK, "t", "a", "id", {**FIELDS, "TRACE_ON": "false", "recallHandle": "h"})
    assert result == SendResult(
        SendStatus.SEND_OK, "id", "7F00A1", MessageQueue("t", "a", 3), 41, "tx", "r1", trace_on=False, recall_handle="h"
    )


def test_what_the_broker_leaves_out_has_defaults() -> None:
    result = read_single(SendStatus.SEND_OK, "t", "a", "id", {"msgId": "x", "queueId": "0", "queueOffset": "0"})
    assert (result.region, result.trace_on, result.transaction_id) == ("DefaultRegion", True, None)


@pytest.mark.parametrize("field", ["msgId", "queueId", "queueOffset"])
def test_an_answer_without_its_fields_is_the_brokers_fault(field: str) -> None:
    fields = {name: value for name, value in FIELDS.items() if name != field}
    with pytest.raises(ProtocolError, match=f"stored the message.*{field}"):
        read_single(SendStatus.SEND_OK, "t", "a", "id", fields)


def test_a_batch_answer_is_one_result_for_each_message() -> None:
    results = read_batch(SendStatus.SEND_OK, "t", "a", ("u1", "u2", "u3"), {**FIELDS, "msgId": "o1,o2,o3"})
    assert len(results) == 3
    assert [(r.msg_id, r.offset_msg_id, r.queue_offset) for r in results] == [
        ("u1", "o1", 41),
        ("u2", "o2", 42),
        ("u3", "o3", 43),
    ]
    assert {(r.status, r.queue, r.region) for r in results} == {(SendStatus.SEND_OK, MessageQueue("t", "a", 3), "r1")}
    assert results[-1].msg_id == "u3"
    assert [r.msg_id for r in results[:2]] == ["u1", "u2"]
    assert results.msg_ids == ("u1", "u2", "u3")
    assert "3 messages" in repr(results)


def test_a_batch_queue_answers_with_one_id_for_all() -> None:
    results = read_batch(SendStatus.SEND_OK, "t", "a", ("u1", "u2"), {**FIELDS, "msgId": "o1", "batchUniqId": "outer"})
    assert [(r.msg_id, r.offset_msg_id, r.queue_offset) for r in results] == [("u1", "o1", 41), ("u2", "o1", 42)]


def test_a_batch_answer_that_names_too_few_says_that_they_are_stored() -> None:
    results = read_batch(SendStatus.SEND_OK, "t", "a", ("u1", "u2", "u3"), {**FIELDS, "msgId": "o1,o2"})
    assert results.status is SendStatus.SEND_OK
    with pytest.raises(BatchAnswerMismatch, match="stored a batch of 3"):
        list(results)
