"""The words for how a group consumes that everybody uses: brokers, consumer, worker, manifests and commands.

The value is the word in a manifest, and so in a settings file and on the command line; `wire` is the word that a broker
is told. They are not strings themselves, so that neither is taken for the other.
"""

from enum import Enum


class _Word(Enum):
    def __str__(self) -> str:
        """As it stands in a manifest, for every sentence that people read."""
        return str(self.value)


class MessageModel(_Word):
    """Whether the members share the messages or each gets all of them."""

    CLUSTERING = "Clustering"
    BROADCASTING = "Broadcasting"

    @property
    def wire(self) -> str:
        return self.name


class ConsumeFromWhere(_Word):
    """Where a group begins that has no offset yet."""

    LAST_OFFSET = "LastOffset"
    FIRST_OFFSET = "FirstOffset"
    TIMESTAMP = "Timestamp"

    @property
    def wire(self) -> str:
        return f"CONSUME_FROM_{self.name}"


class ExpressionType(_Word):
    """How a subscription's expression is meant."""

    TAG = "Tag"
    SQL92 = "SQL92"

    @property
    def wire(self) -> str:
        return self.name
