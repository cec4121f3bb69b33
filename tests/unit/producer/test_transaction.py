"""Transactions against scripted brokers: half message, local transaction, end, and the broker's question."""

import asyncio
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.waiting import until
from tests.unit.client.peer import Channel
from tests.unit.producer.cluster import Cluster, cluster_of, refusing

from rocketfleet.producer import InvalidMessage, Producer, SendFailed, SendStatus, TransactionState
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import Command, request
from rocketfleet.wire.message import Message, ReceivedMessage, decode_offset_id, decode_properties, encode_properties
from rocketfleet.wire.message.received import MAGIC_V1

COMMIT, ROLLBACK, UNKNOWN = TransactionState.COMMIT, TransactionState.ROLLBACK, TransactionState.UNKNOWN
NUMBERS = {COMMIT: "8", ROLLBACK: "12", UNKNOWN: "0"}


class Listener:
    """Plain functions, as a program with a blocking database has them."""

    def __init__(self, outcome: Any = COMMIT, checked: Any = COMMIT) -> None:
        self.outcome = outcome
        self.checked = checked
        self.executed: list[tuple[Message, Any]] = []
        self.asked: list[ReceivedMessage] = []
        self.threads: set[int] = set()

    def _give(self, outcome: Any) -> TransactionState:
        self.threads.add(threading.get_ident())
        if isinstance(outcome, Exception):
            raise outcome
        return outcome  # type: ignore[no-any-return]  # also what is not a state, on purpose

    def execute(self, message: Message, argument: Any) -> TransactionState:
        self.executed.append((message, argument))
        return self._give(self.outcome)

    def check(self, message: ReceivedMessage) -> TransactionState:
        self.asked.append(message)
        return self._give(self.checked)


class AsyncListener(Listener):
    """The same as coroutine functions."""

    async def execute(self, message: Message, argument: Any) -> TransactionState:  # type: ignore[override]  # either kind will do
        return super().execute(message, argument)

    async def check(self, message: ReceivedMessage) -> TransactionState:  # type: ignore[override]  # either kind will do
        return super().check(message)


def ended(cluster: Cluster) -> list[Command]:
    return cluster["a"].of(RequestCode.END_TRANSACTION)


@pytest.mark.parametrize("kind", [Listener, AsyncListener])
@pytest.mark.parametrize("state", [COMMIT, ROLLBACK])
async def test_the_broker_is_told_how_the_transaction_ended(
    kind: Callable[..., Listener], state: TransactionState
) -> None:
    listener = kind(state)
    async with cluster_of("a") as cluster, Producer(cluster.config(), "g", transactions=listener) as producer:
        message = Message("t", b"x", tags="y")
        result = await producer.send_in_transaction(message, 42, check_after=60)
        assert (result.state, result.settled, result.error) == (state, True, None)
        (half,) = cluster["a"].stored
        held = decode_properties(half.fields["i"])
        assert held["TRAN_MSG"] == "true"
        assert held["PGROUP"] == "g"
        assert held["CHECK_IMMUNITY_TIME_IN_SECONDS"] == "60"
        assert half.fields["f"] == "4"
        assert "TRAN_MSG" not in message.properties, "the caller's message is not turned into a half message"
        ((executed, argument),) = listener.executed
        assert (executed, argument) == (message, 42)
        assert executed.unique_id == result.transaction_id == held["UNIQ_KEY"]
        (end,) = ended(cluster)
        assert not end.is_oneway
        assert end.fields["commitOrRollback"] == NUMBERS[state]
        assert end.fields["producerGroup"] == "g"
        assert end.fields["topic"] == "t"
        assert end.fields["msgId"] == result.sent.msg_id
        assert int(end.fields["tranStateTableOffset"]) == result.sent.queue_offset
        assert int(end.fields["commitLogOffset"]) == decode_offset_id(result.sent.offset_msg_id).commit_log_offset
        assert end.fields["fromTransactionCheck"] == "false"
        assert (threading.get_ident() in listener.threads) is (kind is AsyncListener), "what may block runs in a thread"


@pytest.mark.parametrize("outcome", [UNKNOWN, None, RuntimeError("database gone"), "COMMIT"])
async def test_an_outcome_that_is_not_known_is_left_to_the_brokers_question(outcome: Any) -> None:
    async with cluster_of("a") as cluster:
        async with Producer(cluster.config(), "g", transactions=Listener(outcome)) as producer:
            result = await producer.send_in_transaction(Message("t", b"x"))
            await until(lambda: ended(cluster))
        assert (result.state, result.settled) == (UNKNOWN, False)
        if isinstance(outcome, Exception):
            assert result.error is outcome
        elif outcome == "COMMIT":
            assert isinstance(result.error, TypeError)
        (end,) = ended(cluster)
        assert end.is_oneway, "the broker answers nothing to this"
        assert end.fields["commitOrRollback"] == "0"


@pytest.mark.parametrize("code", [ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE])
async def test_a_half_message_that_is_not_safe_is_rolled_back_unexecuted(code: ResponseCode) -> None:
    listener = Listener()
    async with cluster_of("a") as cluster, Producer(cluster.config(), "g", transactions=listener) as producer:
        cluster["a"].status = code
        result = await producer.send_in_transaction(Message("t", b"x"))
        assert result.sent.status is SendStatus[code.name]
        assert result.state is ROLLBACK
        assert not listener.executed
        assert ended(cluster)[0].fields["commitOrRollback"] == "12"


