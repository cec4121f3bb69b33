"""Letting a streaming query run dry, so that it can be stopped between two batches.

Stopping a query interrupts its batch, which is then repeated; that is safe, but a driver that is asked to end should
end with its last batch done and its offsets at the broker. So whoever starts the driver names a file that is not there
(`DRAIN_FILE` in the environment, from which Spark's Python processes have it too). From the moment it is there, the
source has nothing new to give: the batch under way ends, its offsets are written back, and the query is idle.
"""

import os
from pathlib import Path
from typing import Final

DRAIN_FILE: Final = "ROCKETFLEET_SPARK_DRAIN_FILE"


def is_draining() -> bool:
    """Whether queries are to run dry."""
    path = os.environ.get(DRAIN_FILE)
    return bool(path) and Path(str(path)).exists()
