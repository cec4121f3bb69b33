"""What a read is made of, and what its tasks do.

`ranges.py`, `filters.py` and `columns.py` (stored messages → Arrow) are pure; `pulling.py` reads a range,
`reading.py` is a task.
"""
