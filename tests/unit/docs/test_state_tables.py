import pytest
from tests.unit.design import DESIGN

from rocketfleet.consumer.handover.ownership import Lock, OwnershipState
from state_tables import with_tables

DIAGRAM = """before
```mermaid
stateDiagram-v2
    [*] --> A
    A --> B: go / run, jump<br/>stop
```
```
A --> B
```
"""


def test_a_state_diagram_becomes_a_table() -> None:
    assert with_tables(DIAGRAM) == (
        "before\n| from | on | gives | to |\n|---|---|---|---|\n"
        "| (start) |  |  | `A` |\n| `A` | go | run, jump | `B` |\n| `A` | stop |  | `B` |\n"
        "```\nA --> B\n```\n"
    )


def test_every_state_of_the_handover_protocol_is_in_a_table() -> None:
    shown = with_tables(DESIGN.read_text())
    assert "mermaid" not in shown
    assert all(f"| `{state.name}` |" in shown for state in (*OwnershipState, *Lock))


@pytest.mark.parametrize("diagram", ["flowchart LR\n", "stateDiagram-v2\nstate A {\n"])
def test_another_diagram_is_refused(diagram: str) -> None:
    with pytest.raises(ValueError, match="diagram"):
        with_tables(f"```mermaid\n{diagram}```\n")
