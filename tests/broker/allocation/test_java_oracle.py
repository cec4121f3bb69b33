"""Our six standard strategies against Java's own: the same requests, queue by queue, in order, error by error.

A client that once allocated differently from Java's made queues that two members consumed and others that none did. So
the comparison is not with notes about Java but with the classes of the client's jar, on requests made to reach the
corners: duplicated ids, members that are not listed, rooms without members, names beyond the basic plane, empty and
absent lists.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import md5
from itertools import count
from typing import Any

from tests.broker.java_main import JavaPrograms

from rocketfleet.cli.commands.allocate import answer

CASES_PER_STRATEGY = 2_500
# Where Java fell over a null it never looked for, its text is the JVM's; ours names the parameter.
OUR_TEXT_FOR_NULL = {
    "MACHINE_ROOM": "consumeridcs is null: name the machine rooms whose brokers the group consumes from",
    "CONFIG": "messageQueueList is null: list the queues of the inner strategy CONFIG",
}

Draw = random.Random
Params = dict[str, Any] | None

# Sorted by UTF-16 units, 😀 (surrogates from U+D83D) comes before ﷽ (U+FDFD) and ｚ (U+FF5A); by code points it comes
# last.
LETTERS = [
    "a",
    "b",
    "Z",
    "0",
    "9",
    "-",
    "@",
    "#",
    "%",
    ".",
    " ",
    "é",
    "中",
    "\ue000",
    "﷽",
    "ｚ",
    "😀",
    "𝄞",
    "\ud83d",
    "\udc00",
]


def name(draw: Draw, longest: int = 4) -> str:
    return "".join(draw.choices(LETTERS, k=draw.randint(1, longest)))


def plain_name(draw: Draw, kind: str) -> str:
    return f"{kind}-{draw.randrange(40)}"


def broker_name(draw: Draw) -> str:
    room = draw.choice(["r1", "r2", "r3", "😀", "ｚ", ""])
    return draw.choice(
        [
            f"{room}@broker-a",
            f"{room}@b",
            f"{room}-b",
            f"{room}@b@",
            f"@{room}",
            f"{room}@@b",
            f"a@{room}@b",
            name(draw),
        ]
    )


def member_name(draw: Draw) -> str:
    room = draw.choice(["r1", "r2", "r3", "😀", "ｚ", ""])
    return draw.choice([f"{room}-{draw.randrange(20)}", f"{room}@10.0.0.{draw.randrange(9)}", name(draw)])


def queue_lists(draw: Draw, strategy: str = "") -> list[list[Any]] | None:
    if draw.random() < 0.04:
        return draw.choice([None, []])
    if draw.random() < 0.7:  # the shape of real life: a few brokers, queues numbered through
        topic = plain_name(draw, "topic")
        brokers = BROKERS.get(strategy) or draw.choice([["a"], ["a", "b", "c"], ["😀", "ｚ"]])
        queues: list[list[Any]] = [[topic, broker, i] for broker in brokers for i in range(draw.randint(1, 12))]
    else:
        queues = [[name(draw), broker_name(draw), draw.randrange(12)] for _ in range(draw.randint(1, 12))]
    draw.shuffle(queues)
    if draw.random() < 0.1:
        queues.append(draw.choice(queues))
    return queues


def member_lists(draw: Draw) -> list[str] | None:
    if draw.random() < 0.04:
        return draw.choice([None, []])
    if draw.random() < 0.6:
        members = [
            f"{draw.choice(['r1', 'r2', 'r4'])}-10.0.0.{i}@{draw.randrange(9999)}" for i in range(draw.randint(1, 12))
        ]
    else:
        members = [member_name(draw) for _ in range(draw.randint(1, 10))]
    if draw.random() < 0.15:
        members += draw.choices(members, k=draw.randint(1, 3))
    draw.shuffle(members)
    return members


def no_params(draw: Draw) -> Params:
    return draw.choice([None, {}])


def hash_params(draw: Draw) -> Params:
    return draw.choice([None, {}, {"virtualNodeCnt": draw.choice([-5, -1, 0, 1, 2, 10, 10, 40])}])


def config_params(draw: Draw) -> Params:
    return draw.choice([None, {"messageQueueList": None}, {"messageQueueList": queue_lists(draw)}])


def room_params(draw: Draw) -> Params:
    rooms = draw.sample(["r1", "r2", "r3", "r4", "😀", "ｚ", "", "a"], k=draw.randint(0, 8))
    return draw.choice([{"consumeridcs": rooms}] * 9 + [None, {"consumeridcs": None}])


def nearby_params(draw: Draw) -> Params:
    inner = draw.choice([*PARAMS, *PARAMS, None])
    params: dict[str, Any] = {"inner": inner, "separator": draw.choice(["-", "-", "@", "@10", "😀", ""])}
    if draw.random() < 0.02:
        params["separator"] = None
    if inner is not None:
        params["innerParams"] = PARAMS[inner](draw)
    return params


BROKERS = {"MACHINE_ROOM": ["r1@a", "r2@a", "r3@b"], "MACHINE_ROOM_NEARBY": ["r1-a", "r2-a", "r3@a", "r3-a"]}
PARAMS: dict[str, Callable[[Draw], Params]] = {
    "AVG": no_params,
    "AVG_BY_CIRCLE": no_params,
    "CONSISTENT_HASH": hash_params,
    "CONFIG": config_params,
    "MACHINE_ROOM": room_params,
    "MACHINE_ROOM_NEARBY": nearby_params,
}


def cases(draw: Draw) -> Iterator[dict[str, Any]]:
    for strategy, params in PARAMS.items():
        for _ in range(CASES_PER_STRATEGY):
            members = member_lists(draw)
            listed = draw.choice(members) if members else "someone"
            yield {
                "strategy": strategy,
                "group": draw.choice(["orders", "orders", "", None]),
                "currentCID": draw.choice([listed] * 20 + [member_name(draw), "", None]),
                "cidAll": members,
                "mqAll": queue_lists(draw, strategy),
                "params": params(draw),
                "sort": draw.random() < 0.6,
            }


def expected(case: dict[str, Any], java: dict[str, Any]) -> dict[str, Any]:
    """What our answer must be, given Java's."""
    if "error" not in java:
        return {**case, "result": java["result"]}
    if java["type"] == "NullPointerException" and java["error"].startswith("Cannot "):
        culprit, params = case["strategy"], case["params"]
        while culprit == "MACHINE_ROOM_NEARBY":
            culprit, params = params["inner"], params["innerParams"]
        return {**case, "error": OUR_TEXT_FOR_NULL[culprit]}
    return {**case, "error": java["error"]}


