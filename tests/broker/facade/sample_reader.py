"""Everything in a topic, as a user of the original package sees it: each message through each of its getters, as JSON.

Runs on `rocketmq` 0.4.4 only; the test reads the same messages through the facade's `ReceivedMessage`.
"""

import json
import sys

from rocketmq.client import PullConsumer
from tests.broker.facade.sample_reader_getters import look_at


def main() -> None:
    name_server, topic, group = sys.argv[1:4]
    consumer = PullConsumer(group)
    consumer.set_namesrv_addr(name_server)
    consumer.start()
    print(json.dumps([look_at(message) for message in consumer.pull(topic)]))
    consumer.shutdown()


if __name__ == "__main__":
    main()
