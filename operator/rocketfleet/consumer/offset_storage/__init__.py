"""Where a group stands, and where it began.

`start_offset.py` (pure), `beginning.py` (where a LastOffset group began), `offsets.py` (at the broker),
`committing.py` (when), `local_offsets.py` and `local_identity.py` (broadcasting: in a file).
"""
