"""The control port: how an operator, a parent process and a person talk to a worker or a Spark driver.

Read `messages.py` (what is said, across versions), `budget.py` (the time budget of a drain), `endpoints.py` (the
paths), `http.py` and `server.py` (the sockets), `port.py` (where they listen), `http_call.py` (the caller), `token.py`
and `proof.py` (who may call), `last_words.py` and `exit_codes.py` (what is left when a process ends). `identity.py` is
the member's name, `logs.py` how such a process logs.
"""
