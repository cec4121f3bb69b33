"""Transactions: a message that becomes visible only if a local transaction succeeded.

The message is stored as a *half message*, which no consumer sees. Then the local transaction runs, and the broker is
told its outcome: commit makes the message visible, rollback drops it. If the broker is not told (the producer died,
the outcome was not known yet), it asks: it sends CHECK_TRANSACTION_STATE to any connected producer of the same group,
which looks the outcome up and answers. So `check` must be able to answer for transactions that another process began:
it has to look into the database, not into memory.

Java ends a transaction one-way and hopes. Here commit and rollback wait for the broker's word, so that a caller who
gets `settled` knows; if the word does not come, the outcome still reaches the broker when it asks. An undecided
outcome is sent one-way, since the broker answers nothing to it.
"""

import asyncio
import enum
import inspect
import logging
from collections.abc import Awaitable
from typing import Any, NamedTuple, Protocol

from rocketfleet.client.client import Client
from rocketfleet.client.errors import NoBroker, RocketMQError
from rocketfleet.client.requests.broker_messages import end_transaction_request
from rocketfleet.client.requests.calls import Caller, ask
from rocketfleet.producer.errors import InvalidMessage
from rocketfleet.producer.result import SendResult, SendStatus
from rocketfleet.wire.command import Command
from rocketfleet.wire.errors import WireError
from rocketfleet.wire.message import Message, ReceivedMessage, decode_messages, decode_offset_id, properties, sysflag

_log = logging.getLogger(__name__)


class TransactionState(enum.Enum):
    """The outcome of a local transaction."""

    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    UNKNOWN = "UNKNOWN"
    """Not known yet: the broker asks again later (by default every 30 s, 15 times, then it gives the message up)."""


_DECISIONS = {
    TransactionState.COMMIT: sysflag.TRANSACTION_COMMIT,
    TransactionState.ROLLBACK: sysflag.TRANSACTION_ROLLBACK,
    TransactionState.UNKNOWN: sysflag.TRANSACTION_NONE,
}


class TransactionListener(Protocol):
    """What a transactional producer is given. Coroutine functions run in its loop, plain ones in a thread."""

    def execute(self, message: Message, argument: Any) -> TransactionState | Awaitable[TransactionState]:
        """Run the local transaction. `message.unique_id` is the transaction's id: write it where `check` finds it."""
        ...

    def check(self, message: ReceivedMessage) -> TransactionState | Awaitable[TransactionState]:
        """Say how the transaction ended that this half message belongs to (`message.msg_id`), whoever began it."""
        ...


class TransactionResult(NamedTuple):
    """What became of a transaction.

    settled: the broker has confirmed the commit or rollback. If not, it will ask for the outcome later.
    error: what the local transaction raised; its state is then UNKNOWN.
    """

    sent: SendResult
    state: TransactionState
    settled: bool
    error: Exception | None = None

    @property
    def transaction_id(self) -> str:
        """The unique id of the message."""
        return self.sent.transaction_id or self.sent.msg_id


def half_message(message: Message, group: str, check_after: int | None) -> Message:
    """A copy of the message that the broker keeps back until the transaction ends."""
    if message.is_delayed:
        raise InvalidMessage(
            "a transactional message cannot be delayed: it is delivered when its transaction is committed"
        )
    half = Message(message.topic, message.body, flag=message.flag)
    half.properties = dict(message.properties)
    half.properties[properties.TRANSACTION_PREPARED] = "true"
    half.properties[properties.PRODUCER_GROUP] = group
    if check_after is not None:
        half.properties[properties.CHECK_IMMUNITY_SECONDS] = str(check_after)
    return half


async def run_callback(callback: Any, *arguments: Any) -> TransactionState:
    """Call a listener's method: a coroutine function here, a plain one in a thread, where it may block."""
    if inspect.iscoroutinefunction(callback):
        outcome = await callback(*arguments)
    else:
        outcome = await asyncio.to_thread(callback, *arguments)
        if inspect.isawaitable(outcome):
            outcome = await outcome
    if outcome is None:
        return TransactionState.UNKNOWN
    if not isinstance(outcome, TransactionState):
        raise TypeError(f"a transaction listener must return a TransactionState, not {outcome!r}")
    return outcome


async def execute(
    listener: TransactionListener, message: Message, argument: Any, status: SendStatus
) -> tuple[TransactionState, Exception | None]:
    """The local transaction, if the half message is safe; if it is not, the transaction is not even begun."""
    if status is not SendStatus.SEND_OK:
        return TransactionState.ROLLBACK, None
    try:
        return await run_callback(listener.execute, message, argument), None
    except Exception as error:
        _log.exception("the local transaction of message %s to topic %s failed", message.unique_id, message.topic)
        return TransactionState.UNKNOWN, error


async def end(
    client: Client, group: str, sent: SendResult, *, state: TransactionState, error: Exception | None
) -> bool:
    """Tell the broker how the transaction ended. True if it confirmed that; never raises a RocketMQError."""
    command = end_transaction_request(
        group=group,
        topic=sent.queue.topic,
        tran_state_table_offset=sent.queue_offset,
        commit_log_offset=decode_offset_id(sent.offset_msg_id).commit_log_offset,
        decision=_DECISIONS[state],
        msg_id=sent.msg_id,
        transaction_id=sent.transaction_id,
        broker=sent.queue.broker,
        remark=None if error is None else f"the local transaction raised {type(error).__name__}",
    )
    try:
        address = client.master(sent.queue.broker)  # anew: the broker may have another master by now
    except NoBroker as gone:
        _log.warning("transaction %s ended with %s, and its broker is gone: %s", sent.msg_id, state.name, gone)
        return False
    return await _tell(client.remoting, address, command, state)


async def answer_check(caller: Caller, peer: str, group: str, listener: TransactionListener, command: Command) -> bool:
    """Answer a broker that asks about a transaction. False if it is none of this group's."""
    try:
        (message,) = decode_messages(command.body)
    except (WireError, ValueError) as error:
        _log.warning("%s asks about a transaction in a way that cannot be read: %s", peer, error)
        return False
    if message.properties.get(properties.PRODUCER_GROUP) != group:
        return False
    remark = None
    try:
        state = await run_callback(listener.check, message)
    except Exception as error:
        _log.exception("the check of transaction %s failed; the broker will ask again", message.msg_id)
        state, remark = TransactionState.UNKNOWN, f"the check raised {type(error).__name__}"
    fields = command.fields
    reply = end_transaction_request(
        group=group,
        topic=fields.get("topic") or message.topic,
        tran_state_table_offset=int(fields["tranStateTableOffset"]),
        commit_log_offset=int(fields["commitLogOffset"]),
        decision=_DECISIONS[state],
        msg_id=message.properties.get(properties.UNIQUE_ID) or message.msg_id,
        transaction_id=fields.get("transactionId"),
        from_check=True,
        broker=fields.get("bname") or fields.get("brokerName"),
        remark=remark,
    )
    await _tell(caller, peer, reply, state)
    return True


async def _tell(caller: Caller, address: str, command: Command, state: TransactionState) -> bool:
    try:
        if state is TransactionState.UNKNOWN:
            await caller.oneway(address, command)
            return False
        await ask(caller, address, command)
    except RocketMQError as error:
        _log.warning("the broker was not told that a transaction ended with %s, and will ask: %s", state.name, error)
        return False
    return True
