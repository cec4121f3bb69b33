"""Every getter of a received message, the original's or ours. Imports neither."""

from typing import Any

# The original's getter cuts a property at a NUL, as that of the body does; none of these has one.
PROPERTIES = ("KEYS", "TAGS", "DELAY", "WAIT", "UNIQ_KEY", "shop", "absent")


def look_at(message: Any) -> dict[str, Any]:
    """Every getter's answer; bytes as the text of their repr, which keeps all."""
    return {
        "topic": message.topic,
        "tags": repr(message.tags),
        "keys": repr(message.keys),
        "body": repr(message.body),
        "bytes": repr(bytes(message)),
        "id": message.id,
        "delay_time_level": message.delay_time_level,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "commit_log_offset": message.commit_log_offset,
        "prepared_transaction_offset": message.prepared_transaction_offset,
        "reconsume_times": message.reconsume_times,
        "store_size": message.store_size,
        "born_timestamp": message.born_timestamp,
        "store_timestamp": message.store_timestamp,
        "properties": {name: repr(message.get_property(name)) for name in PROPERTIES},
        "by index": repr(message["UNIQ_KEY"]),
    }
