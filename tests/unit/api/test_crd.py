"""The definition: written from the models and not stale, of the form that Kubernetes asks for, and readable."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.unit.api.cel import evaluate, typed

from rocketfleet.api.consumer_group import ConsumerGroup
from rocketfleet.api.crd import COLUMNS, FILE_NAME, definition, definition_text, object_schema
from rocketfleet.api.manifest import read_documents
from rocketfleet.api.rules import EVERY_RULE
from rocketfleet.api.schema import Schema, structural
from rocketfleet.api.spec import ConsumerGroupSpec
from rocketfleet.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
MANIFESTS = sorted((ROOT / "examples" / "manifests").glob("*.yaml"))
ALLOWED = {
    "additionalProperties", "default", "description", "enum", "format", "items", "maxItems", "maxLength",
    "maxProperties", "maximum", "minItems", "minLength", "minimum", "pattern", "properties", "required", "type",
    "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
}  # fmt: skip


def parts(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema in a schema."""
    yield path, schema
    for name, held in schema.get("properties", {}).items():
        yield from parts(held, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from parts(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from parts(schema["additionalProperties"], f"{path}{{}}")


PARTS = dict(parts(object_schema()))


def test_the_written_definition_is_what_the_models_say() -> None:
    written = (ROOT / "crds" / FILE_NAME).read_text()
    assert written == definition_text(), "crds/ is stale: run `make crds`"
    assert yaml.safe_load(written) == definition()


def test_names_and_subresources() -> None:
    found = definition()
    assert found["metadata"]["name"] == "consumergroups.rocketfleet.io"
    assert found["spec"]["names"]["shortNames"] == ["cg"]
    assert found["spec"]["names"]["categories"] == ["rocketmq"]
    (version,) = found["spec"]["versions"]
    assert version["subresources"]["status"] == {}
    assert [c["name"] for c in version["additionalPrinterColumns"] if not c.get("priority")] == [
        "Ready", "State", "Queues", "Lag", "Lag-Seconds", "Age",
    ]  # fmt: skip


def test_columns_and_scale_read_fields_that_exist_with_their_type() -> None:
    scale = definition()["spec"]["versions"][0]["subresources"]["scale"]
    for path, kind in zip(scale.values(), ("integer", "integer", "string"), strict=True):
        assert PARTS[path.removeprefix(".")]["type"] == kind
    for name, kind, path, _, _ in COLUMNS:
        plain = path.removeprefix(".").replace('[?(@.type=="Balanced")]', "[]")
        assert plain == "metadata.creationTimestamp" or PARTS[plain]["type"] == kind, name


def test_the_schema_is_structural() -> None:
    for path, schema in PARTS.items():
        assert isinstance(schema["type"], str), path
        assert schema.keys() <= ALLOWED, path
        assert not ("properties" in schema and "additionalProperties" in schema), path
        assert set(schema.get("required", ())) <= schema.get("properties", {}).keys(), path


def test_every_key_has_a_description() -> None:
    missing = [p for p, s in PARTS.items() if "description" not in s and not p.endswith("{}") and p != "metadata"]
    assert missing == []


def test_unknown_keys_are_kept_in_the_pod_s_spec_only() -> None:
    kept = {path for path, schema in PARTS.items() if schema.get("x-kubernetes-preserve-unknown-fields")}
    assert kept == {"spec.template.spec", "spec.template.spec.containers[]"}


def test_everything_in_the_spec_is_bounded() -> None:
    # The API server estimates what a rule costs from these bounds, and refuses a definition that may cost too much.
    for path, schema in PARTS.items():
        if path.startswith("spec"):
            if schema["type"] == "array":
                assert "maxItems" in schema, path
            if schema["type"] == "string":
                assert "maxLength" in schema or "enum" in schema, path
            if "additionalProperties" in schema:
                assert "maxProperties" in schema, path
            if schema["type"] in ("integer", "number"):
                assert "minimum" in schema, path
                assert "maximum" in schema, path


def test_keys_of_map_lists_are_required() -> None:
    for path, schema in PARTS.items():
        for key in schema.get("x-kubernetes-list-map-keys", ()):
            assert key in schema["items"]["required"], path


def test_every_rule_with_an_expression_is_in_the_schema_and_points_at_a_key() -> None:
    there = [(path, said) for path, schema in PARTS.items() for said in schema.get("x-kubernetes-validations", ())]
    assert {said["rule"] for _, said in there} == {rule.cel for rule in EVERY_RULE if rule.cel is not None}
    for path, said in there:
        if "fieldPath" in said:
            assert f"{path}{said['fieldPath']}".removeprefix(".") in PARTS, said


def test_defaults_are_complete_and_keep_the_rules() -> None:
    # The API server refuses a definition with a default that breaks a rule, before it fills in what is in it.
    with_default = {path: schema for path, schema in PARTS.items() if isinstance(schema.get("default"), dict)}
    assert set(with_default) == {
        f"spec.{name}" for name in ("allocation", "consume", "rebalance", "shutdown", "update")
    }
    for path, schema in with_default.items():
        assert schema["default"] == {k: v["default"] for k, v in schema["properties"].items() if "default" in v}, path
        for said in schema.get("x-kubernetes-validations", ()):
            assert evaluate(said["rule"], {"self": typed(schema["default"], schema)}), said


def defaulted(raw: Any, schema: Schema) -> Any:
    """What the API server makes of an object before it looks at it."""
    if isinstance(raw, dict) and "properties" in schema:
        filled = dict(raw)
        for name, held in schema["properties"].items():
            if name not in filled and "default" in held:
                filled[name] = held["default"]
            if name in filled:
                filled[name] = defaulted(filled[name], held)
        return filled
    if isinstance(raw, list) and "items" in schema:
        return [defaulted(item, schema["items"]) for item in raw]
    return raw


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_the_api_server_s_defaults_are_the_models(manifest: Path) -> None:
    (group,) = read_documents(manifest.read_text()).groups
    given = group.spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    full = group.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert defaulted(given, structural(ConsumerGroupSpec)) == full


def test_a_read_group_is_what_was_written() -> None:
    for manifest in MANIFESTS:
        (group,) = read_documents(manifest.read_text()).groups
        again = ConsumerGroup.model_validate(group.model_dump(mode="json", by_alias=True))
        assert again == group


def test_the_command_prints_writes_and_checks(tmp_path: Path) -> None:
    run = CliRunner()
    assert run.invoke(main, ["crds"]).output == definition_text()
    out = tmp_path / "new"
    stale = run.invoke(main, ["crds", "--check", "--out", str(out)])
    assert stale.exit_code == 1
    assert "run `make crds`" in stale.output
    assert not out.exists()
    assert run.invoke(main, ["crds", "--out", str(out)]).exit_code == 0
    assert (out / FILE_NAME).read_text() == definition_text()
    assert run.invoke(main, ["crds", "--check", "--out", str(out)]).exit_code == 0
