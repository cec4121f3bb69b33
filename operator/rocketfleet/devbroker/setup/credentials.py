"""The administrator of a fleet with ACLs: where its secret comes from, and where it is kept.

A secret does not belong into a command line, which every user of the machine can read. It comes from the environment
(ROCKETFLEET_BROKER_ADMIN=user:secret), or is made here; it is kept in `credentials.json`, readable by its owner only.
The brokers store the user at their first start, so the secret lives as long as the data does.
"""

import json
import os
import secrets
from pathlib import Path

from rocketfleet.devbroker.errors import DevBrokerError
from rocketfleet.devbroker.state import write_private
from rocketfleet.wire.acl import Credentials

VARIABLE = "ROCKETFLEET_BROKER_ADMIN"
DEFAULT_USER = "admin"


def given_admin(text: str | None) -> Credentials | None:
    """The administrator in `user:secret`."""
    if not text:
        return None
    user, colon, secret = text.partition(":")
    # RocketMQ's own commands take user names and secrets apart at these.
    if (
        not colon
        or not user
        or len(secret) < 6
        or not (user + secret).isascii()
        or any(letter.isspace() for letter in text)
    ):
        raise DevBrokerError(
            f"{VARIABLE} is not of the form user:secret, in ASCII without spaces, the secret 6 letters or more."
        )
    return Credentials(user, secret)


def load_admin(path: Path) -> Credentials | None:
    """The administrator that a directory's data already has."""
    try:
        content = json.loads(path.read_text("utf-8"))
        return Credentials(str(content["access_key"]), str(content["secret_key"]))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        raise DevBrokerError(f"{path} is not a file with access_key and secret_key in it.") from None


def provide_admin(path: Path) -> Credentials:
    """The administrator to use in a directory: the one it has, else the environment's, else one with a new secret."""
    known, given = load_admin(path), given_admin(os.environ.get(VARIABLE))
    if known is not None:
        if given is not None and given != known:
            raise DevBrokerError(
                f"The data in {path.parent} already has the administrator of {path}, and {VARIABLE} says another: "
                f"unset it, or begin anew with `rocketfleet broker stop --delete-data`."
            )
        return known
    admin = given or Credentials(DEFAULT_USER, secrets.token_urlsafe(18))
    write_private(path, json.dumps({"access_key": admin.access_key, "secret_key": admin.secret_key}) + "\n")
    return admin
