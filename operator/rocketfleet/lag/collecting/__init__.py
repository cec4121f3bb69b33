"""Reading lag: every group of every cluster, sweep after sweep.

Read `monitor.py` (the collector), `layout.py` (what to ask which broker), `broker_reading.py`, `broadcast.py`;
`assembly.py` and `reckoning.py` make figures of it, purely.
"""
