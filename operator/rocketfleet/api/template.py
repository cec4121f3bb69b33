"""`spec.template`: a pod template, which only the API server itself knows in full.

It is the one place where unknown keys are kept. `PodSpec` and `Container` are the few keys that our own rules look at:
the API server's rules see only what a schema names, so the schema names these and keeps the rest.
"""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from rocketfleet.api.model import Model
from rocketfleet.control.budget import Margin

CONSUMER = "consumer"  # the container that consumes
MOST_CONTAINERS = 16


class Container(Model):
    """What our rules look at in a container. Everything else that a container may have is kept as it is."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})

    name: Annotated[
        str, Field(min_length=1, max_length=63, description=f"The container named {CONSUMER} is the one that consumes.")
    ]
    image: Annotated[str | None, Field(max_length=512, description="The container's image.")] = None


class PodSpec(Model):
    """A pod's spec. What is named here is what our rules look at; everything else is kept as it is."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})

    containers: Annotated[
        list[Container] | None,
        Field(
            max_length=MOST_CONTAINERS,
            description=f"Containers. The one named {CONSUMER} is merged with the operator's own settings.",
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = None
    restart_policy: Annotated[
        str | None,
        Field(max_length=16, description="Left out, or OnFailure, so that a drained worker is not restarted."),
    ] = None
    termination_grace_period_seconds: Annotated[
        int | None,
        Field(
            ge=0,
            le=86_400,
            description=f"At least {Margin.POD_GRACE.seconds:g} s longer than shutdown.drainTimeoutSeconds, which is "
            "also the default.",
        ),
    ] = None


class TemplateMetadata(Model):
    """Labels and annotations for the pods, beside the operator's own."""

    labels: Annotated[
        dict[str, Annotated[str, Field(max_length=63)]] | None, Field(max_length=64, description="Labels of the pods.")
    ] = None
    annotations: Annotated[
        dict[str, Annotated[str, Field(max_length=65_536)]] | None,
        Field(max_length=64, description="Annotations of the pods."),
    ] = None


class Template(Model):
    """A pod template. The operator fills in what it leaves out."""

    metadata: Annotated[
        TemplateMetadata | None, Field(description="Labels and annotations for the pods, beside the operator's own.")
    ] = None
    spec: Annotated[
        dict[str, Any] | None,
        Field(description=f"A pod's spec. The container named {CONSUMER} is the one that consumes."),
    ] = None

    @property
    def pod(self) -> PodSpec:
        """The part of the pod's spec that our rules look at; a ValidationError where it has another form."""
        return PodSpec.model_validate(self.spec or {}, strict=True)
