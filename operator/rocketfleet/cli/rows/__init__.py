"""What commands show, made purely from what brokers and the API server say.

Named after the commands: `status_rows.py` (and `members`), `group_rows.py`, `topic_rows.py` and `topic_change.py`,
`lag_rows.py` and `lag_explain.py`, `recommended_replicas.py`.
"""
