"""The control port's messages: what /assignment, /rebalance and /drain answer, and a worker's last words.

Worker, parent process and Spark driver write them, the operator and the parent read them. The image of a pod may be a
version older or newer than the operator, so these names are a contract between versions:

- A key that is not known is ignored.
- A key that is missing has the default of its field: the value from which nothing follows. The same is true of an
  optional value that makes no sense. Without a key that is required it is no message: `from_json` raises MessageError.
- Phases and states are text: one that is not known is kept as it is, and counts as none of ours.
- The names in `WorkerPhase` and `QueueState` are the ones on the wire. No other module spells them, and none derives
  them from the names of its own enums.

`VERSION` is raised when an answer comes to mean something else than before. A new key is no reason to raise it.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Any, Final, Self, TypeVar

from rocketfleet.wire.queue import MessageQueue

VERSION: Final = 1
T = TypeVar("T")
D = TypeVar("D")
_Json = dict[str, Any]


class ControlMessageError(ValueError):
    """This is not such a message; the text says why."""


@unique
class WorkerPhase(StrEnum):
    """How far a worker or a driver is in its life, in this order."""

    JOINING = "Joining"
    RUNNING = "Running"
    DRAINING = "Draining"
    CLOSED = "Closed"


@unique
class QueueState(StrEnum):
    """What a member does with a queue."""

    WANTED = "Wanted"  # allocated to it, lock not held
    STARTING = "Starting"  # its lock is held, its offset not read yet
    OWNED = "Owned"
    SUSPENDED = "Suspended"  # owned, and on hold while its lock is in doubt
    CONFIRMED_ONCE = "ConfirmedOnce"  # older workers': suspended, and the first of two grants is there
    STANDBY = "Standby"  # consumed from a slave, as the group last shared it out, while its master is away
    LEAVING = "Leaving"  # allocated elsewhere: what has begun finishes
    SETTLING = "Settling"  # its final offset is being committed
    RELEASING = "Releasing"  # its lock is being given back
    GONE = "Gone"


# Of a queue on its way to another member nothing more is begun; one that is Wanted or Starting is not consumed yet.
OWNING: Final = frozenset({QueueState.OWNED, QueueState.SUSPENDED, QueueState.CONFIRMED_ONCE, QueueState.STANDBY})
# What a member should have, and cannot consume.
IN_VAIN: Final = frozenset({QueueState.WANTED, QueueState.SUSPENDED, QueueState.CONFIRMED_ONCE})


# -- /assignment and /rebalance ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueueReport:
    """One queue of a member. Offsets are None while nothing has been read of it."""

    queue: MessageQueue
    client_id: str
    state: str  # a QueueState, or one of another version
    offset: int | None = None  # what may be committed
    next_offset: int | None = None  # where the next pull begins
    lease_seconds: float | None = None  # None: held without a lock
    messages: int = 0  # in memory
    size: int = 0  # bytes of their bodies

    def to_json(self) -> _Json:
        return {
            **_queue_json(self.queue),
            "clientId": self.client_id,
            "state": self.state,
            "offset": self.offset,
            "nextOffset": self.next_offset,
            "leaseSeconds": None if self.lease_seconds is None else round(self.lease_seconds, 1),
            "messages": self.messages,
            "bytes": self.size,
        }

    @classmethod
    def from_json(cls, content: object) -> Self:
        given = _object(content)
        return cls(
            queue=_queue(given),
            client_id=_required(given, "clientId", _text),
            state=_required(given, "state", _text),
            offset=_optional(given, "offset", _integer, None),
            next_offset=_optional(given, "nextOffset", _integer, None),
            lease_seconds=_optional(given, "leaseSeconds", _number, None),
            messages=_optional(given, "messages", _integer, 0),
            size=_optional(given, "bytes", _integer, 0),
        )


@dataclass(frozen=True, slots=True)
class WorkReport:
    """What the handler of one member did since its process began: counts that only grow."""

    client_id: str
    tried: int  # attempts at messages
    failed: int
    sent_back: int

    def to_json(self) -> _Json:
        return {
            "clientId": self.client_id,
            "tried": self.tried,
            "failed": self.failed,
            "sentBack": self.sent_back,
        }

    @classmethod
    def from_json(cls, content: object) -> Self:
        given = _object(content)
        return cls(
            client_id=_required(given, "clientId", _text),
            tried=_required(given, "tried", _integer),
            failed=_required(given, "failed", _integer),
            sent_back=_required(given, "sentBack", _integer),
        )


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """How a driver's query gets on: the last batch that is done. What is not known is None."""

    batch: int | None = None
    messages: int | None = None
    messages_per_second: float | None = None
    seconds: float | None = None
    completed_at: str | None = None
    lost: int | None = None  # messages that were gone before they could be read
    executors: int | None = None

    def to_json(self) -> _Json:
        return {
            "batch": self.batch,
            "messages": self.messages,
            "messagesPerSecond": self.messages_per_second,
            "seconds": self.seconds,
            "completedAt": self.completed_at,
            "lost": self.lost,
            "executors": self.executors,
        }

    @classmethod
    def from_json(cls, content: object) -> Self:
        """Nonsense is an error here, and not passed over: all of this is shown to people."""
        given = _object(content)
        return cls(
            batch=_nullable(given, "batch", _integer),
            messages=_nullable(given, "messages", _integer),
            messages_per_second=_nullable(given, "messagesPerSecond", _number),
            seconds=_nullable(given, "seconds", _number),
            completed_at=_nullable(given, "completedAt", _text),
            lost=_nullable(given, "lost", _integer),
            executors=_nullable(given, "executors", _integer),
        )


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """One of several processes, as its parent names it: what it answered, or why it did not."""

    process: int
    error: str | None = None
    client_id: str | None = None
    phase: str | None = None
    ready: bool | None = None  # this and the next one of an assignment
    settled: bool | None = None
    confirmed: bool | None = None  # this and the next one of a drain
    exit_code: int | None = None

    def to_json(self) -> _Json:
        if self.error is not None:
            return {"process": self.process, "error": self.error}
        said = {
            "clientId": self.client_id,
            "phase": self.phase,
            "ready": self.ready,
            "settled": self.settled,
            "confirmed": self.confirmed,
            "exitCode": self.exit_code,
        }
        return {"process": self.process, **{key: value for key, value in said.items() if value is not None}}

    @classmethod
    def from_json(cls, content: object) -> Self:
        given = _object(content)
        return cls(
            process=_required(given, "process", _integer),
            error=_optional(given, "error", _text, None),
            client_id=_optional(given, "clientId", _text, None),
            phase=_optional(given, "phase", _text, None),
            ready=_optional(given, "ready", _flag, None),
            settled=_optional(given, "settled", _flag, None),
            confirmed=_optional(given, "confirmed", _flag, None),
            exit_code=_optional(given, "exitCode", _integer, None),
        )


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker says it holds. That of one process names its `clientId`, that of several lists `processes`."""

    client_ids: tuple[str, ...]
    phase: str = ""  # a WorkerPhase, or one of another version
    ready: bool = False
    settled: bool = False  # it owns what it was given in the last round, and nothing else
    members: tuple[str, ...] = ()  # the group, as this worker sees it
    queues: tuple[QueueReport, ...] = ()
    work: tuple[WorkReport, ...] = ()  # older workers and drivers do not say
    progress: QueryProgress | None = None  # of a driver
    group: str | None = None
    strategy: str | None = None
    handover: str | None = None
    processes: tuple[ProcessReport, ...] = ()
    version: int = VERSION  # of the answer; 0: from before there were any

    @property
    def joined(self) -> bool:
        return self.phase == WorkerPhase.RUNNING

    @property
    def owners(self) -> dict[MessageQueue, frozenset[str]]:
        """Its own queues, by which of its members."""
        return _gathered((one.queue, one.client_id) for one in self.queues if one.state in OWNING)

    @property
    def states(self) -> dict[MessageQueue, frozenset[str]]:
        """What it says of each of its queues."""
        return _gathered((one.queue, one.state) for one in self.queues)

    def to_json(self) -> _Json:
        return {
            "version": self.version,
            **_whose(self.group, self.client_ids, self.processes),
            "phase": self.phase,
            "ready": self.ready,
            "settled": self.settled,
            "strategy": self.strategy,
            "handover": self.handover,
            "members": list(self.members),
            "queues": [one.to_json() for one in self.queues],
            "work": [one.to_json() for one in self.work],
            **({} if self.progress is None else {"progress": self.progress.to_json()}),
        }

    @classmethod
    def from_json(cls, content: object) -> Self:
        given = _object(content)
        progress = given.get("progress")
        return cls(
            client_ids=_required(given, "clientIds", _texts),
            phase=_optional(given, "phase", _text, ""),
            ready=_optional(given, "ready", _flag, False),
            settled=_optional(given, "settled", _flag, False),
            members=_optional(given, "members", _texts, ()),
            queues=_required(given, "queues", _each(QueueReport.from_json)),
            work=_nullable(given, "work", _each(WorkReport.from_json)) or (),
            progress=QueryProgress.from_json(progress) if isinstance(progress, dict) else None,
            group=_optional(given, "group", _text, None),
            strategy=_optional(given, "strategy", _text, None),
            handover=_optional(given, "handover", _text, None),
            processes=_optional(given, "processes", _each(ProcessReport.from_json), ()),
            version=_optional(given, "version", _integer, 0),
        )


# -- /drain and last words --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DrainOutcome:
    """How a drain ended, in short: what a worker leaves as its last words, and what the operator keeps of an answer.

    `offsets` is None where nobody knows them, or they did not fit. `unfinished` are messages whose handlers were cut
    short: they come again; where offsets are None, there are at least so many. `seconds` is not among the last words.
    """

    confirmed: bool  # the broker has confirmed every offset
    offsets: Mapping[MessageQueue, int] | None = None
    seconds: float | None = None
    unfinished: int = 0

    def to_json(self) -> _Json:
        queues = None if self.offsets is None else [[*queue, offset] for queue, offset in sorted(self.offsets.items())]
        return {"confirmed": self.confirmed, "unfinished": self.unfinished, "queues": queues}

    @classmethod
    def from_json(cls, content: object) -> Self:
        given = _object(content)
        if "queues" not in given:
            raise ControlMessageError("queues is missing")
        return cls(
            confirmed=_required(given, "confirmed", _flag),
            offsets=None if given["queues"] is None else dict(_required(given, "queues", _each(_short_offset))),
            unfinished=_optional(given, "unfinished", _count, 0),
        )


@dataclass(frozen=True, slots=True)
class FinalOffsetReport:
    """Where one queue stood when it was given up."""

    queue: MessageQueue
    offset: int
    client_id: str = ""
    confirmed: bool = False  # the broker has it
    unfinished: int = 0  # messages that had begun and were cut short

    def to_json(self) -> _Json:
        return {
            **_queue_json(self.queue),
            "clientId": self.client_id,
            "offset": self.offset,
            "confirmed": self.confirmed,
            "unfinished": self.unfinished,
        }

    @classmethod
    def from_json(cls, content: object) -> Self:
        given = _object(content)
        return cls(
            queue=_queue(given),
            offset=_required(given, "offset", _integer),
            client_id=_optional(given, "clientId", _text, ""),
            confirmed=_optional(given, "confirmed", _flag, False),
            unfinished=_optional(given, "unfinished", _count, 0),
        )


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What /drain answers, once the drain is over. That of one process names its `clientId`, as an assignment does."""

    confirmed: bool  # every queue of every process
    queues: tuple[FinalOffsetReport, ...]
    unfinished: int = 0  # missing: an older worker, or a driver, which cuts no message short
    exit_code: int | None = None  # with which the process is about to end
    seconds: float | None = None
    phase: str = WorkerPhase.CLOSED
    group: str | None = None
    client_ids: tuple[str, ...] = ()
    processes: tuple[ProcessReport, ...] = ()
    version: int = VERSION

    @property
    def outcome(self) -> DrainOutcome:
        """The same in short."""
        offsets = {one.queue: one.offset for one in self.queues}
        return DrainOutcome(self.confirmed, offsets, self.seconds, self.unfinished)

    def to_json(self) -> _Json:
        return {
            "version": self.version,
            **_whose(self.group, self.client_ids, self.processes),
            "phase": self.phase,
            "confirmed": self.confirmed,
            "unfinished": self.unfinished,
            "exitCode": self.exit_code,
            "seconds": self.seconds,
            "queues": [one.to_json() for one in self.queues],
        }

    @classmethod
    def from_json(cls, content: object) -> Self:
        given = _object(content)
        return cls(
            confirmed=_required(given, "confirmed", _flag),
            queues=_required(given, "queues", _each(FinalOffsetReport.from_json)),
            unfinished=_optional(given, "unfinished", _count, 0),
            exit_code=_optional(given, "exitCode", _integer, None),
            seconds=_optional(given, "seconds", _number, None),
            phase=_optional(given, "phase", _text, WorkerPhase.CLOSED.value),
            group=_optional(given, "group", _text, None),
            client_ids=_optional(given, "clientIds", _texts, ()),
            processes=_optional(given, "processes", _each(ProcessReport.from_json), ()),
            version=_optional(given, "version", _integer, 0),
        )


