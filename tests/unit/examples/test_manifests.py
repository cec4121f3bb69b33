"""The example manifests: each is complete, accepted, and there is one for each strategy, start position and engine."""

import ast
from pathlib import Path

import pytest

from rocketfleet.allocation.strategies import StrategyName
from rocketfleet.api.manifest import Documents, read_documents
from rocketfleet.api.spec import Engine, Spark
from rocketfleet.consumer.settings import ConsumeMode
from rocketfleet.wire.enums import ConsumeFromWhere, MessageModel

ROOT = Path(__file__).resolve().parents[3]
MANIFESTS = sorted((ROOT / "examples" / "manifests").glob("*.yaml"))
READ = {path: read_documents(path.read_text(), path.name) for path in MANIFESTS}
GROUPS = [group for documents in READ.values() for group in documents.groups]


@pytest.mark.parametrize("documents", READ.values(), ids=[path.stem for path in READ])
def test_it_is_complete(documents: Documents) -> None:
    (group,) = documents.groups
    assert group.spec.cluster.name_servers == ["rocketmq:9876"]
    program = group.spec.program
    if program is not None and program.code_config_map is not None:
        code = documents.config_maps["default", program.code_config_map]
        named = program.pipeline if isinstance(program, Spark) else program.handler
        module, _, function = named.partition(":")
        defined = [node.name for node in ast.parse(code[f"{module}.py"]).body if isinstance(node, ast.FunctionDef)]
        assert function in defined
    if group.spec.cluster.credentials is not None:
        keys = documents.secrets["default", group.spec.cluster.credentials.secret_name]
        assert keys.keys() == {"accessKey", "secretKey"}


def test_there_is_one_for_each_kind() -> None:
    specs = [group.spec for group in GROUPS]
    assert {spec.allocation.strategy for spec in specs} == set(StrategyName)
    assert {spec.consume_from_where for spec in specs} == set(ConsumeFromWhere)
    assert {spec.engine for spec in specs} == set(Engine)
    assert {spec.consume_mode for spec in specs} == set(ConsumeMode)
    assert {spec.message_model for spec in specs} == set(MessageModel)
    workers = [spec.worker for spec in specs if spec.worker is not None]
    assert any(worker.image for worker in workers)
    assert any(worker.code_config_map for worker in workers)
    assert any(spec.autoscaling for spec in specs)
    assert any(spec.cluster.tls and spec.cluster.credentials for spec in specs)


def test_they_can_be_applied_side_by_side() -> None:
    together = "\n---\n".join(path.read_text() for path in MANIFESTS)
    assert len(read_documents(together).groups) == len(MANIFESTS)


def test_the_readme_names_each_of_them() -> None:
    readme = (ROOT / "examples" / "README.md").read_text()
    assert [path.name for path in MANIFESTS if f"manifests/{path.name}" not in readme] == []
