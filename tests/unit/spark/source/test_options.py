"""Options of the source: defaults, and one sentence for each mistake."""

import os
from datetime import UTC, datetime

import pytest

from rocketfleet.spark.source.errors import SourceError, in_one_sentence, sentence_of, spoken
from rocketfleet.spark.source.options import Where, read_options, write_options
from rocketfleet.wire.queue import MessageQueue

BASE = {"topic": "orders", "nameservers": "127.0.0.1:9876"}


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("ROCKETFLEET_"):
            monkeypatch.delenv(name)


def batch(**more: str) -> object:
    return read_options({**BASE, **more}, streaming=False)


def test_the_defaults_of_a_batch_read() -> None:
    options = read_options(BASE, streaming=False)
    assert options.topics == ("orders",)
    assert options.group == "rocketfleet-spark"
    assert (options.starting.where, options.ending.where) == (Where.EARLIEST, Where.LATEST)
    assert options.pull_batch_size == 32
    assert options.fail_on_data_loss
    assert not options.include_properties


def test_a_streaming_read_begins_at_the_end() -> None:
    assert read_options({**BASE, "group": "g"}, streaming=True).starting.where is Where.LATEST


def test_names_are_read_in_any_case() -> None:
    options = read_options({"Topic": "a, b,a", "NAMESERVERS": "h:1;i:2", "pullBatchSize": "64"}, streaming=False)
    assert options.topics == ("a", "b")
    assert options.connection.config().name_servers == ("h:1", "i:2")
    assert options.pull_batch_size == 64


def test_explicit_offsets() -> None:
    options = read_options({**BASE, "startingoffsets": '{"orders": {"b": {"0": 7}}}'}, streaming=False)
    assert options.starting.where is Where.EXPLICIT
    assert options.starting.offsets == {MessageQueue("orders", "b", 0): 7}


@pytest.mark.parametrize("text", ["1768435200000", "2026-01-15T00:00:00Z", "2026-01-15T01:00:00+01:00"])
def test_times(text: str) -> None:
    options = read_options({**BASE, "startingTimestamp": text}, streaming=False)
    assert options.starting.timestamp == int(datetime(2026, 1, 15, tzinfo=UTC).timestamp() * 1000)


def test_credentials_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKETFLEET_ACCESS_KEY", "me")
    monkeypatch.setenv("ROCKETFLEET_SECRET_KEY", "hush-hush")
    options = read_options(BASE, streaming=False)
    assert options.connection.credentials is not None
    assert options.connection.credentials.secret_key == "hush-hush"
    assert "hush" not in repr(options)


def test_a_file_of_credentials_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKETFLEET_ACCESS_KEY", "me")
    monkeypatch.setenv("ROCKETFLEET_SECRET_KEY", "hush-hush")
    connection = read_options({**BASE, "credentialsPath": "/keys"}, streaming=False).connection
    assert (connection.credentials, connection.config().credentials_path) == (None, "/keys")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topik": "x"}, "has no option 'topik': did you mean topic?"),
        ({"zzz": "x"}, "has no option 'zzz': there are accessKey"),
        ({"topic": " , "}, "names no topic"),
        ({"credentialspath": "/keys", "accesskey": "me", "secretkey": "x"}, "are both given: give one"),
        ({"topic": ""}, "the option topic is missing"),
        ({"nameservers": ""}, "the option nameServers is missing"),
        ({"nameservers": "nowhere"}, "nameServers: 'nowhere' is not an address"),
        ({"startingoffsets": "{x"}, "startingOffsets is neither a keyword nor JSON"),
        ({"endingoffsets": "committed"}, "endingOffsets is neither a keyword nor JSON"),
        ({"startingoffsets": "latest", "startingtimestamp": "1"}, "are both given: give one"),
        ({"startingtimestamp": "yesterday"}, "startingTimestamp is 'yesterday': give milliseconds"),
        ({"startingtimestamp": "2026-01-15T00:00:00"}, "startingTimestamp is '2026-01-15T00:00:00'"),
        ({"startingtimestamp": "5", "endingtimestamp": "5"}, "the range is empty"),
        ({"startingoffsets": "latest"}, "the range is empty: a batch read cannot begin at the end"),
        ({"endingoffsets": "earliest"}, "the range is empty: a batch read cannot"),
        ({"minpartitions": "0"}, "minPartitions is '0': give a whole number from 1"),
        ({"pullbatchsize": "2k"}, "pullBatchSize is '2k'"),
        ({"failondataloss": "maybe"}, "failOnDataLoss is 'maybe': give true or false"),
        ({"group": "a b"}, "the group name 'a b' is not allowed"),
        ({"subexpression": "||"}, "subExpression: "),
        ({"accesskey": "me"}, "credentials are incomplete: give secretKey"),
        ({"keyfile": "k"}, "a key file was given without a certificate file"),
        ({"maxoffsetspertrigger": "5"}, "maxOffsetsPerTrigger is for streaming reads"),
    ],
)
def test_a_mistake_is_one_sentence(given: dict[str, str], said: str) -> None:
    with pytest.raises(SourceError) as caught:
        batch(**given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_streaming_read_needs_a_group_and_has_no_end() -> None:
    with pytest.raises(SourceError, match="needs the option group"):
        read_options(BASE, streaming=True)
    with pytest.raises(SourceError, match="endingOffsets is for batch reads"):
        read_options({**BASE, "group": "g", "endingoffsets": "latest"}, streaming=True)


def test_a_write_takes_what_spark_adds_and_refuses_the_rest() -> None:
    options = write_options({**BASE, "checkpointLocation": "/tmp/x", "batchId": "42"})
    assert (options.topic, options.batch_id) == ("orders", "42")
    with pytest.raises(SourceError, match="a write of rocketmq has no option 'subexpression'"):
        write_options({**BASE, "subExpression": "a"})


def test_the_sentence_is_found_in_what_spark_makes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HIDE_TRACEBACK", raising=False)
    inner = RuntimeError(
        "[PYTHON_DATA_SOURCE_ERROR] Failed: rocketfleet.spark.source.errors.SourceError: topic x is not there\n SQL"
    )
    outer = RuntimeError("the query failed")
    outer.__cause__ = inner
    assert sentence_of(outer) == "topic x is not there"
    assert sentence_of(RuntimeError("no memory")) is None


def test_an_error_leaves_a_worker_without_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HIDE_TRACEBACK", raising=False)

    @in_one_sentence
    def fail() -> None:
        raise SourceError("it is so")

    with pytest.raises(SourceError, match="it is so"):
        fail()
    assert os.environ.pop("SPARK_HIDE_TRACEBACK") == "1"
    spoken(SourceError("x"))
    assert os.environ.pop("SPARK_HIDE_TRACEBACK") == "1"
