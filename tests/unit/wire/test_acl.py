"""Signatures are those of Java's AclUtils, and secrets stay out of sight."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.wire.strategies import text

from rocketfleet.wire.acl import Credentials, sign
from rocketfleet.wire.errors import CommandError


def test_a_known_signature() -> None:
    # Computed with openssl: printf 'ak' + values in the order of their names + body, HMAC-SHA1, base64.
    added = sign(Credentials("ak", "secret"), {"topic": "orders", "b": "2", "a": "1"}, b"body")
    assert added == {"AccessKey": "ak", "Signature": "9n7RtwCYuyy0P0yjMPvfqdGJBPU="}


@given(st.dictionaries(text, text), st.binary())
def test_signing_again_changes_nothing(fields: dict[str, str], body: bytes) -> None:
    credentials = Credentials("me", "secret", "token")
    added = sign(credentials, fields, body)
    assert set(added) == {"AccessKey", "SecurityToken", "Signature"}
    assert sign(credentials, {**fields, **added}, memoryview(body)) == added


def test_secrets_do_not_show() -> None:
    shown = repr(Credentials("me", "hidden-key", "hidden-token"))
    assert "me" in shown
    assert "hidden" not in shown


def test_what_cannot_be_signed_says_so_without_the_secret() -> None:
    with pytest.raises(CommandError) as caught:
        sign(Credentials("me", "hidden\ud800"), {})
    assert "hidden" not in str(caught.value)
