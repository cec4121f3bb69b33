"""Java's order and Java's text, where Python's differ: all members must sort alike, in whatever language they run.

Java compares strings by UTF-16 code units, Python by code points. The two differ as soon as a character beyond U+FFFF
meets one in U+E000 to U+FFFF: its first unit is a surrogate, below U+E000. One member that sorted otherwise would take
queues that others hold.
"""

from collections.abc import Iterable

from rocketfleet.wire.queue import MessageQueue


def java_key(text: str) -> bytes:
    """Sorts like java.lang.String; a lone surrogate is a unit like any other."""
    return text.encode("utf-16-be", "surrogatepass")


def sort_members(members: Iterable[str]) -> list[str]:
    """Member ids in the order of Java's Collections.sort."""
    listed = list(members)
    if all(map(str.isascii, listed)):
        return sorted(listed)
    return sorted(listed, key=java_key)


def sort_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Queues by topic, broker name and queue id, as MessageQueue.compareTo has it."""
    listed = list(queues)
    names = {queue[0] for queue in listed}
    names.update([queue[1] for queue in listed])
    if all(map(str.isascii, names)):
        return sorted(listed)
    keys = {name: java_key(name) for name in names}
    return sorted(listed, key=lambda queue: (keys[queue[0]], keys[queue[1]], queue[2]))


def java_text(queue: MessageQueue) -> str:
    """MessageQueue.toString(), which is also the queue's key in consistent hashing."""
    return f"MessageQueue [topic={queue[0]}, brokerName={queue[1]}, queueId={queue[2]}]"
