"""An object of a cluster, as a command reads it: whatever a newer operator or definition has added to it."""

import click
import pytest
from tests.unit.controller.kube_objects import manifest

from rocketfleet.cli.access.manifest_file import read_group


def test_fields_that_this_version_does_not_know_are_passed_over() -> None:
    raw = manifest(newSection={"a": 1}, consume={"threads": 3, "newLimit": 5})
    raw["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    group = read_group({**raw, "status": {"newKey": 1}}, "ConsumerGroup orders")
    assert group.spec.consume.threads == 3


def test_what_cannot_be_read_otherwise_is_said() -> None:
    with pytest.raises(click.ClickException, match=r"spec\.engine"):
        read_group(manifest(engine="Flink"), "ConsumerGroup orders")
