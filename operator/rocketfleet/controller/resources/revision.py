"""The revision: a short hash of everything in a manifest that pods are made of. Pods of another one are replaced.

It is made from what the manifest says, not from the pods we build from it, and defaults are left out: a new version of
the operator, with more fields or a slightly different pod, does not restart everybody's consumers. A new default image
does, for then other code would run. The code in a ConfigMap is another matter: see code.py.
"""

import hashlib
import json
from typing import Any

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.controller.resources.pod import Defaults, image_of

LENGTH = 10
# What says how many pods there are and how they come and go, but not what is in them.
_NOT_IN_PODS: dict[str, Any] = {
    "replicas": True,
    "allow_idle_members": True,
    "autoscaling": True,
    "suspend": True,
    "update": True,
    "deletion_policy": True,
    "worker": {"code_update"},
    "spark": {"code_update"},
    "operator_class": True,
}
_OF_OURS: dict[str, Any] = {"shutdown": {"on_timeout"}}  # what only our own runtime is told


def revision_of(group: ConsumerGroup, defaults: Defaults) -> str:
    """The revision that the group's pods should have."""
    left_out = _NOT_IN_PODS if group.spec.engine.is_ours else _NOT_IN_PODS | _OF_OURS
    content = group.spec.model_dump(mode="json", by_alias=True, exclude=left_out, exclude_defaults=True)
    content["groupName"] = group.group_name
    if not content.get("shutdown"):
        content.pop("shutdown", None)
    if group.spec.engine.is_ours:
        content["image"] = image_of(group, defaults)
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]
