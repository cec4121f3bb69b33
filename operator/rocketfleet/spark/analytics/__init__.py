"""What the history of lag says: windows of every queue, member and group, what groups need, and a report to look at.

```
history (Parquet or a topic)            windows/reference.py, windows/reading.py
  → queue windows                       windows/queue_windows.py    the only step that keeps state in a stream
  → member windows, group windows       windows/member_windows.py, windows/group_windows.py    of whole windows
  → days, hours, stuck queues           windows/patterns.py
  → figures on the driver               collecting.py → figures.py
  → findings, recommendations           findings.py, recommending.py → recommendation_file.py
  → tables, a page                      output.py, report/ (in the words of wording.py)
```

Batch (`batch.py`) and stream (`streaming.py`) run the same functions and give the same numbers, to the last bit. Three
habits make it so: what is summed are whole numbers, for sums of floating-point numbers depend on their order; no window
is looked at across its border; and a stream goes beyond queue windows only with windows that are closed, which it has
whole. Only Spark's own expressions are used, so no row ever passes through Python.
"""
