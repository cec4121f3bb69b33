"""The data source `rocketmq`: batch and streaming reads as Arrow record batches, and writes.

Read `data_source.py`, `options.py` and `schema.py`; then `batch.py`, `stream.py` and `sink.py`, one use each; reads
are made of `tasks/`. What they share: `link.py` (a client for blocking code), `cluster.py`, `offsets.py`, `errors.py`.
For a driver of ours: `reporting.py` and `drain.py`.
"""
