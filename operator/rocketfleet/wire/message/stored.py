"""Writing a message as the broker stores it: what `received` reads.

A client never sends this form. A test that plays the broker does, and so does a tool that copies messages.
"""

import struct
import zlib
from collections.abc import Mapping

from rocketfleet.wire.errors import MessageError
from rocketfleet.wire.message import sysflag
from rocketfleet.wire.message.batch import properties_bytes
from rocketfleet.wire.message.compression import compress, compression_of
from rocketfleet.wire.message.message_id import host_bytes
from rocketfleet.wire.message.received import MAGIC_V1, MAGIC_V2

_BEFORE_HOSTS = struct.Struct(">iiiiiqqiq")
_AFTER_HOSTS = struct.Struct(">iqi")


def encode_stored(
    topic: str,
    body: bytes,
    properties: Mapping[str, str] | None = None,
    *,
    queue_id: int = 0,
    queue_offset: int = 0,
    commit_log_offset: int = 0,
    flag: int = 0,
    sys_flag: int = 0,
    born_timestamp: int = 0,
    born_host: str = "127.0.0.1:0",
    store_timestamp: int = 0,
    store_host: str = "127.0.0.1:10911",
    reconsume_times: int = 0,
    prepared_transaction_offset: int = 0,
) -> bytes:
    """One message. The body is compressed as `sys_flag` says; the flag's bits for IPv6 follow the hosts given."""
    raw_born, raw_store = host_bytes(born_host), host_bytes(store_host)
    sys_flag &= ~(sysflag.BORN_HOST_V6 | sysflag.STORE_HOST_V6)
    sys_flag |= sysflag.BORN_HOST_V6 if len(raw_born) == 20 else 0
    sys_flag |= sysflag.STORE_HOST_V6 if len(raw_store) == 20 else 0
    compression = compression_of(sys_flag)
    stored_body = body if compression is None else compress(body, compression)
    try:
        raw_topic = topic.encode()
    except UnicodeEncodeError as error:
        raise MessageError(f"the topic holds a lone surrogate: {error.reason}") from error
    raw_properties = properties_bytes(properties or {})
    long_topic = len(raw_topic) > 127
    try:
        tail = (
            raw_born,
            struct.pack(">q", store_timestamp),
            raw_store,
            _AFTER_HOSTS.pack(reconsume_times, prepared_transaction_offset, len(stored_body)),
            stored_body,
            struct.pack(">H" if long_topic else ">B", len(raw_topic)),
            raw_topic,
            struct.pack(">h", len(raw_properties)),
            raw_properties,
        )
        head = _BEFORE_HOSTS.pack(
            _BEFORE_HOSTS.size + sum(map(len, tail)),
            MAGIC_V2 if long_topic else MAGIC_V1,
            zlib.crc32(stored_body) & 0x7FFFFFFF,
            queue_id,
            flag,
            queue_offset,
            commit_log_offset,
            sys_flag,
            born_timestamp,
        )
    except struct.error as error:
        raise MessageError(f"the message does not fit the stored form: {error}") from error
    return b"".join((head, *tail))
