"""One typed call for each request to a broker, by domain.

`calls.py` is what every call does. The others are one domain each: `broker_members.py`, `broker_locks.py`,
`broker_offsets.py`, `broker_messages.py`, `broker_topics.py`, `broker_groups.py`, `broker_acl.py`, and
`broker_admin.py` for the broker itself. A new request goes to the file of its domain.
"""