def ask_java(java: JavaPrograms, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines = java.run("AllocationOracle.java", stdin="".join(json.dumps(case) + "\n" for case in requests), timeout=240)
    answers = [json.loads(line) for line in lines.splitlines()]
    assert len(answers) == len(requests)
    return answers


def test_every_generated_case_is_answered_as_java_answers_it(java: JavaPrograms) -> None:
    # To JSON and back: two halves that happen to stand side by side are one character from then on.
    requests = [json.loads(json.dumps(case)) for case in cases(random.Random(20_240_607))]
    seen: Counter[str] = Counter()
    for number, (case, theirs) in enumerate(zip(requests, ask_java(java, requests), strict=True), start=1):
        ours = json.loads(answer(json.dumps(case).encode(), number))
        assert ours == expected(case, theirs), f"case {number}: Java says {theirs}"
        seen["error" if "error" in ours else "nothing" if not ours["result"] else "queues"] += 1
        seen[f"{case['strategy']} with queues"] += bool(ours.get("result"))
        seen[ours.get("error", "")[:24]] += 1

    assert len(requests) >= 10_000
    # The comparison says something only if the cases reach every kind of answer.
    assert min(seen["error"], seen["nothing"]) > 1_000
    assert seen["queues"] > 6_000
    assert all(seen[f"{strategy} with queues"] > 500 for strategy in PARAMS)
    for text in (
        "currentCID is empty",
        "mqAll is null or mqAll e",
        "cidAll is null or cidAll",
        "illegal virtualNodeCnt :",
        "Machine room is null for",
        "allocateMessageQueueStra",
        "machineRoomResolver is n",
        "consumeridcs is null: na",
        "messageQueueList is null",
    ):
        assert seen[text] > 5, f"no case was answered with {text!r}"


def test_a_large_ring_on_which_two_members_share_a_place_is_answered_as_java_answers_it(java: JavaPrograms) -> None:
    # 10,000 places of 2^32 are seldom the same; of these thousand ids, two are. The later one has the place.
    draw = random.Random(42)
    members = [f"10.0.{i // 250}.{i % 250}@{i}#{draw.getrandbits(40)}" for i in range(1_000)]
    nodes: dict[bytes, list[str]] = {}
    for member in sorted(members):
        for node in range(10):
            nodes.setdefault(md5(f"{member}-{node}".encode()).digest()[:4], []).append(member)
    places = sorted(nodes)
    shared = next(index for index, place in enumerate(places) if len(nodes[place]) > 1)
    queues = [["orders", f"broker-{broker}", i] for broker in range(8) for i in range(250)]
    # Some queue must lie just before the place, or it would not matter whose it is.
    for number in count():
        text = f"MessageQueue [topic=orders, brokerName=broker-x, queueId={number}]"
        if places[shared - 1] < md5(text.encode()).digest()[:4] <= places[shared]:
            queues.append(["orders", "broker-x", number])
            break
    earlier, later = nodes[places[shared]]
    requests = [
        {
            "strategy": strategy,
            "group": "orders",
            "currentCID": member,
            "cidAll": members,
            "mqAll": queues,
            "params": None,
            "sort": True,
        }
        for strategy in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
        for member in (earlier, later, *draw.sample(members, k=3))
    ]
    answers = ask_java(java, requests)
    assert [queues[-1] in theirs["result"] for theirs in answers[10:12]] == [False, True]
    for case, theirs in zip(requests, answers, strict=True):
        assert json.loads(answer(json.dumps(case).encode(), 1))["result"] == theirs["result"]
