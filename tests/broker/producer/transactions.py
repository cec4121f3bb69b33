"""A listener whose outcomes a test decides in advance."""

from tests.support.waiting import until

from rocketfleet.producer import TransactionState
from rocketfleet.wire.message import Message, ReceivedMessage


class Outcomes:
    """The argument of a send is a pair of names: how the transaction ends, and what is said when the broker asks."""

    def __init__(self) -> None:
        self.checked: dict[str, TransactionState] = {}
        self.asked: list[ReceivedMessage] = []

    async def execute(self, message: Message, argument: tuple[str, str]) -> TransactionState:
        outcome, checked = argument
        assert message.unique_id is not None
        self.checked[message.unique_id] = TransactionState[checked]
        return TransactionState[outcome]

    async def check(self, message: ReceivedMessage) -> TransactionState:
        self.asked.append(message)
        return self.checked.get(message.msg_id, TransactionState.UNKNOWN)

    async def wait_until_asked(self, times: int, within: float = 60.0) -> None:
        """Wait until the broker has asked about so many transactions."""
        await until(
            lambda: len({message.msg_id for message in self.asked}) >= times,
            f"asked about {times} transactions",
            within,
            report=lambda: f"asked {len(self.asked)} times",
        )
