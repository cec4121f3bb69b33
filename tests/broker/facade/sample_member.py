"""A member of a consumer group on the original package: consumes everything, until its standard input ends."""

import sys
from typing import Any

from rocketmq.client import PushConsumer


def consume(_: Any) -> None:
    """Nothing raised is consumed."""


def main() -> None:
    name_server, group, topic = sys.argv[1:4]
    consumer = PushConsumer(group)
    consumer.set_namesrv_addr(name_server)
    consumer.subscribe(topic, consume)
    consumer.start()
    print("started", flush=True)
    sys.stdin.read()
    consumer.shutdown()


if __name__ == "__main__":
    main()
