"""Transactions on a real broker: who answers when the one that began cannot."""

import asyncio

from tests.broker.cluster import Cluster
from tests.broker.producer.reading import read_once_there
from tests.broker.producer.transactions import Outcomes

from rocketfleet.client.config import ClientConfig
from rocketfleet.producer import Producer, ProducerOptions, SyncProducer, TransactionState
from rocketfleet.wire.message import Message, ReceivedMessage

OPTIONS = ProducerOptions(send_timeout=60)


async def test_another_member_of_the_group_answers_for_one_that_is_gone(asking: Cluster) -> None:
    topic = asking.create_topic()
    shared = Outcomes()  # as a database would be
    async with Producer(ClientConfig(asking.name_server), "tx", OPTIONS, transactions=shared) as first:
        begun = [
            await first.send_in_transaction(Message(topic, f"{number}".encode()), ("UNKNOWN", state))
            for number, state in enumerate(["COMMIT", "ROLLBACK", "COMMIT"])
        ]
    other_group = Outcomes()
    async with (
        Producer(ClientConfig(asking.name_server), "tx-other", OPTIONS, transactions=other_group) as stranger,
        Producer(ClientConfig(asking.name_server), "tx", OPTIONS, transactions=shared) as second,
    ):
        # A producer is known to a broker from its first message there on.
        await stranger.send(Message(asking.create_topic(), b"hello"))
        await second.send(Message(asking.create_topic(), b"hello"))
        await shared.wait_until_asked(3)
        stored = await read_once_there(asking.name_server, topic, 2)
    assert sorted(m.body for m in stored) == [b"0", b"2"]
    assert {m.msg_id for m in stored} == {begun[0].transaction_id, begun[2].transaction_id}
    assert not other_group.asked


async def test_the_broker_can_ask_again_after_it_has_restarted(asking: Cluster) -> None:
    topic = asking.create_topic()
    outcomes = Outcomes()
    async with Producer(ClientConfig(asking.name_server), "tx", OPTIONS, transactions=outcomes) as producer:
        result = await producer.send_in_transaction(Message(topic, b"x"), ("UNKNOWN", "UNKNOWN"))
        await asyncio.to_thread(asking.kill)
        await asyncio.to_thread(asking.restart)
        outcomes.checked[result.transaction_id] = TransactionState.COMMIT
        outcomes.asked.clear()
        await outcomes.wait_until_asked(1)  # though nothing is sent that would make a connection
        (stored,) = await read_once_there(asking.name_server, topic, 1)
    assert stored.msg_id == result.transaction_id


def test_blocking_transactions(asking: Cluster) -> None:
    class Listener:
        def execute(self, message: Message, argument: str) -> TransactionState:
            return TransactionState[argument]

        def check(self, message: ReceivedMessage) -> TransactionState:
            return TransactionState.ROLLBACK

    topic = asking.create_topic()
    with SyncProducer(ClientConfig(asking.name_server), "tx-sync", OPTIONS, transactions=Listener()) as producer:
        results = {
            state: producer.send_in_transaction(Message(topic, state.encode()), state)
            for state in ("COMMIT", "ROLLBACK")
        }
    assert all(result.settled for result in results.values())
    (stored,) = asyncio.run(read_once_there(asking.name_server, topic, 1))
    assert stored.body == b"COMMIT"
