"""After a failed attempt: try another broker, give up, or hand the failure to the caller, as Java's sync send decides.

- The broker's answer is final unless its code says that another broker may do better (RETRY_CODES).
- Whatever happens between us and the broker (no connection, connection lost, no answer in time) is tried again
  elsewhere. The broker may have stored the message before the connection broke: consumers may see it twice, with the
  same unique id.
- A stored message whose flush or replication was not confirmed is a success with a status, and only tried again if
  asked.
- At most `retries` further attempts, and none after the time for the whole send is used up.

Where there is no other broker, the same one is tried again, after a short pause: Java tries at once, and three refusals
within a millisecond are one refusal.

An attempt may use all the time that is left, as in Java. A broker that hangs then eats the time of the retries, so
`attempt_timeout` can bound each attempt that is not the last.
"""

import enum
from dataclasses import dataclass

from rocketfleet.client.errors import NoBroker, ResponseError, RocketMQError
from rocketfleet.wire.codes import ResponseCode

RETRY_CODES: frozenset[int] = frozenset(
    {
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,  # a proxy that is shutting down
    }
)


class Blame(enum.Enum):
    """What a failed attempt says about the broker."""

    NOTHING = "nothing"  # the message or the route was at fault
    REFUSED = "refused"  # the broker answered, and turned a good message down
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long. Times in seconds; without `attempt_timeout` an attempt may use all that is left."""

    retries: int = 2
    attempt_timeout: float | None = None
    same_broker_pause: float = 0.1
    retry_unless_stored_well: bool = False
    codes: frozenset[int] = RETRY_CODES

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ValueError(f"retries cannot be negative, not {self.retries}")
        if self.attempt_timeout is not None and not self.attempt_timeout > 0:
            raise ValueError(f"attempt_timeout must be more than 0 seconds, not {self.attempt_timeout}")
        if self.same_broker_pause < 0:
            raise ValueError(f"same_broker_pause cannot be negative, not {self.same_broker_pause}")

    def is_retried(self, error: RocketMQError) -> bool:
        """Whether another broker may do better after this error."""
        if isinstance(error, ResponseError):
            return error.code in self.codes
        return True

    def time_for_attempt(self, attempts_made: int, time_left: float) -> float | None:
        """The time-out of the next attempt, or None if there is to be none: no attempt or no time is left."""
        if attempts_made > self.retries or time_left <= 0:
            return None
        if self.attempt_timeout is not None and attempts_made < self.retries:
            return min(self.attempt_timeout, time_left)
        return time_left

    def pause(self, attempts_made: int, time_left: float) -> float:
        """How long to wait before the broker that has just failed is tried once more: doubled each time."""
        longest = max(0.0, time_left / 2)  # or there would be no time to try in
        return min(self.same_broker_pause * 2.0 ** min(attempts_made - 1, 30), longest)


def blame(error: RocketMQError, codes: frozenset[int] = RETRY_CODES) -> Blame:
    """What the error says about the broker.

    Java blames the broker for every refusal, so one message that is too long takes a healthy broker out of use. Here a
    refusal counts only if another broker may do better.
    """
    if isinstance(error, ResponseError):
        return Blame.REFUSED if error.code in codes else Blame.NOTHING
    if isinstance(error, NoBroker):
        return Blame.NOTHING
    return Blame.UNREACHABLE
