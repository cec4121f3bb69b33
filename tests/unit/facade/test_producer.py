"""The facade's producer without a broker: settings, states, errors, callbacks."""

import ctypes
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rocketfleet.client.errors import ConnectError, RocketMQError
from rocketfleet.facade import client as facade
from rocketfleet.facade.client import Message, Producer, ReceivedMessage, SendStatus
from rocketfleet.facade.exceptions import (
    NullPointerException,
    ProducerException,
    ProducerSendAsyncFailed,
    ProducerSendOnewayFailed,
    ProducerSendOrderlyFailed,
    ProducerSendSyncFailed,
    ProducerStartFailed,
    RocketMQException,
)
from rocketfleet.facade.producer import _STATUS, _by_index, raised_as
from rocketfleet.facade.settings import Settings, fetch_name_servers
from rocketfleet.producer.errors import InvalidMessage
from rocketfleet.producer.result import SendStatus as OwnStatus
from rocketfleet.wire.acl import Credentials
from rocketfleet.wire.message import Message as WireMessage
from rocketfleet.wire.queue import MessageQueue

NOBODY = "127.0.0.1:1"


def message(body: str = "x") -> Message:
    made = Message("orders")
    made.set_body(body)
    return made


@pytest.fixture
def lost() -> Iterator[Producer]:
    """A producer that runs and reaches nobody."""
    producer = Producer("group", timeout=2000)
    producer.set_name_server_address(NOBODY)
    with producer:
        yield producer


def test_the_names_of_the_original_are_there() -> None:
    assert {
        "SendStatus",
        "Message",
        "ReceivedMessage",
        "Producer",
        "TransactionMQProducer",
        "TransactionStatus",
        "ConsumeStatus",
        "SendResult",
        "MessageModel",
        "RecvMessage",
    } <= set(facade.__all__)
    assert all(hasattr(facade, name) for name in facade.__all__)


def test_every_status_has_its_counterpart() -> None:
    assert set(_STATUS) == set(OwnStatus)
    assert set(_STATUS.values()) == set(SendStatus)


def test_settings_arrive_underneath() -> None:
    producer = Producer("first", True, timeout=1500, compress_level=9, max_message_size=1000)
    producer.set_group(b"second")
    producer.set_instance_name("me")
    producer.set_namesrv_addr("a:1;b:2")
    producer.set_session_credentials("key", "hidden", "ALIYUN")
    settings = producer._settings
    config, options = settings.client(), settings.options()
    assert settings.group == "second"
    assert config.name_servers == ("a:1", "b:2")
    assert config.client_id.endswith("@me")
    assert config.credentials == Credentials("key", "hidden")
    assert options.send_timeout == config.timeout == 1.5
    assert options.compression_level == 9
    assert options.max_message_size == 1000
    assert "hidden" not in repr(settings)


