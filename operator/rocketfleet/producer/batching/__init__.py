"""Small messages that travel together: `accumulator.py` decides purely, `accumulating.py` is the shell."""
