"""Sends to the topic of a group under test, and writes down what the broker has acknowledged."""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import RocketMQError
from rocketfleet.producer import ProducerError, ProducerOptions, SyncProducer
from rocketfleet.testing.history import EventKind, Recorder
from rocketfleet.wire.message import Message

_PATIENT = ProducerOptions(send_timeout=30.0)  # a JVM on a busy machine may well not answer for some seconds
_AGAIN_SECONDS = 0.2

Body = bytes | str | Message
"""What to send: a body, or a message to the group's topic."""


class GroupTraffic:
    """`send` and `close` are called by the test; `begin` has a thread send until `stop`."""

    def __init__(self, name_server: str, topic: str, recorder: Recorder, key: Callable[[Message], str] | None) -> None:
        self._topic = topic
        self._recorder = recorder
        self._key = key
        self._producer = SyncProducer(ClientConfig(name_server), f"{topic}-traffic", _PATIENT)
        self._producer.start()
        self._enough = threading.Event()
        self._flowing: threading.Thread | None = None
        self._error: BaseException | None = None

    def send(self, bodies: Iterable[Body], rate: float | None = None) -> None:
        """Send these; what a broker refuses or does not answer is sent again until it is acknowledged."""
        for body in bodies:
            if self._enough.is_set():
                return
            began = time.monotonic()
            self._send(body if isinstance(body, Message) else Message(self._topic, _bytes(body)))
            if rate is not None:
                self._enough.wait(max(0.0, began + 1 / rate - time.monotonic()))

    def begin(self, bodies: Iterable[Body], rate: float) -> None:
        """Have these sent, so many per second, beside what the test does."""
        if self._flowing is not None:
            raise RuntimeError("traffic flows already: stop it first")
        self._flowing = threading.Thread(target=self._flow, args=(bodies, rate), name="traffic", daemon=True)
        self._flowing.start()

    def stop(self) -> None:
        """Send nothing more; raises what went wrong, if something did."""
        self._enough.set()
        if self._flowing is not None:
            self._flowing.join()
        self._flowing = None
        self._enough.clear()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        with suppress(Exception):
            self.stop()
        self._producer.close()

    def _flow(self, bodies: Iterable[Body], rate: float) -> None:
        try:
            self.send(bodies, rate)
        except BaseException as error:  # told to whoever stops the traffic
            self._error = error

    def _send(self, message: Message) -> None:
        key = None if self._key is None else self._key(message)
        while True:
            began = time.monotonic()
            try:
                result = self._producer.send(message, sharding_key=key)
            except (RocketMQError, ProducerError):
                if self._enough.wait(_AGAIN_SECONDS):
                    return
                continue
            self._recorder.note(
                EventKind.SENT,
                message=result.msg_id,
                queue=result.queue,
                offset=result.queue_offset,
                began=round(began, 6),
            )
            return


def _bytes(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else body
