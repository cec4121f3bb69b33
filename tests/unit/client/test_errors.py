"""Errors: what they say, what they carry, and what they must not."""

from __future__ import annotations

import copy
import logging
import pickle
import traceback

import pytest
from tests.unit.client.peer import Peer

from rocketfleet.client import errors
from rocketfleet.client.config import ClientConfig
from rocketfleet.client.errors import response_error
from rocketfleet.client.requests.calls import ask
from rocketfleet.client.transport.remoting import Remoting
from rocketfleet.wire.acl import Credentials, sign
from rocketfleet.wire.codes import RequestCode, ResponseCode
from rocketfleet.wire.command import request

MAX = int(RequestCode.GET_MAX_OFFSET)

ALL = [
    errors.ClientClosed(),
    errors.ConnectError("b:1", "Connection refused", 1.5),
    errors.BackingOff("b:1", "Connection refused", 0.5, 3),
    errors.ConnectionLost("b:1", "closed by the peer", MAX),
    errors.RequestTimeout("b:1", MAX, 3.0),
    errors.ProtocolError("b:1", "nonsense", MAX),
    errors.response_error(17, "no topic", "b:1", MAX),
    errors.NoNameServer({"n:1": errors.ConnectError("n:1", "refused")}),
    errors.NoRoute("T", "it does not exist"),
    errors.NoBroker("broker-a", "it has no master now"),
    errors.PartialFailure({"broker-a": errors.NoRoute("T", "gone")}),
]


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling_and_copying(error: errors.RocketMQError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.__dict__.keys() == error.__dict__.keys()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ResponseCode.SYSTEM_ERROR, errors.ResponseError),
        (ResponseCode.SYSTEM_BUSY, errors.SystemBusy),
        (ResponseCode.FLOW_CONTROL, errors.SystemBusy),
        (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, errors.RequestNotSupported),
        (ResponseCode.NO_PERMISSION, errors.NoPermission),
        (ResponseCode.TOPIC_NOT_EXIST, errors.TopicNotExist),
        (ResponseCode.QUERY_NOT_FOUND, errors.NotFound),
        (ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, errors.GroupNotExist),
        (ResponseCode.CONSUMER_NOT_ONLINE, errors.ConsumerNotOnline),
        (123456, errors.ResponseError),
    ],
)
def test_an_answers_code_chooses_the_type(code: int, kind: type[errors.ResponseError]) -> None:
    error = response_error(code, "why", "b:1", MAX)
    assert type(error) is kind
    assert (error.code, error.remark, error.peer, error.request_code) == (code, "why", "b:1", MAX)


def test_a_response_error_is_one_readable_line() -> None:
    error = response_error(17, "topic T\n  does not exist ", "b:1", MAX)
    assert str(error) == "GET_MAX_OFFSET (30) to b:1 failed with TOPIC_NOT_EXIST (17): topic T does not exist"
    assert str(response_error(1, None, "b:1", 99999)) == "code 99999 to b:1 failed with SYSTEM_ERROR (1)"
    assert str(response_error(4711, "", "b:1", MAX)) == "GET_MAX_OFFSET (30) to b:1 failed with code 4711"
    assert len(str(response_error(1, "stack trace " * 10_000, "b:1", MAX))) < 2200


def test_what_a_refusal_means_is_said_where_it_is_known() -> None:
    said = str(response_error(ResponseCode.NO_PERMISSION, "username cannot be null.", "b:1", MAX))
    assert said.endswith("(this broker asks for credentials and got none: give --credentials-file, or "
                         "cluster.credentials in a manifest)")  # fmt: skip
    assert "credentials" not in str(
        response_error(ResponseCode.NO_PERMISSION, "User:bob has no permission", "b:1", MAX)
    )
    unknown = " request type 105 not supported"
    said = str(response_error(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, unknown, "b:1", 105))
    assert said.endswith("request type 105 not supported (this is not a name server; is it a broker's port?)")
    assert "name server" not in str(response_error(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, unknown, "b:1", MAX))


async def test_requests_are_signed_and_no_secret_shows_anywhere(caplog: pytest.LogCaptureFixture) -> None:
    credentials = Credentials("the-access-key", "the-secret-key", "the-token")
    shown: list[str] = []
    with caplog.at_level(logging.DEBUG):
        async with Peer() as peer:
            remoting = Remoting(ClientConfig("127.0.0.1:1", credentials=credentials))
            command = request(MAX, {"topic": "T"}, b"body")
            for _ in range(2):  # signed anew each time, and not into the caller's command
                await remoting.call(peer.address, command)
            await remoting.oneway(peer.address, request(MAX, {"topic": "O"}))
            await remoting.call(peer.address, request(MAX))
            assert command.fields == {"topic": "T"}
            for got in peer.received:
                bare = {k: v for k, v in got.fields.items() if k not in ("AccessKey", "SecurityToken", "Signature")}
                assert got.fields == {**bare, **sign(credentials, bare, got.body)}
                assert "the-secret-key" not in str(got.fields)
            peer.script = lambda channel, asked: channel.answer(asked, 16, "denied")
            for fail in (ask(remoting, peer.address, command), remoting.call("127.0.0.1:1", command)):
                with pytest.raises(errors.RocketMQError) as caught:
                    await fail
                shown += [str(caught.value), repr(caught.value), "".join(traceback.format_exception(caught.value))]
            peer.script = lambda _channel, _asked: None
            with pytest.raises(errors.RequestTimeout) as late:
                await remoting.call(peer.address, command, 0.05)
            shown += [repr(late.value), repr(remoting.__dict__), repr(command), repr(peer.received)]
            await remoting.close()
    shown += [record.getMessage() for record in caplog.records]
    for secret in ("the-secret-key", "the-token", sign(credentials, {"topic": "T"}, b"body")["Signature"]):
        assert not any(secret in text for text in shown)
