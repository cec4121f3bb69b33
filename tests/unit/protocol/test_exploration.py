"""The handover protocol, in every situation that a few faults can bring about.

`pytest -s` shows how much was visited. With ROCKETFLEET_EXPLORE=1 the large scenarios are visited too; with 2, every
scenario has one fault more of the kinds that it has, and so on: that takes minutes to hours.
"""

import os

import pytest
from tests.unit.protocol.explore import STUCK, Result, explore
from tests.unit.protocol.mutants import MUTANTS, Mutant
from tests.unit.protocol.scenarios import SCENARIOS, Scenario

BUDGET = int(os.environ.get("ROCKETFLEET_EXPLORE", "0"))
MORE = max(0, BUDGET - 1)


@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if BUDGET or not one.large], ids=lambda one: one.name)
def test_the_protocol_keeps_its_promises(scenario: Scenario) -> None:
    if MORE:
        faults = {kind: count + MORE for kind, count in scenario.faults.items()}
        scenario = scenario._replace(most=scenario.most + MORE, faults=faults, order=())
    result = explore(scenario)
    print(result)
    assert result.wrong is None, f"{result}\n{result.wrong}"
    assert result.complete


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_a_broken_protocol_is_found_out(mutant: Mutant) -> None:
    with mutant.breaks():
        result: Result = explore(mutant.scenario, mutant.rules, follow=mutant.found == STUCK)
    print(f"{mutant.name}: {result.states} states, {result.seconds:.1f} s: {result.wrong}")
    assert result.wrong is not None, f"nobody noticed that {mutant.name}"
    assert mutant.found in result.wrong.what, str(result.wrong)


def test_every_rule_has_a_mutant() -> None:
    assert {mutant.rule for mutant in MUTANTS} == {0, 1, 2, 3, 4, 5}
