"""Bytes to and from a peer.

One multiplexed connection each, TLS, signing keys that are followed, requests from the peer.

Read `connection.py`, then `remoting.py` (connections by address), then `incoming.py`.
"""
