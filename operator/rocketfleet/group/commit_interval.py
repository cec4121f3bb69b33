"""How far a stored offset may be behind what its member has consumed. Judging lag and sizing a group both need to know
it, and neither knows of the other.
"""

from typing import Final

COMMIT_SECONDS: Final = 6.0
"""Longer than the five between two commits of offsets: what lies there for a shorter time may have been consumed."""
