"""docs/manifest.md names every key and every rule, as the models have them."""

from pathlib import Path

from rocketfleet.api.crd import object_schema
from rocketfleet.api.reference import keys, written
from rocketfleet.api.rules import EVERY_RULE

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "manifest.md"


def test_the_tables_are_not_stale() -> None:
    assert DOCUMENT.read_text() == written(DOCUMENT.read_text()), "docs/manifest.md is stale: run `make crds`"


def test_every_key_and_rule_is_in_the_document() -> None:
    text = DOCUMENT.read_text()
    for root in ("spec", "status"):
        for path, _, _ in keys("", object_schema()["properties"][root]):
            assert f"| `{path}` |" in text, f"{root}.{path}"
    for rule in EVERY_RULE:
        assert rule.message.replace("|", "&#124;") in text, rule.name
