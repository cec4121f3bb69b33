"""Signatures: how a request proves that its sender holds a secret key.

The access key joins the fields; the values of all fields, in the order of their names and with nothing between
them, then the body, are signed with HMAC-SHA1; the signature joins the fields, in base64. Names are in Java's order,
that of UTF-16 units, which is Python's for all but names beyond the Basic Multilingual Plane.
"""

import base64
import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rocketfleet.wire.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Mapping

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"  # noqa: S105 - the field's name, not a secret
SIGNATURE: Final = "Signature"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who signs. Neither the secret nor the token shows in a repr."""

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)


def sign(credentials: Credentials, fields: "Mapping[str, str]", body: bytes | memoryview = b"") -> dict[str, str]:
    """The fields to add to a request with these fields and this body. They replace those of an earlier signature."""
    added = {ACCESS_KEY: credentials.access_key}
    if credentials.security_token is not None:
        added[SECURITY_TOKEN] = credentials.security_token
    signed = {**fields, **added}
    signed.pop(SIGNATURE, None)
    try:
        names = sorted(signed) if "".join(signed).isascii() else sorted(signed, key=_java_order)
        content = "".join([signed[name] for name in names]).encode()
        secret = credentials.secret_key.encode()
    except UnicodeEncodeError:  # it holds what could not be encoded, which may be the secret
        raise CommandError("a request with a lone surrogate in its fields or secret cannot be signed") from None
    digest = hmac.digest(secret, content + bytes(body), "sha1")
    added[SIGNATURE] = base64.b64encode(digest).decode("ascii")
    return added


def _java_order(name: str) -> bytes:
    return name.encode("utf-16-be")
