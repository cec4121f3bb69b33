"""The history of lag, for whoever asks later.

`history.py`, and where it is kept: `topic_sink.py`, `parquet_sink.py`, `sinks.py`.
"""
