"""What all objects have that we make for a group: labels to find them by, and the group as their owner."""

from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.names import API_VERSION, GROUP_LABEL, KIND
from rocketfleet.api.template import CONSUMER

Manifest = dict[str, Any]


def labels_of(group: ConsumerGroup) -> dict[str, str]:
    """Kubernetes' recommended labels."""
    return {
        "app.kubernetes.io/name": "rocketfleet",
        "app.kubernetes.io/instance": group.metadata.name,
        "app.kubernetes.io/managed-by": "rocketfleet",
        "app.kubernetes.io/component": CONSUMER,
    }


def metadata_of(group: ConsumerGroup, name: str) -> Manifest:
    """Of an object of this name beside the group: found by the group's label, and gone when the group is."""
    return {
        "name": name,
        "namespace": group.metadata.namespace,
        "labels": labels_of(group) | {GROUP_LABEL: group.metadata.name},
        "ownerReferences": [
            {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "name": group.metadata.name,
                "uid": group.metadata.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
