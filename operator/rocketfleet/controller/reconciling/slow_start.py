"""Creations in batches of 1, 2, 4, …: what the first one is refused for (a quota, a webhook) the others would be too.

As a ReplicaSet does it. A group of hundreds is created over several passes, so that none takes long.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
LARGEST = 64
MOST_CREATIONS = 2 * LARGEST - 1  # in one pass


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in their order, each batch twice as large as the one before. Too many: the last ones are left out."""
    start, size = 0, 1
    while start < len(items) and size <= LARGEST:
        yield items[start : start + size]
        start, size = start + size, size * 2
