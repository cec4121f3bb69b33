"""Lag: how far groups are behind, seen per queue, judged by rules, shown and kept.

Offsets are read (`reading.py`, `monitor.py`), become figures (`figures.py`, `reckoning.py`), figures a window over time
(`window.py`), and windows are judged (`rules/`). `metrics.py` shows them to Prometheus; `history.py` and its sinks keep
them. Everything but the reading is a pure function of what was read.
"""
