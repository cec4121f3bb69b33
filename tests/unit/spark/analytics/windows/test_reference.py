"""How a history is named, how figures are worded, and what the command refuses before any Spark is started."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from rocketfleet.cli.commands.spark import spark
from rocketfleet.spark.analytics.collecting import step_for
from rocketfleet.spark.analytics.windows.reference import HistoryError, ParquetHistory, TopicHistory, parse_history
from rocketfleet.spark.analytics.wording import number, span


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("/data/lag", ParquetHistory("/data/lag")),
        ("s3a://bucket/lag", ParquetHistory("s3a://bucket/lag")),
        ("rocketmq://10.0.0.1:9876/lag-history", TopicHistory("10.0.0.1:9876", "lag-history")),
        ("rocketmq://a:9876,b:9876/lag", TopicHistory("a:9876;b:9876", "lag")),
        ("rocketmq://a:9876;b:9876/lag", TopicHistory("a:9876;b:9876", "lag")),
    ],
)
def test_a_directory_or_a_topic(text: str, meant: object) -> None:
    assert parse_history(text) == meant


@pytest.mark.parametrize("text", ["", "rocketmq://", "rocketmq://a:9876", "rocketmq:///topic", "rocketmq://a:1/b/c"])
def test_what_names_neither_is_refused(text: str) -> None:
    with pytest.raises(HistoryError, match="rocketmq://host:port/topic"):
        parse_history(text)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0, "0"), (0.25, "0.25"), (7.0, "7"), (1234, "1,234"), (12_345, "12.3 k"), (1_200_000, "1.2 M"),
     (float("inf"), "∞"), (-3.456, "-3.46")],
)  # fmt: skip
def test_numbers(value: float | None, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0.0, "0 s"), (0.4, "0.4 s"), (75, "1 min 15 s"), (3600, "1 h"), (3661, "1 h 1 min"),
     (86_400 * 2 + 3 * 3600 + 60, "2 d 3 h"), (float("inf"), "never")],
)  # fmt: skip
def test_spans(value: float | None, shown: str) -> None:
    assert span(value) == shown


def test_charts_have_a_bounded_number_of_points() -> None:
    assert step_for(3600, 300) == 300
    for days in (1, 7, 31, 365):
        step = step_for(days * 86_400, 300)
        assert step % 300 == 0
        assert days * 86_400 / step <= 240


def test_the_command_says_what_it_lacks(tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        answer = CliRunner().invoke(spark, ["report", *arguments])
        assert answer.exit_code in {1, 2}
        return answer.output

    assert "say where the history is" in said("--out", "x.html")
    assert "say what to make of it" in said("--history", str(tmp_path))
    assert "there is no directory" in said("--history", str(tmp_path), "--out", str(tmp_path / "no" / "x.html"))
    assert "does not name a topic" in said("--history", "rocketmq://x", "--out", str(tmp_path / "x.html"))
