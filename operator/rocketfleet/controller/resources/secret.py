"""The Secret beside a group's pods: the token by which its members know who may call their control ports."""

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.controller.resources.metadata import Manifest, metadata_of

TOKEN_KEY = "token"  # noqa: S105 - the name of a key, in the Secret and as a file


def control_secret_name(group: ConsumerGroup) -> str:
    return f"{group.metadata.name}-control"


def control_secret(group: ConsumerGroup) -> Manifest:
    """The Secret of the control port's token, without the token: only the backend makes one, and only once."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": metadata_of(group, control_secret_name(group)),
    }
