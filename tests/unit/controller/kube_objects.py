"""Objects for the tests of what runs on Kubernetes."""

from typing import Any

from rocketfleet.api.checking import read_object
from rocketfleet.api.consumer_group import ConsumerGroup


def manifest(name: str = "orders", **spec: Any) -> dict[str, Any]:
    """A sound ConsumerGroup."""
    return {
        "apiVersion": "rocketfleet.io/v1alpha1",
        "kind": "ConsumerGroup",
        "metadata": {"name": name, "namespace": "default", "generation": 1},
        "spec": {
            "cluster": {"nameServers": ["namesrv.example:9876"]},
            "subscriptions": [{"topic": "orders"}],
            "replicas": 2,
            "worker": {"handler": "app:handle"},
        }
        | spec,
    }


def group(name: str = "orders", uid: str = "uid-of-orders", **spec: Any) -> ConsumerGroup:
    raw = manifest(name, **spec)
    raw["metadata"]["uid"] = uid
    return read_object(raw)
