"""Moments and windows for tests, from as little as a test wants to say."""

from collections.abc import Sequence

from rocketfleet.lag.collecting.reckoning import lag_of, with_rates, with_sums
from rocketfleet.lag.figures import GroupLag, QueueLag
from rocketfleet.lag.judging.window import Window
from rocketfleet.wire.queue import MessageQueue

STEP = 30.0


def queue(number: int = 0, broker: str = "broker-a") -> MessageQueue:
    return MessageQueue("orders", broker, number)


def row(
    number: int, offset: int | None, end: int, at: float, *, least: int = 0, owner: str | None = None,
    seconds: float | None = None, beginning: bool = False,
) -> QueueLag:  # fmt: skip
    lag = lag_of(offset, (least, end), from_beginning=beginning)
    return QueueLag(queue(number), least, end, offset, lag, 0.0 if lag == 0 else seconds, owner, at)


def moment(
    places: Sequence[tuple[int | None, int]], at: float, *, owners: Sequence[str | None] = (),
    members: Sequence[str] | None = ("m",), unread: Sequence[int] = (), **more: object,
) -> GroupLag:  # fmt: skip
    """`places` are (offset, end) of queues 0, 1, …; those in `unread` are as old as the beginning of time."""
    rows = tuple(
        row(number, offset, end, 0.0 if number in unread else at, owner=owners[number] if owners else None)
        for number, (offset, end) in enumerate(places)
    )
    ids = None if members is None else frozenset(members)
    made = GroupLag("g", at, rows, members=None if ids is None else len(ids), member_ids=ids, **more)  # type: ignore[arg-type]
    return with_sums(made)


def window(*moments: GroupLag, size: int = 10) -> Window:
    made = Window(size=size)
    for one in moments:
        made = with_rates(made.after(one))
    return made


def over_time(*steps: Sequence[tuple[int | None, int]], **more: object) -> Window:
    """A window from one list of places for each moment."""
    return window(*(moment(places, 1000.0 + STEP * number, **more) for number, places in enumerate(steps)))  # type: ignore[arg-type]
