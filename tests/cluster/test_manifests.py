"""What `kubectl apply` says: yes to every example, and to every wrong manifest a sentence about what to change."""

import re
from pathlib import Path

import pytest
import yaml
from tests.cluster.kube import CommandError, Kube
from tests.cluster.operator_release import NAMESPACE, Release
from tests.cluster.scene import Scene
from tests.cluster.wrong_manifests import WRONG, WRONG_NAMES, good

from rocketfleet.api.rules import CHANGE_RULES, RULES

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples" / "manifests").glob("*.yaml"))
MESSAGES = {rule.name: rule.message for rule in RULES if rule.cel is not None}


def refusals(kube: Kube, *manifests: dict[str, object]) -> dict[str, str]:
    """What a server-side dry run says of each manifest that it refuses, by the object's name."""
    try:
        kube.apply(*manifests, namespace=NAMESPACE, arguments=["--dry-run=server"])
    except CommandError as error:
        parts = re.split(r'ConsumerGroup[^"]*"([^"]+)" is invalid', error.output)
        return dict(zip(parts[1::2], parts[2::2], strict=True))
    return {}


@pytest.mark.core
def test_every_wrong_manifest_is_refused_with_its_sentence(kube: Kube, release: Release) -> None:
    assert WRONG.keys() | WRONG_NAMES.keys() == MESSAGES.keys(), "a rule has no wrong manifest here, or is gone"
    names = {rule: f"wrong-{number}" for number, rule in enumerate(WRONG)} | WRONG_NAMES
    manifests = [good(names[rule], **WRONG.get(rule, {})) for rule in names]
    said = refusals(kube, *manifests)
    for rule, name in names.items():
        assert name in said, f"{rule}: it was accepted"
        assert MESSAGES[rule] in said[name], rule


@pytest.mark.core
def test_a_good_manifest_and_every_example_is_accepted(kube: Kube, release: Release) -> None:
    assert EXAMPLES
    kube.apply(good("good"), namespace=NAMESPACE, arguments=["--dry-run=server"])
    for path in EXAMPLES:
        manifests = list(yaml.safe_load_all(path.read_text()))
        assert any(manifest["kind"] == "ConsumerGroup" for manifest in manifests), path.name
        kube.apply(*manifests, namespace=NAMESPACE, arguments=["--dry-run=server"])


def test_a_field_that_does_not_exist_is_named(kube: Kube, release: Release) -> None:
    with pytest.raises(CommandError) as refused:
        kube.apply(good("misspelled", replica=3), namespace=NAMESPACE, arguments=["--dry-run=server"])
    assert 'unknown field "spec.replica"' in refused.value.output


def test_the_groups_name_never_changes(kube: Kube, scene: Scene) -> None:
    scene.open()
    manifest = scene.manifest(replicas=0)
    scene.apply(manifest)
    manifest["spec"]["groupName"] = "another"
    with pytest.raises(CommandError) as refused:
        scene.apply(manifest)
    assert CHANGE_RULES[0].message in refused.value.output
