"""The only sockets to RocketMQ: connections, routes, and one typed call for each request that we make.

Read `client.py` (what a caller holds) and `config.py`; then the rooms from below: `transport/` (bytes to a peer),
`routing/` (which peer), `requests/` (what is asked of it). `admin.py` asks whole clusters, by `fanout.py`. What can go
wrong is in `errors.py`, what the environment says in `variables.py`.
"""
