"""`rocketfleet demo`: a real broker, real workers, live traffic, a group that grows and shrinks, and a verdict.

Read `run.py`, the script; `manifest.py` and `handler.py` are what a user would write, `group_view.py` what the broker
says meanwhile, `verdict.py` what became of the messages.
"""
