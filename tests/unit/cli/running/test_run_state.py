"""What `rocketfleet run` wrote down is told as of now only while it runs."""

import json
import os
from pathlib import Path

import pytest

from rocketfleet.cli.commands.status import _show_written
from rocketfleet.cli.running.run_state import run_is_live
from rocketfleet.controller.local.files import StateDirectory
from rocketfleet.controller.reconciling.backend import BackendError

CONDITION = {"type": "Ready", "status": "True", "reason": "AllReady", "message": "All 2 pods are ready."}
GROUP = {"metadata": {"name": "orders"}, "status": {"conditions": [CONDITION]}}


def test_a_run_is_live_from_its_claim_to_its_end(tmp_path: Path) -> None:
    assert not run_is_live(tmp_path / "nothing-ran-here")
    first, second = StateDirectory(tmp_path), StateDirectory(tmp_path)
    first.claim()
    with pytest.raises(BackendError, match="another rocketfleet run works with"):
        second.claim()
    assert run_is_live(tmp_path), "a second one that is refused does not wipe out who has it"
    first.release()
    assert not run_is_live(tmp_path)
    second.claim()
    assert run_is_live(tmp_path)
    second.release()


@pytest.mark.parametrize("noted", ["", "{", "[]", '{"pid": "1"}'])
def test_a_spoilt_note_names_no_live_run(tmp_path: Path, noted: str) -> None:
    (tmp_path / "lock").write_text(noted)
    assert not run_is_live(tmp_path)


def test_a_run_that_was_killed_is_not_live(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text(json.dumps({"pid": os.getpid(), "began": "before"}))
    assert not run_is_live(tmp_path)


def test_the_conditions_of_a_run_that_has_ended_are_not_told_as_of_now(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = StateDirectory(tmp_path)
    run.claim()
    _show_written(GROUP, tmp_path, [])
    assert f"as rocketfleet run last wrote it to {tmp_path}:" in capsys.readouterr().out
    run.release()
    _show_written(GROUP, tmp_path, ["orders-0: exit code 2"])
    told = capsys.readouterr().out
    assert f"no rocketfleet run is at work in {tmp_path} now; the last one left this" in told
    assert "members that had failed:\n  orders-0: exit code 2" in told
