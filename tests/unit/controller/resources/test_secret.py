"""The token's Secret, as it is described before it has a token."""

from tests.unit.controller.model_parts import group_of

from rocketfleet.controller.resources.secret import control_secret


def test_it_is_described_without_a_token() -> None:
    assert "data" not in control_secret(group_of())
