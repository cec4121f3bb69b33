"""What a dying JVM is quoted with."""

from rocketfleet.devbroker.lastwords import last_words


def test_the_reason_is_found_among_the_frames() -> None:
    output = """load config properties file OK, ns.conf
java.lang.IllegalStateException: Failed to bind to 127.0.0.1:9876
\tat org.apache.rocketmq.remoting.netty.NettyRemotingServer.start(NettyRemotingServer.java:260)
Caused by: java.net.BindException: Address already in use
\tat java.base/sun.nio.ch.Net.bind0(Native Method)
\t... 12 more
\tSuppressed: java.lang.RuntimeException: Rethrowing promise failure cause
"""
    assert last_words(output) == [
        "java.lang.IllegalStateException: Failed to bind to 127.0.0.1:9876",
        "Caused by: java.net.BindException: Address already in use",
    ]


def test_without_trouble_the_last_lines_speak() -> None:
    assert last_words("one\ntwo\n\nthree\nfour\n") == ["two", "three", "four"]


def test_a_silent_output_leaves_the_word_to_the_logs() -> None:
    log = (
        "2026-01-01 10:00:00 INFO main - fine\n2026-01-01 10:00:01 ERROR main - parse of messageDelayLevel went wrong\n"
    )
    assert last_words("", ["", log]) == ["parse of messageDelayLevel went wrong"]
    assert last_words("something else", [log]) == ["parse of messageDelayLevel went wrong"]
    assert last_words("java.io.IOException: no", [log]) == ["java.io.IOException: no"]


def test_silence_is_silence() -> None:
    assert last_words("\n\n") == []


def test_long_lines_are_cut() -> None:
    (line,) = last_words("x" * 1000)
    assert len(line) < 301
