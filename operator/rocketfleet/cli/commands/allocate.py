"""`rocketfleet allocate`: ask a strategy by hand, or a thousand times from a script.

One request per line, one answer per line, so that a planned scale-out can be tried out on paper, and so that a test can
hold our strategies against Java's. Nothing in a line can stop the command: what is wrong with it is said in its
answer.
"""

import json
from dataclasses import dataclass
from typing import IO, Any, NoReturn

import click

from rocketfleet.allocation.consistent_hash import DEFAULT_VIRTUAL_NODES
from rocketfleet.allocation.java_order import sort_members, sort_queues
from rocketfleet.allocation.machine_room_nearby import room_before
from rocketfleet.allocation.request import AllocationError, AllocationRequest
from rocketfleet.allocation.strategies import Parameters, Strategy, build
from rocketfleet.wire.queue import MessageQueue

MOST_VIRTUAL_NODES = 100_000  # one line must not hold up the others for minutes

# Click's \b must open a paragraph, or the lines are filled.
EXAMPLE = """\b
Example, on one line:
  {"strategy": "AVG", "group": "orders", "currentCID": "b", "cidAll": ["a", "b"],
   "mqAll": [["t", "broker-a", 0], ["t", "broker-a", 1], ["t", "broker-a", 2]],
   "params": null, "sort": true}
answers the same with
  "result": [["t", "broker-a", 2]]
"""


@click.command(
    epilog=EXAMPLE,
    short_help="Ask an allocation strategy which queues a member gets.",
)
@click.argument("requests", type=click.File("rb"), default="-")
def allocate(requests: IO[bytes]) -> None:
    """Ask which queues a member gets.

    Reads requests, one JSON object a line, from a file or from standard input, and writes each back with its "result",
    a list of [topic, broker, queueId], or with its "error".

    \b
    "strategy"  AVG, AVG_BY_CIRCLE, CONSISTENT_HASH, CONFIG, MACHINE_ROOM,
                MACHINE_ROOM_NEARBY or BALANCED; manifest names do as well
    "sort"      true: sort members and queues first, as a consumer does;
                false: use them in the order given
    "params"    CONSISTENT_HASH      virtualNodeCnt (default 10)
                CONFIG               messageQueueList [[topic, broker, queueId], …]
                MACHINE_ROOM         consumeridcs [room, …]
                MACHINE_ROOM_NEARBY  inner (a strategy), innerParams, separator
                                     (the room is the text before it, in broker
                                     names and client ids)
                BALANCED             owners [[topic, broker, queueId, member], …]

    A bad line is answered with an "error" and the next one is read. The exit code is 0 unless the input cannot be read.
    """
    for number, line in enumerate(requests, start=1):
        # echo flushes: a program at the other end may wait for this answer before it asks on
        click.echo(answer(line, number))


def answer(line: bytes, number: int) -> str:
    """One request, as the line that answers it."""
    try:
        return json.dumps(_answer(line, number))
    except RecursionError:
        return json.dumps({"error": f"line {number} is nested too deeply"})


def _answer(line: bytes, number: int) -> dict[str, Any]:
    try:
        given = json.loads(line.rstrip(b"\r\n"), parse_constant=_no_constant)
    except ValueError as error:
        return {"error": f"line {number} is not JSON: {error}"}
    if not isinstance(given, dict):
        return {"error": f"line {number} is not a JSON object but {_kind(given)}"}
    answered = {name: value for name, value in given.items() if name not in ("result", "error")}
    try:
        answered["result"] = _allocate(given)
    except AllocationError as error:
        answered["error"] = str(error)
    return answered


def _allocate(given: dict[str, Any]) -> list[MessageQueue] | None:
    asked = _strategy(given.get("strategy"), given.get("params"), "params")
    members = _texts(given.get("cidAll"), "cidAll")
    queues = _queues(given.get("mqAll"), "mqAll")
    sort = given.get("sort", True)
    if not isinstance(sort, bool):
        raise AllocationError(f"sort must be true or false, not {_kind(sort)}")
    request = AllocationRequest(
        group=_text(given.get("group"), "group"),
        member=_text(given.get("currentCID"), "currentCID"),
        members=sort_members(members) if sort else members,
        queues=sort_queues(queues) if sort else queues,
        owners=asked.owners,
    )
    share = asked.strategy.allocate(request)
    return None if asked.is_null else share


