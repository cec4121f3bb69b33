"""What a worker can be told: one table of settings, and the ways in which they come.

Read `setting_table.py`; then `setting_values.py` (a value as written), `settings_file.py`, `settings.py` (what the
consumer takes).
"""
