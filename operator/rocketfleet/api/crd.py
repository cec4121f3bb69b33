"""The custom resource definition: the models' schema, the rules, and what kubectl shows.

`rocketfleet crds --out crds` writes it, and a test fails when that was forgotten.
"""

from typing import Any

import yaml

from rocketfleet.api.names import GROUP, KIND, PLURAL, VERSION
from rocketfleet.api.rules import EVERY_RULE
from rocketfleet.api.schema import Schema, at, structural
from rocketfleet.api.spec import ConsumerGroupSpec
from rocketfleet.api.status import ConsumerGroupStatus
from rocketfleet.api.template import PodSpec

FILE_NAME = f"{GROUP}_{PLURAL}.yaml"
HEADER = """\
# Generated from the models in operator/rocketfleet/api by `rocketfleet crds --out crds`. Do not edit.
"""
SINGULAR = KIND.lower()
UNFOLDED = 1_000_000  # an expression that is folded in its middle is hard to read and to search for

# name, type, path, what it is, whether it is shown only by -o wide
COLUMNS: tuple[tuple[str, str, str, str, bool], ...] = (
    ("Ready", "string", ".status.readySummary", "Members ready, of those that there should be.", False),
    ("State", "string", ".status.state", "Ready, or the worst that the conditions say.", False),
    ("Replicas", "integer", ".status.replicas", "Number of pods.", True),
    ("Queues", "integer", ".status.queues.total", "Queues of the subscribed topics.", False),
    ("Lag", "integer", ".status.lag.messages", "Messages not yet consumed.", False),
    ("Lag-Seconds", "number", ".status.lag.seconds", "How long the oldest of them has waited, in seconds.", False),
    ("Dead-Letters", "integer", ".status.lag.dlq", "Messages that were given up.", True),
    ("Strategy", "string", ".spec.allocation.strategy", "How queues are shared out.", True),
    ("Group", "string", ".status.groupName", "The group at the broker.", True),
    ("Engine", "string", ".spec.engine", "What runs in the pods.", True),
    ("Owned", "integer", ".status.queues.owned", "Queues with exactly one owner.", True),
    ("Balanced", "string", '.status.conditions[?(@.type=="Balanced")].status', "Has each queue one owner?", True),
    ("Age", "date", ".metadata.creationTimestamp", "Since when the object is there.", False),
)


def definition() -> dict[str, Any]:
    """The CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": SINGULAR,
                "shortNames": ["cg"],
                "categories": ["rocketmq"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": object_schema()},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                    "additionalPrinterColumns": [_column(*column) for column in COLUMNS],
                }
            ],
        },
    }


def definition_text() -> str:
    """The definition as YAML: the same text for the same models."""
    return HEADER + yaml.dump(definition(), Dumper=_Dumper, sort_keys=False, width=UNFOLDED, allow_unicode=True)


def object_schema() -> Schema:
    """The schema of a whole ConsumerGroup, with the rules at their places."""
    spec = structural(ConsumerGroupSpec)
    pod = at(spec, "template.spec")
    pod |= structural(PodSpec) | {"description": pod["description"]}
    pod.pop("additionalProperties", None)
    schema: Schema = {
        "description": "A RocketMQ consumer group: what it consumes, how, and with how many members.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"description": f"{GROUP}/{VERSION}.", "type": "string"},
            "kind": {"description": f"{KIND}.", "type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": structural(ConsumerGroupStatus),
        },
    }
    for rule in EVERY_RULE:
        if rule.cel is not None:
            said = {"rule": rule.cel, "message": rule.message}
            if rule.field:
                said["fieldPath"] = rule.field
            at(schema, rule.at).setdefault("x-kubernetes-validations", []).append(said)
    return schema


def _column(name: str, kind: str, path: str, description: str, wide: bool) -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path, "description": description} | (
        {"priority": 1} if wide else {}
    )


class _Dumper(yaml.SafeDumper):
    """Lists indented under their key, no anchors: what people and diffs read best."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True
