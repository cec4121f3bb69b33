"""Tags, as the broker filters by them: by hash code.

A consumer's subscription carries the hash codes of its tags, and the consume queue holds that of each message. Two tags
may share a code, so the broker lets a message of the wrong tag through now and then and the consumer compares the text.
"""

from rocketfleet.wire.errors import MessageError


def tag_hash(tag: str) -> int:
    """`String.hashCode` of Java: over UTF-16 units, as a signed 32-bit number."""
    try:
        units = tag.encode("utf-16-be", "surrogatepass")
    except UnicodeEncodeError as error:
        raise MessageError(f"the tag {tag!r} is not text") from error
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value
