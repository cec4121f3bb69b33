"""Bytes to and from a peer.

Read `connection.py` (one, multiplexed), then `remoting.py` (all of them, by `address.py`), then `incoming.py` (requests
from the peer). `tls.py` and `keys.py` prove who is who, out of `followed_files.py`.
"""
