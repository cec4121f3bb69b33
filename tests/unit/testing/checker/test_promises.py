"""The figures that histories are held against are those of docs/guarantees.md and of the consumer's own settings."""

from dataclasses import Field, fields
from pathlib import Path

import pytest

from rocketfleet.consumer.handover import roster
from rocketfleet.consumer.settings import ConsumerSettings
from rocketfleet.consumer.subscription import Subscription
from rocketfleet.testing.checker.promises import Promises

GUARANTEES = Path(__file__).resolve().parents[4] / "docs" / "guarantees.md"
FIGURES = [one for one in fields(Promises) if one.metadata]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_every_figure_names_the_words_it_is_taken_from(figure: Field[float]) -> None:
    text = " ".join(GUARANTEES.read_text().split())
    assert figure.metadata["source"] in text


def test_the_figures_are_those_of_the_settings() -> None:
    promises, settings = Promises(), ConsumerSettings("g", (Subscription("t"),))
    assert promises.lock_seconds == settings.lock_lives
    assert promises.renewal_seconds == settings.lock_interval
    assert promises.consume_timeout == settings.consume_timeout
    assert promises.handover_timeout == settings.handover_timeout
    assert promises.handover_timeout <= settings.drain_timeout
    assert promises.tolerated_cut < roster.GRACE_SECONDS < promises.owned_after_kill


def test_what_is_no_figure_says_what_kind_of_group_it_is() -> None:
    assert {one.name for one in fields(Promises)} - {one.name for one in FIGURES} == {
        "orderly",
        "exclusive",
        "from_beginning",
        "repeats",
    }
