"""Batches into a database, and each message once even if it comes twice.

    rocketfleet worker --path examples/handlers --handler to_sqlite:store --batch-size 32 --group demo --topic orders

A message can come again: its worker was killed before the offset was committed, or it failed and was sent back. So the
table has the message's id as its key, and what is there already is left alone. The id stays the same each time.

The database is ORDERS_DB, or orders.sqlite here.
"""

import json
import os
import sqlite3
import threading

from rocketfleet import RETRY, SUCCESS, ConsumeResult, ReceivedMessage

_local = threading.local()  # a connection belongs to the thread that opened it


def store(messages: list[ReceivedMessage]) -> list[ConsumeResult]:
    """A list in the annotation asks for batches; a list of results says which of them have to come again."""
    results, rows = [], []
    for message in messages:
        try:
            order = json.loads(message.body)
            rows.append((message.msg_id, str(order["id"]), message.body.decode()))
            results.append(SUCCESS)
        except (ValueError, KeyError, TypeError):
            results.append(RETRY)  # after its last try it is found among the dead letters
    with _database() as database:  # commits, or rolls back and raises: then the whole batch comes again
        database.executemany("INSERT OR IGNORE INTO orders VALUES (?, ?, ?)", rows)
    return results


def _database() -> sqlite3.Connection:
    if not hasattr(_local, "database"):
        _local.database = sqlite3.connect(os.environ.get("ORDERS_DB", "orders.sqlite"), timeout=30)
        _local.database.execute("CREATE TABLE IF NOT EXISTS orders (msg_id TEXT PRIMARY KEY, id TEXT, body TEXT)")
    database: sqlite3.Connection = _local.database
    return database
