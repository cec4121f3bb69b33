"""Progress on a terminal and in a log."""

import io

from rocketfleet.devbroker.reporting import StreamReporter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_progress_is_replaced_and_cleared() -> None:
    terminal = Terminal()
    reporter = StreamReporter(terminal)
    reporter.progress("1 of 2")
    reporter.progress("2 of 2")
    reporter.say("done")
    assert terminal.getvalue() == "\r\x1b[K1 of 2\r\x1b[K2 of 2\r\x1b[Kdone\n"


def test_in_a_log_progress_is_a_line_now_and_then() -> None:
    log, now = io.StringIO(), 0.0
    reporter = StreamReporter(log, clock=lambda: now)
    for second in range(12):
        now = float(second)
        reporter.progress(f"{second} s")
    reporter.say("done")
    assert log.getvalue() == "0 s\n5 s\n10 s\ndone\n"


def test_the_same_state_is_not_told_twice() -> None:
    terminal = Terminal()
    reporter = StreamReporter(terminal)
    reporter.progress("waiting")
    reporter.progress("waiting")
    assert terminal.getvalue().count("waiting") == 1