@dataclass(frozen=True, slots=True)
class _Asked:
    strategy: Strategy
    owners: dict[MessageQueue, str]
    is_null: bool = False  # Java's CONFIG without a list answers null


def _strategy(name: object, params: object, where: str) -> _Asked:
    if not isinstance(name, str):
        raise AllocationError(f"strategy must be the name of a strategy, not {_kind(name)}")
    given = {} if params is None else params
    if not isinstance(given, dict):
        raise AllocationError(f"{where} must be an object or null, not {_kind(given)}")
    owners = _owners(given.get("owners"))
    inner: Strategy | None = None
    if given.get("inner") is not None:
        within = _strategy(given["inner"], given.get("innerParams"), "innerParams")
        inner = (
            Strategy(within.strategy.name, within.strategy.scope, _refuse_null) if within.is_null else within.strategy
        )
        owners = owners or within.owners
    nodes = given.get("virtualNodeCnt")
    if nodes is not None and (not isinstance(nodes, int) or isinstance(nodes, bool)):
        raise AllocationError(f"virtualNodeCnt must be a whole number, not {_kind(nodes)}")
    if nodes is not None and nodes > MOST_VIRTUAL_NODES:
        raise AllocationError(f"virtualNodeCnt is {nodes}; this command builds rings of at most {MOST_VIRTUAL_NODES}")
    rooms, listed = given.get("consumeridcs"), given.get("messageQueueList")
    parameters = Parameters(
        rooms=None if rooms is None else frozenset(_texts(rooms, "consumeridcs")),
        queues=None if listed is None else _queues(listed, "messageQueueList"),
        inner=inner,
        virtual_nodes=DEFAULT_VIRTUAL_NODES if nodes is None else nodes,
        **_resolvers(given.get("separator")),
    )
    strategy = build(name, parameters)
    return _Asked(strategy, owners, is_null=strategy.name == "CONFIG" and listed is None)


def _resolvers(separator: object) -> dict[str, Any]:
    if separator is None:
        return {}
    room = room_before(_text(separator, "separator"))
    return {"room_of_queue": lambda queue: room(queue.broker), "room_of_member": room}


def _refuse_null(request: AllocationRequest) -> NoReturn:
    # Java's MACHINE_ROOM_NEARBY adds up what the inner strategy answers, and falls over its null.
    raise AllocationError("messageQueueList is null: list the queues of the inner strategy CONFIG")


def _owners(value: object) -> dict[MessageQueue, str]:
    owners: dict[MessageQueue, str] = {}
    for entry in _list(value, "owners"):
        if not isinstance(entry, list) or len(entry) != 4 or not isinstance(entry[3], str):
            raise AllocationError(f"owners must hold [topic, broker, queueId, member], not {json.dumps(entry)}")
        owners[_queue(entry[:3], "owners")] = entry[3]
    return owners


def _queues(value: object, where: str) -> list[MessageQueue]:
    return [_queue(entry, where) for entry in _list(value, where)]


def _queue(entry: object, where: str) -> MessageQueue:
    match entry:
        case [str(topic), str(broker), int(queue_id)] if not isinstance(queue_id, bool):
            return MessageQueue(topic, broker, queue_id)
    raise AllocationError(f"{where} must hold [topic, broker, queueId], not {json.dumps(entry)}")


def _texts(value: object, where: str) -> list[str]:
    texts = _list(value, where)
    for text in texts:
        if not isinstance(text, str):
            raise AllocationError(f"{where} must hold strings, not {_kind(text)}")
    return texts


def _list(value: object, where: str) -> list[Any]:
    if value is None:  # to Java, no list and an empty one are the same here
        return []
    if not isinstance(value, list):
        raise AllocationError(f"{where} must be a list or null, not {_kind(value)}")
    return value


def _text(value: object, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise AllocationError(f"{where} must be a string or null, not {_kind(value)}")
    return value


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
    return "an object"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
