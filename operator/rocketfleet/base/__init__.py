"""What every package may use and none owns. Imports nothing of ours.

`clock.py` (the clock of leases), `backoff.py`, `processes.py` (a process that is found again with certainty),
`loop_thread.py` (an event loop in a thread of its own), `timestamps.py` (as Kubernetes writes them), `counting.py` (a
number and its noun), `settings_error.py`.
"""
