"""Lag between two reconciles.

`lag_watch.py` follows it, `scaling.py` asks the autoscaler, `work_meter.py` counts attempts.
"""
