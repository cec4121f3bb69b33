"""The parts of `reset-offsets`, `restore-offsets` and `snapshot-offsets`.

Read `offset_moving.py` (the move itself, step by step); `offset_target.py` (where to) and `offset_files.py` (what a
snapshot is).
"""
