"""What kind of group the faults meet: how it consumes, hands queues over and shares them out.

A mode is written as words in any order, separated by commas: `Orderly`, `Concurrent,Eager`, `Orderly,ConsistentHash`.
What is not said is as `rocketfleet worker` has it.
"""

from dataclasses import dataclass, replace

from rocketfleet.allocation.strategies import StrategyName
from rocketfleet.consumer.settings import ConsumeMode, Handover

STRATEGIES = (
    StrategyName.BALANCED,
    StrategyName.AVERAGELY,
    StrategyName.AVERAGELY_BY_CIRCLE,
    StrategyName.CONSISTENT_HASH,
)
"""Those that share out all queues among any members: the others have to be told about rooms or queues."""


class UnknownModeError(ValueError):
    """A word that is no part of a mode."""


@dataclass(frozen=True, slots=True)
class FaultMode:
    """The settings of a group that a run is about."""

    consume_mode: ConsumeMode = ConsumeMode.CONCURRENT
    handover: Handover = Handover.EXCLUSIVE
    strategy: StrategyName = StrategyName.BALANCED

    @property
    def is_orderly(self) -> bool:
        return self.consume_mode is ConsumeMode.ORDERLY

    def __str__(self) -> str:
        return f"{self.consume_mode.value},{self.handover.value},{self.strategy.value}"


def words() -> tuple[str, ...]:
    """Every word that a mode may have."""
    return (*(mode.value for mode in ConsumeMode), *(handover.value for handover in Handover), *STRATEGIES)


def read_mode(text: str) -> FaultMode:
    """A mode out of its words; large and small letters are the same."""
    mode = FaultMode()
    known = {word.lower(): word for word in words()}
    for given in filter(None, (word.strip() for word in text.split(","))):
        word = known.get(given.lower())
        if word is None:
            raise UnknownModeError(f"{given!r} is no part of a mode; a mode is made of {', '.join(known.values())}")
        if word in set(ConsumeMode):
            mode = replace(mode, consume_mode=ConsumeMode(word))
        elif word in set(Handover):
            mode = replace(mode, handover=Handover(word))
        else:
            mode = replace(mode, strategy=StrategyName(word))
    return mode
