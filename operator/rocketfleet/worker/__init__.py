"""The process in a pod: loads a handler, runs one member of a consumer group, and answers on a control port.

Read `process.py`, from its first line to its exit code; then `configuration/` (what it is told), `starting.py`,
`handler_loading.py`, `member.py`. Asked from outside: `member_control.py`, `snapshot.py`, `vitals.py`, `metrics.py`,
`durations.py`. How it ends: `stop_signals.py`, `outcome.py`, `forced_exit.py`. `whole_lines.py` is about what handlers
print, `processes/` about several workers in a pod.
"""