# -- parts that several messages share --------------------------------------------------------------------------------


def _queue_json(queue: MessageQueue) -> _Json:
    return {"topic": queue.topic, "broker": queue.broker, "queueId": queue.queue_id}


def _queue(given: _Json) -> MessageQueue:
    return MessageQueue(
        _required(given, "topic", _text), _required(given, "broker", _text), _required(given, "queueId", _integer)
    )


def _short_offset(entry: object) -> tuple[MessageQueue, int]:
    match entry:
        case [str(topic), str(broker), queue_id, offset]:
            return MessageQueue(topic, broker, _integer(queue_id)), _integer(offset)
    raise ControlMessageError("it is not [topic, broker, queue, offset]")


def _whose(group: str | None, client_ids: tuple[str, ...], processes: tuple[ProcessReport, ...]) -> _Json:
    one_or_several: _Json = {}
    if processes:
        one_or_several["processes"] = [one.to_json() for one in processes]
    elif client_ids:
        one_or_several["clientId"] = client_ids[0]
    return {"group": group, "clientIds": list(client_ids), **one_or_several}


def _gathered(pairs: Iterable[tuple[MessageQueue, str]]) -> dict[MessageQueue, frozenset[str]]:
    found: dict[MessageQueue, set[str]] = {}
    for queue, what in pairs:
        found.setdefault(queue, set()).add(what)
    return {queue: frozenset(them) for queue, them in found.items()}


