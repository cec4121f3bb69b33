"""The parts of `reset-offsets`, `restore-offsets` and `snapshot-offsets`: targets, files, and the move itself."""
