"""Which queue a message goes to.

`publishing.py` (the writable queues), `choice.py`, `sharding.py`, `faults.py`, `absence.py`.
"""