# -- reading ----------------------------------------------------------------------------------------------------------


def _required(given: _Json, key: str, read: Callable[[object], T]) -> T:
    if key not in given:
        raise ControlMessageError(f"{key} is missing")
    try:
        return read(given[key])
    except ControlMessageError as error:
        raise ControlMessageError(f"{key}: {error}") from None


def _nullable(given: _Json, key: str, read: Callable[[object], T]) -> T | None:
    return None if given.get(key) is None else _required(given, key, read)


def _optional(given: _Json, key: str, read: Callable[[object], T], default: D) -> T | D:
    try:
        return _required(given, key, read)
    except ControlMessageError:
        return default


def _each(read: Callable[[object], T]) -> Callable[[object], tuple[T, ...]]:
    def read_all(given: object) -> tuple[T, ...]:
        if not isinstance(given, list):
            raise ControlMessageError("it is not a list")
        return tuple(read(one) for one in given)

    return read_all


def _object(given: object) -> _Json:
    if not isinstance(given, dict):
        raise ControlMessageError("it is not an object")
    return given


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise ControlMessageError("it is not text")
    return given


_texts = _each(_text)


def _flag(given: object) -> bool:
    if not isinstance(given, bool):
        raise ControlMessageError("it is neither true nor false")
    return given


def _integer(given: object) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise ControlMessageError("it is not a whole number")
    return given


def _count(given: object) -> int:
    number = _integer(given)
    if number < 0:
        raise ControlMessageError("it is below 0")
    return number


def _number(given: object) -> float:
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise ControlMessageError("it is not a number")
    try:
        number = float(given)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ControlMessageError("it is beyond all numbers")
    return number
