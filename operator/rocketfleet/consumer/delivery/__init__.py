"""From a pull to the handler's verdict.

Read `process_queue.py` (what is in flight, and which offset may be committed: the theory is there), `lane.py`,
`pull.py`, then `concurrent.py` and `orderly.py`, which stand on `consumption.py`. `flow.py`, `pace.py`, `verdicts.py`
and `fate.py` decide purely; `threads.py`, `tasks.py` and `ticker.py` are what handlers run on.
"""
