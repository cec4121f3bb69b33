"""A SPARK_HOME of the driver's own, for executors that are processes beside it.

A local cluster's workers write into SPARK_HOME/work. In an installed PySpark that is among the packages, which may be
read-only and are nobody's place to leave logs in; so the home is a directory of links, and `work` a directory in it.
"""

from __future__ import annotations

from pathlib import Path


def own_spark_home(directory: Path) -> Path:
    """Make it."""
    import pyspark

    directory.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (directory / entry.name).symlink_to(entry)
    return directory
