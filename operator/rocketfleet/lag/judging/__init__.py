"""What the figures mean.

`window.py` (a group over the last minutes), `handling.py`, and `rules/`, one rule per file. Pure.
"""
