"""What handlers print comes out by whole lines, however many threads print."""

import io
import threading

from rocketfleet.worker.whole_lines import WholeLines


def test_lines_of_many_threads_are_not_mixed() -> None:
    plain = io.StringIO()
    lines = WholeLines(plain)
    together = threading.Barrier(8)

    def work(name: int) -> None:
        together.wait()
        for number in range(200):
            print("thread", name, "line", number, file=lines)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = sorted(f"thread {name} line {number}" for name in range(8) for number in range(200))
    assert sorted(plain.getvalue().splitlines()) == expected


def test_a_line_goes_out_when_it_ends_or_is_flushed() -> None:
    plain = io.StringIO()
    lines = WholeLines(plain)
    print("a", end="", file=lines)
    assert plain.getvalue() == ""
    print("b\nc", end="", file=lines)
    assert plain.getvalue() == "ab\n"
    lines.flush()
    assert plain.getvalue() == "ab\nc"
    thread = threading.Thread(target=lambda: lines.write("left"))
    thread.start()
    thread.join()
    lines.finish()
    assert plain.getvalue() == "ab\ncleft"
