"""Messages, sent and received: their properties, ids, batches and compression. One import for whoever uses them.

Read `outgoing.py` and `received.py` first; the others are what the two are made of: `properties.py` and `tags.py`,
`message_id.py`, `compression.py` and `sysflag.py`, `batch.py`, `stored.py` (a message as the broker keeps it).
"""

from rocketfleet.wire.message.compression import Compression, compress, decompress
from rocketfleet.wire.message.message_id import UniqueIds, decode_offset_id, decode_unique_id, encode_offset_id
from rocketfleet.wire.message.outgoing import Message, decode_batch, encode_batch
from rocketfleet.wire.message.properties import decode_properties, encode_properties
from rocketfleet.wire.message.received import ReceivedMessage, decode_messages
from rocketfleet.wire.message.tags import tag_hash

__all__ = [
    "Compression",
    "Message",
    "ReceivedMessage",
    "UniqueIds",
    "compress",
    "decode_batch",
    "decode_messages",
    "decode_offset_id",
    "decode_properties",
    "decode_unique_id",
    "decompress",
    "encode_batch",
    "encode_offset_id",
    "encode_properties",
    "tag_hash",
]
