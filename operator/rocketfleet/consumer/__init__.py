"""Consuming: rebalance, ownership and handover, pull, concurrent and orderly consumption, offsets, shutdown.

Read `consumer.py`, which puts the rooms together: `handover/` (who may touch a queue), `delivery/` (from a pull to the
handler's verdict), `offset_storage/` (where a group stands and where it began). Beside them, what it is told:
`settings.py`, `subscription.py`, `handler.py`, `results.py` (what a handler may answer); what it does besides:
`timers.py`, `broker_requests.py`, `counters.py`; how long it waits for what: `timings.py`; and how it ends:
`shutdown.py`, the table of phases. `until_signalled.py` makes a whole program of it.
"""
