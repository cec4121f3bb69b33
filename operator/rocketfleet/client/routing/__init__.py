"""Where queues and brokers are: name servers, routes, and what is done about brokers that are away.

Read `routes.py` (pure), `nameserver.py`, `route_cache.py`; then `lookout.py` and `lingering.py` (pure) and
`upkeep.py`.
"""
