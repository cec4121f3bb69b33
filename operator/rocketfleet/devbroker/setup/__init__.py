"""A fleet before it runs.

`config.py` (what is asked for), `plan.py` (what is run; pure), `ports.py`, `certificates.py`, `credentials.py`.
"""
