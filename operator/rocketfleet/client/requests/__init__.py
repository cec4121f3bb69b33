"""One typed call for each request to a broker, by domain.

`calls.py` is what every call does. The others are one domain each: `broker_members.py`, `broker_locks.py`,
`broker_offsets.py`, `broker_messages.py`, `broker_topics.py`, `broker_groups.py`, and `broker_admin.py` for the broker
itself. A new request goes to the file of its domain. The room covers the requests by which messages, groups and their
members are looked at and moved, each tested against Java's client; a few of them nobody in the package makes yet.
"""
