"""Counters of one consumer. Plain integers: whoever exports them reads them, and a lost update of a statistic does no
harm."""

from dataclasses import dataclass


@dataclass(slots=True)
class ConsumerCounters:
    pulled: int = 0
    pulls: int = 0
    handled: int = 0
    failed: int = 0
    expired: int = 0
    sent_back: int = 0
    send_back_failed: int = 0
    commits: int = 0
    rebalances: int = 0
    gained: int = 0
    lost: int = 0
    lapsed: int = 0
