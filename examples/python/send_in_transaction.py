"""A message that becomes visible only if a local transaction commits.

    python send_in_transaction.py [TOPIC]

The order and the message's id go into the database in one transaction. So whoever is asked later how it ended, this
process or another of the same group, finds the answer there.
"""

import os
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from rocketfleet import ClientConfig, Message, ReceivedMessage, SyncProducer, TransactionState

NAME_SERVERS = os.environ.get("ROCKETFLEET_NAME_SERVERS", "127.0.0.1:9876")
TOPIC = sys.argv[1] if len(sys.argv) > 1 else "orders"


class Orders:
    """The listener: `execute` runs the local transaction, `check` answers a broker that was not told its outcome."""

    def __init__(self, database: Path) -> None:
        self.database = database
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("create table orders (name text primary key, transaction_id text)")

    def execute(self, message: Message, argument: Any) -> TransactionState:
        try:
            with closing(sqlite3.connect(self.database)) as connection, connection:
                connection.execute("insert into orders values (?, ?)", (argument, message.unique_id))
        except sqlite3.IntegrityError:
            return TransactionState.ROLLBACK
        return TransactionState.COMMIT

    def check(self, message: ReceivedMessage) -> TransactionState:
        with closing(sqlite3.connect(self.database)) as connection:
            query = "select count(*) from orders where transaction_id = ?"
            (found,) = connection.execute(query, (message.msg_id,)).fetchone()
        return TransactionState.COMMIT if found else TransactionState.ROLLBACK


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        orders = Orders(Path(directory) / "orders.db")
        config = ClientConfig(NAME_SERVERS)
        with SyncProducer(config, group="example-transactions", transactions=orders) as producer:
            for name in ("order-1", "order-2", "order-1"):
                result = producer.send_in_transaction(Message(TOPIC, f"{name} placed".encode()), argument=name)
                print(name, result.state.name)


if __name__ == "__main__":
    main()