def test_the_environment_names_a_name_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "from-environment:9876")
    assert Settings("g").client().name_servers == ("from-environment:9876",)
    assert Settings("g", name_servers="given:1").client().name_servers == ("given:1",)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda producer: None, "no name server is known"),
        (lambda producer: producer.set_name_server_address("nonsense"), "not an address"),
        (lambda producer: producer.set_group("a b"), "group name"),
        (lambda producer: producer.set_compress_level(10), "between 0 and 9"),
        (lambda producer: producer.set_max_message_size(0), "at least 1"),
        (lambda producer: producer.set_name_server_domain("ftp://x/y"), "not an address of a web server"),
    ],
)
def test_a_wrong_setting_is_said_at_the_start(change: Any, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    producer = Producer("group")
    if reason != "no name server is known" and "web server" not in reason:
        producer.set_name_server_address(NOBODY)
    change(producer)
    with pytest.raises(ProducerStartFailed, match=reason):
        producer.start()
    producer.shutdown()


def test_a_web_server_may_hand_out_the_name_servers() -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/nsaddr" else 404)
            self.end_headers()
            self.wfile.write(b"a:1;b:2\n")

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        where = f"127.0.0.1:{server.server_port}"
        assert fetch_name_servers(f"http://{where}/nsaddr") == "a:1;b:2"
        producer = Producer("group")
        producer.set_name_server_domain(f"{where}/nsaddr")
        assert producer._settings.client().name_servers == ("a:1", "b:2")
        producer.set_name_server_domain(f"{where}/absent")
        with pytest.raises(ProducerStartFailed, match="404"):
            producer.start()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_timeout_in_the_place_of_orderly_is_not_taken_for_true() -> None:
    with pytest.raises(TypeError, match="timeout="):
        Producer("group", 3000)  # type: ignore[arg-type] # how 0.4.4 was called


def test_a_group_is_needed() -> None:
    with pytest.raises(NullPointerException):
        Producer(None)  # type: ignore[arg-type] # what the test is about


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_timeout_is_positive(timeout: int) -> None:
    with pytest.raises(ProducerException, match="more than 0"):
        Producer("group", timeout=timeout)


def test_traces_are_refused_and_not_forgotten() -> None:
    Producer("group").set_message_trace(False)
    with pytest.raises(ProducerException, match="no message traces"):
        Producer("group").set_message_trace(True)


def test_a_running_producer_takes_a_new_timeout_and_nothing_else(lost: Producer) -> None:
    lost.set_timeout(100)
    for change in (lost.set_group, lost.set_name_server_address, lost.set_instance_name, lost.set_name_server_domain):
        with pytest.raises(ProducerException, match="only its timeout"):
            change("x")
    for setting in (lost.set_compress_level, lost.set_max_message_size):
        with pytest.raises(ProducerException, match="only its timeout"):
            setting(5)


@pytest.mark.parametrize("shut_down", [False, True])
def test_who_is_not_running_cannot_send(shut_down: bool) -> None:
    producer = Producer("group")
    if shut_down:
        producer.set_name_server_address(NOBODY)
        producer.start()
        producer.shutdown()
    with pytest.raises(ProducerSendSyncFailed, match="not running"):
        producer.send_sync(message())
    with pytest.raises(ProducerSendSyncFailed, match="not running"):
        producer.send_batch([message()])
    with pytest.raises(ProducerSendOnewayFailed, match="not running"):
        producer.send_oneway(message())
    with pytest.raises(ProducerSendOrderlyFailed, match="not running"):
        producer.send_orderly_with_sharding_key(message(), "k")
    with pytest.raises(ProducerSendOrderlyFailed, match="not running"):
        producer.send_orderly(message(), 1)
    with pytest.raises(ProducerSendAsyncFailed, match="not running"):
        producer.send_async(message(), None, None)
    producer.shutdown()


def test_start_and_shutdown_as_often_as_one_likes() -> None:
    producer = Producer("group")
    producer.shutdown()
    producer.set_name_server_address(NOBODY)
    for _ in range(2):
        producer.start()
        producer.start()
        producer.shutdown()
        producer.shutdown()


def test_a_program_that_forgets_to_shut_down_ends_all_the_same() -> None:
    program = (
        "from rocketfleet.facade.client import Message, Producer\n"
        "producer = Producer('group', timeout=2000)\n"
        f"producer.set_name_server_address({NOBODY!r})\n"
        "producer.start()\n"
        "message = Message('orders')\n"
        "message.set_body('x')\n"
        "producer.send_async(message, None, lambda error: None)\n"
        "print('last line')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "last line\n", "")


def test_the_cause_is_kept(lost: Producer) -> None:
    with pytest.raises(ProducerSendSyncFailed) as raised:
        lost.send_sync(message())
    assert isinstance(raised.value, RocketMQException)
    assert isinstance(raised.value.__cause__, RocketMQError)
    assert "127.0.0.1:1" in str(raised.value)


def test_only_messages_can_be_sent(lost: Producer) -> None:
    with pytest.raises(TypeError, match="must be a Message"):
        lost.send_sync("text")  # type: ignore[arg-type] # what the test is about


def test_an_async_failure_reaches_its_callback_in_a_thread_of_its_own(lost: Producer) -> None:
    called: list[Any] = []
    done = threading.Event()

    def on_exception(error: ProducerSendAsyncFailed) -> None:
        called.extend([error, threading.current_thread()])
        try:
            lost.send_sync(message())  # in the producer's own thread this could never be answered
        except ProducerSendSyncFailed as failure:
            called.append(failure)
        done.set()

    lost.send_async(message(), None, on_exception)
    assert done.wait(30)
    error, thread, nested = called
    assert isinstance(error, ProducerSendAsyncFailed)
    assert error.type == "ConnectError" or isinstance(error.__cause__, RocketMQError)
    assert error.error == -1
    assert thread is not threading.current_thread()
    assert isinstance(nested, ProducerSendSyncFailed)


def test_an_async_failure_that_nobody_wants_to_know_is_logged(lost: Producer, caplog: pytest.LogCaptureFixture) -> None:
    lost.send_async(message(), None, None)
    lost.send_async(message(), None, lambda error: 1 / 0)
    lost.shutdown()
    assert "no callback to tell" in caplog.text
    assert "a callback of send_async failed" in caplog.text


def test_raised_as_leaves_bugs_alone() -> None:
    with pytest.raises(ZeroDivisionError), raised_as(ProducerSendSyncFailed):
        raise ZeroDivisionError
    with pytest.raises(ProducerSendSyncFailed) as raised, raised_as(ProducerSendSyncFailed):
        raise ConnectError("a:1", "refused")
    assert isinstance(raised.value.__cause__, ConnectError)


QUEUES = [MessageQueue("orders", "broker-a", i) for i in range(8)]


@pytest.mark.parametrize(("arg", "queue"), [(0, 0), (7, 7), (8, 0), (13, 5), (-1, 7), ((1 << 32) + 3, 3)])
def test_the_default_selector_takes_the_argument_modulo_the_queues(arg: int, queue: int) -> None:
    select = _by_index(facade.hashing_queue_selector, arg)
    assert select(QUEUES, WireMessage("orders", b"x"), None) == QUEUES[queue]


def test_a_selector_written_for_the_original_follows_its_pointer() -> None:
    def theirs(count: int, msg: ReceivedMessage, arg: Any) -> int:
        return int(ctypes.cast(arg, ctypes.POINTER(ctypes.c_int))[0]) % count

    assert _by_index(theirs, 11)(QUEUES, WireMessage("orders", b"x"), None) == QUEUES[3]


def test_a_selector_sees_the_message() -> None:
    seen: list[Any] = []

    def look(count: int, msg: ReceivedMessage, arg: Any) -> int:
        seen.extend([count, msg.topic, msg.body, msg.tags])
        return 0

    _by_index(look, 0)(QUEUES, WireMessage("orders", b"x", tags="paid"), None)
    assert seen == [8, "orders", b"x", b"paid"]


@pytest.mark.parametrize("index", [-1, 8])
def test_a_selector_must_name_a_queue_there_is(index: int) -> None:
    with pytest.raises(InvalidMessage, match=f"returned {index}"):
        _by_index(lambda count, msg, arg: index, 0)(QUEUES, WireMessage("orders", b"x"), None)
