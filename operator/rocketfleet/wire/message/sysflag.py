"""The bits of a stored message's system flag, and of a pull request's."""

from typing import Final

COMPRESSED: Final = 0x1
MULTI_TAGS: Final = 0x2
TRANSACTION_NONE: Final = 0
TRANSACTION_PREPARED: Final = 0x1 << 2
TRANSACTION_COMMIT: Final = 0x2 << 2
TRANSACTION_ROLLBACK: Final = 0x3 << 2
BORN_HOST_V6: Final = 0x1 << 4
STORE_HOST_V6: Final = 0x1 << 5
NEED_UNWRAP: Final = 0x1 << 6
INNER_BATCH: Final = 0x1 << 7
COMPRESSION_MASK: Final = 0x7 << 8
COMPRESSION_SHIFT: Final = 8

PULL_COMMIT_OFFSET: Final = 0x1
PULL_SUSPEND: Final = 0x2
PULL_SUBSCRIPTION: Final = 0x4
PULL_CLASS_FILTER: Final = 0x8
PULL_LITE: Final = 0x10
