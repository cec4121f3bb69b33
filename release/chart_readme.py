"""`make chart-readme`: the chart's README, with a table of its values out of the comments of values.yaml.

Helm shows the page with `helm show readme`, and so do sites that list charts. A test keeps it fresh.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

CHART = Path(__file__).resolve().parents[1] / "helm" / "rocketfleet"

INTRODUCTION = """\
<!-- Written by `make chart-readme` from Chart.yaml and values.yaml; do not edit. -->

# {name}

{description}.

Kubernetes {kube_version}. Build the images with the project's Dockerfile and push them to a registry of yours; nobody
publishes them for you, so the chart has no default for them.

```
helm install rocketfleet rocketfleet-{version}.tgz --namespace rocketfleet-system --create-namespace --wait \\
  --set imageRegistry=registry.example/rocketfleet
helm test rocketfleet --namespace rocketfleet-system
```

Upgrade with your values given again (`-f`), or with `--reset-then-reuse-values`. The definition of ConsumerGroup is
installed and upgraded with the release, and stays when that is uninstalled. The project's `docs/install.md` has more:
images, upgrades, several releases in a cluster, rights, network.

## Values

| value | default | |
|---|---|---|
"""


@dataclass(frozen=True)
class Value:
    """A value of the chart. A group of values has no default, and is listed only if it has a comment."""

    path: str
    default: str | None
    comment: str


def values(text: str) -> Iterator[Value]:
    """What a values.yaml has, in its order. The comment of a key is what stands right above it."""
    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)
    yield from _values(root, text.splitlines(), ())


def _values(mapping: yaml.MappingNode, lines: list[str], above: tuple[str, ...]) -> Iterator[Value]:
    for key, node in mapping.value:
        path = (*above, key.value)
        comment = _comment(lines, key.start_mark.line, key.start_mark.column)
        if isinstance(node, yaml.MappingNode) and node.value:
            if comment:
                yield Value(".".join(path), None, comment)
            yield from _values(node, lines, path)
        else:
            yield Value(".".join(path), json.dumps(yaml.safe_load(yaml.serialize(node))), comment)


def _comment(lines: list[str], line: int, column: int) -> str:
    start = line
    while start and lines[start - 1].startswith(f"{' ' * column}# "):
        start -= 1
    return " ".join(text.strip().removeprefix("# ") for text in lines[start:line])


def readme(chart: Path = CHART) -> str:
    """The page."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    introduction = INTRODUCTION.format(
        name=about["name"],
        description=about["description"],
        version=about["version"],
        kube_version=f"{about['kubeVersion'].removeprefix('>=').removesuffix('.0-0')} or newer",
    )
    rows = (
        f"| `{value.path}` | {f'`{value.default}`' if value.default is not None else ''} | {_cell(value.comment)} |"
        for value in values((chart / "values.yaml").read_text())
    )
    return introduction + "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


if __name__ == "__main__":
    (CHART / "README.md").write_text(readme())
