"""The reader takes JSON and fastjson's dialect, and says no to everything else with the same exception, soon."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.wire.errors import BodyError
from rocketfleet.wire.fastjson import MAX_DEPTH, loads

scalars = st.none() | st.booleans() | st.integers(-(1 << 63), 1 << 63) | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=8
)
plain_keys = st.text() | st.integers(-(1 << 63), (1 << 63) - 1)
object_keys = st.dictionaries(st.text(), st.text() | st.integers(0, 100), max_size=3)


def write(value: Any, space: str = "") -> str:
    """The dialect: what fastjson writes for a map whose keys are not strings. Keys come as (kind, key) here."""
    if isinstance(value, Keyed):
        pairs = [f"{json.dumps(key)}{space}:{space}{write(item, space)}" for key, item in value.items]
        return "{" + space + f",{space}".join(pairs) + space + "}"
    return json.dumps(value)


class Keyed:
    """A map with keys of any kind."""

    def __init__(self, items: list[tuple[Any, Any]]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"Keyed({self.items})"


def expected(value: Any) -> Any:
    if isinstance(value, Keyed):
        return {
            tuple(sorted(key.items())) if isinstance(key, dict) else key: expected(item) for key, item in value.items
        }
    return value


keyed = st.builds(Keyed, st.lists(st.tuples(plain_keys | object_keys, scalars), max_size=3))
nested = st.builds(Keyed, st.lists(st.tuples(plain_keys | object_keys, values | keyed), max_size=3))


@given(values)
def test_standard_json_is_read_as_the_json_module_reads_it(value: Any) -> None:
    text = json.dumps(value)
    assert loads(text) == loads(text.encode()) == loads(memoryview(text.encode())) == value


@given(nested, st.sampled_from(["", " ", "\n\t "]))
def test_the_dialect(value: Keyed, space: str) -> None:
    assert loads(write(value, space)) == expected(value)


@given(values)
def test_standard_values_inside_the_dialect(value: Any) -> None:
    assert loads(f'{{1:{json.dumps(value)},"a":2}}') == {1: value, "a": 2}


def test_what_brokers_send() -> None:
    body = (
        b'{"consumeTps":0.0,"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:{"brokerOffset":312},'
        b'{"brokerName":"broker-a","queueId":1,"topic":"T"}:{"brokerOffset":-1}}}'
    )
    assert loads(body) == {
        "consumeTps": 0.0,
        "offsetTable": {
            (("brokerName", "broker-a"), ("queueId", 0), ("topic", "T")): {"brokerOffset": 312},
            (("brokerName", "broker-a"), ("queueId", 1), ("topic", "T")): {"brokerOffset": -1},
        },
    }
    assert loads(b'{"brokerAddrs":{0:"127.0.0.1:10911",1:"127.0.0.1:10921"}}') == {
        "brokerAddrs": {0: "127.0.0.1:10911", 1: "127.0.0.1:10921"}
    }
    assert loads("{null:false,1.5:null,true:{}}") == {None: False, 1.5: None, True: {}}
    assert loads('{{"b":1,2:null}:1}') == {((2, None), ("b", 1)): 1}


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        " ",
        "{",
        "}",
        "{1",
        "{1:",
        "{1:2",
        "{1:2,",
        "{1:2,}",
        "{1:2}}",
        "{1:2} x",
        "{1 2}",
        "{:1}",
        "{,}",
        "{1:}",
        "{a:1}",
        "{'a':1}",
        "{1:[1,]}",
        "{1:[1 2]}",
        "{1:[",
        '{1:"',
        '{1:"\\',
        '{1:"\\x"}',
        "{1:tru}",
        "{1:-}",
        "{1:+1}",
        "{{}:1",
        "{{}}",
        "{1:nul",
        "\ufeff{}",
        "{[]:1}",
        "{{1:[]}:1}",
        "{{1:{}}:1}",
        "{{{}:1}:1}",
        "{9223372036854775808:1}",
        "{-9223372036854775809:1}",
        "{{1:9223372036854775808}:1}",
        "{\u0663:1}",
        '{{"a":' + "[" * 600 + "]" * 600 + "}:1}",
        "{1:" + "9" * 5000 + "}",
        "9" * 5000,
        "{1:" * 50_000,
        "{" * 50_000,
        "[" * 50_000,
        '{1:{"a":' * 50_000,
        "{1:" + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) + "}",
    ],
)
def test_garbage_is_a_body_error(garbage: str) -> None:
    with pytest.raises(BodyError):
        loads(garbage)


def test_not_utf8_is_a_body_error() -> None:
    with pytest.raises(BodyError, match="UTF-8"):
        loads(b'{"a":"\xff"}')


def test_depth_is_bounded_but_enough() -> None:
    deep = MAX_DEPTH - 1
    assert loads("{1:" + "[" * deep + "]" * deep + "}")


@given(st.text(st.sampled_from('{}[]:,"\\ 01a-.etrufalsn'), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        loads(text)
    except BodyError:
        return


@pytest.mark.parametrize(
    "unit",
    ['{"a":1}:1,', "1:1,", '"' + "a" * 20 + '":1,', "1:[1,2,{}],", "  1 : 1 ,  "],
)
def test_time_is_linear_in_the_input(unit: str) -> None:
    def spent(count: int) -> float:
        # Distinct keys, so that the result grows too; the closing brace is missing, the worst place for an error.
        text = "{" + "".join(unit.replace("1", str(number), 1) for number in range(count))
        started = time.process_time()
        with pytest.raises(BodyError):
            loads(text)
        return time.process_time() - started

    small, large = (min(spent(count) for _ in range(3)) for count in (500, 5_000))
    assert large < 40 * small + 0.05  # ten times the input; a quadratic reader takes a hundred times as long
