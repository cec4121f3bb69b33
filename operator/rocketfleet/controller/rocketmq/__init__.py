"""The controller's access to RocketMQ.

Clients shared by groups, preparation and removal of groups, and what fences them.

Read `brokers.py`, then `group_preparation.py` and `group_removal.py`; `fence.py` and `allowed_hosts.py` limit both.
"""
