"""rocketmq-python-client (gRPC, through the proxy) with a handler that only counts. Prints one line of JSON.

Arguments: the proxy's endpoint, group, topic, how many messages. Runs with the package on its path, not in our
environment: its import name is that of another peer.
"""

import json
import os
import sys
import threading
import time

from rocketmq import ClientConfiguration, ConsumeResult, Credentials, FilterExpression, MessageListener, PushConsumer

endpoint, group, topic, count = sys.argv[1:5]
target = int(count)
done = threading.Event()


class Counter(MessageListener):  # type: ignore[misc]  # the package has no types
    def __init__(self) -> None:
        self.handled = 0
        self.first = self.cpu = 0.0
        self.lock = threading.Lock()

    def consume(self, message: object) -> ConsumeResult:
        with self.lock:
            self.handled += 1
            if self.handled == 1:
                self.first, self.cpu = time.perf_counter(), time.process_time()
            elif self.handled == target:
                done.set()
        return ConsumeResult.SUCCESS


counter = Counter()
consumer = PushConsumer(
    ClientConfiguration(endpoint, Credentials()), group, counter, {topic: FilterExpression()}, tls_enable=False
)
consumer.startup()
done.wait()
seconds, used = time.perf_counter() - counter.first, time.process_time() - counter.cpu
print(json.dumps({"messages": target - 1, "seconds": seconds, "cpu": used}), flush=True)
os._exit(0)  # its shutdown may take half a minute, and there is nothing left to say
