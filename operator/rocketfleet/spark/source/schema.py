"""The columns of a message, as Spark knows them. They are fixed: docs/spark.md has them, checkpoints rely on them."""

from typing import Final

COLUMNS: Final = {
    "topic": "STRING",
    "broker": "STRING",
    "queueId": "INT",
    "queueOffset": "BIGINT",
    "body": "BINARY",
    "tags": "STRING",
    "keys": "STRING",
    "properties": "MAP<STRING, STRING>",
    "bornTime": "TIMESTAMP",
    "storeTime": "TIMESTAMP",
    "msgId": "STRING",
    "reconsumeTimes": "INT",
}
DDL: Final = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
