"""`rocketfleet …`: one file per command. Installed as `kubectl-rocketfleet` too.

Read `main.py` (the table of commands), then any file of `commands/`. The rest is what commands share: `options/` and
`output.py` (what is asked and how it is answered), `access/` (from names to clusters and groups), `rows/` (what is
shown), and the parts of one command or of a few: `sending/`, `running/`, `moving_offsets/`.
"""
