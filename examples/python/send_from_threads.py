"""Send from code that has no event loop: one producer, any number of threads.

python send_from_threads.py [TOPIC]
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from rocketfleet import ClientConfig, Message, SyncProducer

NAME_SERVERS = os.environ.get("ROCKETFLEET_NAME_SERVERS", "127.0.0.1:9876")
TOPIC = sys.argv[1] if len(sys.argv) > 1 else "orders"


def main() -> None:
    with SyncProducer(ClientConfig(NAME_SERVERS), group="example-threads") as producer:

        def send(number: int) -> str:
            return producer.send(Message(TOPIC, b"from a thread %d" % number)).msg_id

        with ThreadPoolExecutor(8) as threads:
            ids = list(threads.map(send, range(200)))
        print(len(set(ids)), "messages from 8 threads")

        # Without waiting: a future each.
        futures = [producer.submit(Message(TOPIC, b"submitted %d" % i)) for i in range(50)]
        print(len([future.result() for future in futures]), "submitted")


if __name__ == "__main__":
    main()
