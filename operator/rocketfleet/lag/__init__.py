"""Lag: how far groups are behind, seen per queue, judged by rules, shown and kept.

Offsets of groups (`target.py`) are read (`collecting/`; `look.py` for one look at one group), become figures
(`figures.py`) and a window over time, and windows are judged (`judging/`). `metrics.py` shows them to Prometheus;
`samples/` keeps them. Everything but the reading is a pure function of what was read.
"""
