"""The variables by which a member's handler is told where to write and how to behave. Apart from
`handler.py`, which only a member can import.
"""

from typing import Final

RECORDS: Final = "FAULTS_RECORDS"  # a directory, in which each process has a file
BEHAVIOUR: Final = "FAULTS_BEHAVIOUR"  # a file
