"""The wheel `rocketmq` 0.4.4 (librocketmq, C++) with a handler that only counts. Prints one line of JSON.

Arguments: name server, group, topic, how many messages. Runs with the wheel on its path, not in our environment.
"""

import json
import sys
import threading
import time

from rocketmq.client import PushConsumer

name_server, group, topic, count = sys.argv[1:5]
target = int(count)
handled = 0
first = cpu = 0.0
done = threading.Event()
lock = threading.Lock()


def handle(message: object) -> None:
    global handled, first, cpu  # noqa: PLW0603 - a script
    with lock:
        handled += 1
        if handled == 1:
            first, cpu = time.perf_counter(), time.process_time()
        elif handled == target:
            done.set()


consumer = PushConsumer(group)
consumer.set_namesrv_addr(name_server)
consumer.subscribe(topic, handle)
consumer.start()
done.wait()
print(
    json.dumps({"messages": target - 1, "seconds": time.perf_counter() - first, "cpu": time.process_time() - cpu}),
    flush=True,
)
consumer.shutdown()
