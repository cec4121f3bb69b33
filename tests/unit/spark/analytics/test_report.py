"""The page: all there, nothing from elsewhere, and no name that could be more than a name."""

import re
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser

from tests.unit.spark.analytics.making import KEY, STUCK, WELL, analysis, group, hour, points

from rocketfleet.spark.analytics.figures import ClusterGroupKey, GroupDetail, QueueTotal
from rocketfleet.spark.analytics.recommending import recommend
from rocketfleet.spark.analytics.report.page import page
from rocketfleet.spark.analytics.report.svg import Scale, area, line, time_ticks, value_ticks

EVIL = '<script>alert("x")</script>&\'"'
VOID = {"meta", "rect", "line", "path", "br", "i"}


class Balanced(HTMLParser):
    """Fails if an element is not closed where it should be; collects what is named."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def parsed(text: str) -> Balanced:
    parser = Balanced()
    parser.feed(text)
    parser.close()
    assert parser.open == [], "elements that are left open"
    return parser


def full(key: ClusterGroupKey = KEY, queue: str = "orders") -> str:
    queues = tuple(QueueTotal(queue, "broker-a", number, 5.0 * number, 9, 9, 1.0, 2.0) for number in range(8))
    hourly = {date(2026, 1, day): {number: 10.0 * number for number in range(24)} for day in (5, 6)}
    detail = GroupDetail(points(1.0, None, 50.0, 20.0), hourly, queues)
    busy = group(
        key=key, queues=2, busy_rate=100.0, busy_windows=9, hours=(hour(300), None, *(hour(20),) * 22), lag=9_999_999,
        drain_seconds=float("inf"),
    )  # fmt: skip
    stuck = replace(STUCK, key=key, topic=queue, owner=f"{queue}-0")
    made = analysis(busy, details={key: detail}, stuck=(stuck,))
    return page(made, [recommend(busy)], 90_000.0)


def test_the_page_is_well_formed_and_says_what_it_is_of() -> None:
    text = full()
    found = parsed(text)
    words = " ".join(found.words)
    assert "1970-01-01 00:00 to 1970-01-02 00:00 UTC" in words
    assert "from /data/lag" in words
    assert "Written 1970-01-02 01:00 UTC" in words
    assert "Queue orders@broker-a/3 has stood still for 10 h" in words
    assert "Add 2 queues" in words
    assert {"svg", "table", "path", "rect"} <= found.seen


def test_nothing_is_fetched_and_nothing_is_run() -> None:
    text = full()
    assert not re.search(r"https?:|src=|@import|url\(|<script|<link|<iframe|\son\w+=", text)
    assert "prefers-color-scheme: dark" in text


def test_names_stay_names() -> None:
    found = parsed(full(ClusterGroupKey(EVIL, EVIL), EVIL))
    assert "script" not in found.seen
    assert EVIL in "".join(found.words)


def test_a_page_of_nothing_but_a_group_without_figures() -> None:
    unknown = replace(
        WELL,
        lag=None,
        seconds=None,
        produce_rate=None,
        consume_rate=None,
        lag_p95=None,
        seconds_p95=None,
        lag_skew=None,
    )
    found = parsed(page(analysis(unknown), [recommend(unknown)], 0.0))
    assert "All groups are well" in "".join(found.words)
    assert "nobody was seen consuming" in "".join(found.words)


def test_groups_without_charts_are_still_in_the_table() -> None:
    many = [group(key=ClusterGroupKey("c", f"group-{number}")) for number in range(30)]
    text = page(analysis(*many, details={many[3].key: GroupDetail(points(1.0, 2.0))}), [], 0.0)
    assert text.count("<section") == 1
    assert all(one.key.group in text for one in many)
    assert "Charts are shown for 1 of 30 groups" in text


def test_ticks_are_round_and_cover_what_is_shown() -> None:
    assert value_ticks(0.0) == [0.0, 1.0]
    assert value_ticks(87.0) == [0.0, 50.0, 100.0]
    assert value_ticks(1200.0)[-1] >= 1200.0
    week = time_ticks(0.0, 7 * 86_400.0)
    assert [label for _, label in week][:2] == ["Thu 1 Jan", "Fri 2 Jan"]
    assert [label for _, label in time_ticks(3600.0, 3600.0 * 7)] == [f"0{number}:00" for number in range(1, 8)]


def test_a_gap_is_a_gap() -> None:
    x, y = Scale(0, 10, 0, 10), Scale(0, 10, 10, 0)
    places = [(0.0, 5.0), (1.0, 5.0), (2.0, None), (3.0, 1.0)]
    assert line(places, x, y) == "M0 5L1 5M3 9"
    assert area(places, x, y) == "M0 10L0 5L1 5L1 10ZM3 10L3 9L3 10Z"
