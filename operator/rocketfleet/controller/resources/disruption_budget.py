"""A group's PodDisruptionBudget: how many of its pods evictions have to leave ready."""

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.names import GROUP_LABEL
from rocketfleet.controller.resources.metadata import Manifest, metadata_of


def budget_name(group: ConsumerGroup) -> str:
    """Not the group's own: a chart beside us may well call its budget like its consumer."""
    return f"{group.metadata.name}-consumers"


def disruption_budget(group: ConsumerGroup, keep: int) -> Manifest:
    """Evictions leave so many pods ready. A pod that is not ready holds nothing that a budget would protect."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata_of(group, budget_name(group)),
        "spec": {
            "minAvailable": keep,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": {GROUP_LABEL: group.metadata.name}},
        },
    }
