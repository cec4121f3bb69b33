"""Ends the members of a `rocketfleet run` that the harness has started and can no longer end, for it was killed.

    python -m tests.faults.reaper STATE-DIRECTORY

Such members outlive whoever started them, by design. So this waits for the end of its standard input, which the kernel
closes when the harness is gone, and kills the processes that the state directory has noted, by id and beginning.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from rocketfleet.base.processes import Identity, kill_all


def noted_pods(state: Path) -> Iterator[tuple[str, Identity]]:
    """Client id and process of every pod."""
    for path in sorted(state.glob("groups/*/*/*/pod.json")):
        try:
            record = json.loads(path.read_text())
            process = record["process"]
            if process is not None:
                yield f"{record['name']}@{record['uid']}", Identity(process["pid"], process["began"])
        except (OSError, ValueError, KeyError):
            continue  # it is being written, or removed


def end_pods(state: Path) -> None:
    """Kill them all."""
    kill_all([identity for _, identity in noted_pods(state)])


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end_pods(Path(sys.argv[1]))
