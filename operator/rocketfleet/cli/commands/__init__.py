"""One file per command; none imports another. `cli/main.py` lists them, and imports each when it is called."""