async def test_no_transaction_is_begun_if_the_half_message_was_not_stored() -> None:
    listener = Listener()
    async with cluster_of("a") as cluster, Producer(cluster.config(), "g", transactions=listener) as producer:
        cluster["a"].before = refusing(ResponseCode.SYSTEM_BUSY)
        with pytest.raises(SendFailed):
            await producer.send_in_transaction(Message("t", b"x"))
        assert not listener.executed


async def test_a_commit_that_the_broker_does_not_confirm_is_told_as_such() -> None:
    def deaf(channel: Channel, command: Command) -> bool | None:
        if command.code != RequestCode.END_TRANSACTION:
            return None
        channel.answer(command, ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
        return True

    async with cluster_of("a") as cluster, Producer(cluster.config(), "g", transactions=Listener()) as producer:
        cluster["a"].before = deaf
        result = await producer.send_in_transaction(Message("t", b"x"))
        assert (result.state, result.settled) == (COMMIT, False)


async def test_the_outcome_is_told_even_if_the_broker_is_gone() -> None:
    async with cluster_of("a", "b") as cluster:

        class Slow(Listener):
            async def execute(self, message: Message, argument: Any) -> TransactionState:  # type: ignore[override]  # either kind will do
                (holder,) = (broker for broker in cluster.brokers.values() if broker.stored)
                await holder.peer.stop()
                cluster.registered.discard(holder.name)
                await producer._parts.client.routes.refresh("t")
                return COMMIT

        async with Producer(cluster.config(), "g", transactions=Slow()) as producer:
            result = await producer.send_in_transaction(Message("t", b"x"))
        assert (result.state, result.settled, result.error) == (COMMIT, False, None)


async def test_a_delayed_message_cannot_be_transactional() -> None:
    async with cluster_of("a") as cluster, Producer(cluster.config(), "g", transactions=Listener()) as producer:
        with pytest.raises(InvalidMessage, match="cannot be delayed"):
            await producer.send_in_transaction(Message("t", b"x", delay_level=3))


def stored(topic: str, body: bytes, properties: dict[str, str]) -> bytes:
    """A message as the broker's log has it."""
    host = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")
    text = encode_properties(properties).encode()
    rest = struct.pack(">iIiiqqiq8sq8siqi", MAGIC_V1, 0, 0, 0, 7, 700, 4, 1, host, 2, host, 0, 0, len(body)) + body
    rest += struct.pack(">b", len(topic)) + topic.encode() + struct.pack(">h", len(text)) + text
    return struct.pack(">i", len(rest) + 4) + rest


def question(group: str = "g", **properties: str) -> Command:
    half = {"UNIQ_KEY": "7F" * 16, "TRAN_MSG": "true", "PGROUP": group, "REAL_TOPIC": "t", **properties}
    return request(
        RequestCode.CHECK_TRANSACTION_STATE,
        {
            "tranStateTableOffset": 7,
            "commitLogOffset": 700,
            "msgId": "7F" * 16,
            "transactionId": "7F" * 16,
            "offsetMsgId": "00" * 16,
            "topic": "t",
            "bname": "a",
        },
        stored("RMQ_SYS_TRANS_HALF_TOPIC", b"x", half),
        oneway=True,
    )


@pytest.mark.parametrize("kind", [Listener, AsyncListener])
@pytest.mark.parametrize("checked", [COMMIT, ROLLBACK, UNKNOWN, RuntimeError("database gone")])
async def test_the_brokers_question_is_answered(kind: Callable[..., Listener], checked: Any) -> None:
    listener = kind(COMMIT, checked)
    async with cluster_of("a") as cluster, Producer(cluster.config(), "g", transactions=listener) as producer:
        await producer.send(Message("t", b"x"))
        cluster["a"].peer.channels[0].send(question())
        await until(lambda: ended(cluster))
        (end,) = ended(cluster)
        state = checked if isinstance(checked, TransactionState) else UNKNOWN
        assert end.fields["commitOrRollback"] == NUMBERS[state]
        assert end.fields["fromTransactionCheck"] == "true"
        assert (end.fields["tranStateTableOffset"], end.fields["commitLogOffset"]) == ("7", "700")
        assert (end.fields["msgId"], end.fields["transactionId"]) == ("7F" * 16, "7F" * 16)
        assert end.fields["topic"] == "t"
        (message,) = listener.asked
        assert message.msg_id == "7F" * 16
        assert message.body == b"x"
        assert ("RuntimeError" in (end.remark or "")) is isinstance(checked, Exception)


async def test_questions_about_other_groups_and_nonsense_are_left_alone() -> None:
    listener = Listener()
    async with cluster_of("a") as cluster, Producer(cluster.config(), "g", transactions=listener) as producer:
        await producer.send(Message("t", b"x"))
        channel = cluster["a"].peer.channels[0]
        channel.send(question("another"))
        channel.send(request(RequestCode.CHECK_TRANSACTION_STATE, {}, b"not a message", oneway=True))
        channel.send(question())
        await until(lambda: ended(cluster))
        assert len(listener.asked) == 1
        await asyncio.sleep(0)
        assert len(ended(cluster)) == 1
