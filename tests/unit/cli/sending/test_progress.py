"""The progress line: drawn on a terminal only, never in the way of what is said."""

import io

import pytest
from tests.support.clock import Clock

from rocketfleet.cli.sending.progress import ProgressLine, bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_at_most_ten_times_a_second() -> None:
    terminal, clock = Terminal(), Clock(0.0)
    progress = ProgressLine(terminal, lambda: "state", clock=clock)
    for _ in range(10):
        progress.update()
    assert terminal.getvalue().count("state") == 1
    clock.now = 0.2
    progress.update()
    assert terminal.getvalue().count("state") == 2


def test_what_is_said_takes_the_lines_place() -> None:
    terminal = Terminal()
    progress = ProgressLine(terminal, lambda: "state", clock=Clock(0.0))
    progress.update()
    progress.say("line 3: too long")
    progress.clear()
    assert terminal.getvalue() == "\r\x1b[Kstate\r\x1b[Kline 3: too long\n"


def test_no_progress_where_none_is_wanted() -> None:
    terminal = Terminal()
    ProgressLine(terminal, lambda: "state", wanted=False).update()
    assert terminal.getvalue() == ""


def test_no_terminal_no_progress() -> None:
    stream = io.StringIO()
    progress = ProgressLine(stream, lambda: "state")
    progress.update()
    progress.clear()
    assert stream.getvalue() == ""
    progress.say("a failure")
    assert stream.getvalue() == "a failure\n"


@pytest.mark.parametrize(
    ("done", "total", "share"), [(0, 10, 0), (5, 10, 50), (10, 10, 100), (12, 10, 100), (0, 0, 100)]
)
def test_the_bar(done: int, total: int, share: int) -> None:
    drawn = bar(done, total)
    assert drawn.endswith(f"{share:3d}%")
    assert drawn.count("#") == 30 * share // 100
    assert len(drawn) == 37
