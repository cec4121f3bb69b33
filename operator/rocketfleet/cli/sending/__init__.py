"""The parts of `rocketfleet send`.

In the order in which a message meets them: `lines.py`, `pace.py`, `delivery.py`, `progress.py`.
"""
