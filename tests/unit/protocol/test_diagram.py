from tests.unit.design import DESIGN
from tests.unit.protocol.diagram import diagram, written

from rocketfleet.consumer.handover.ownership import OwnershipState
from rocketfleet.consumer.shutdown import StopPhase


def test_the_design_shows_the_tables_as_they_are() -> None:
    document = DESIGN.read_text()
    assert document == written(document), "run `python -m tests.unit.protocol.diagram`"


def test_every_state_is_shown() -> None:
    assert all(state.name in diagram() for state in (*OwnershipState, *StopPhase))
