"""A program written for rocketmq-client-python. What is different is its first import.

python moved_over.py [TOPIC]
"""

import os
import sys

from rocketfleet.facade.client import Message, Producer  # was: from rocketmq.client import Message, Producer

NAME_SERVERS = os.environ.get("ROCKETFLEET_NAME_SERVERS", "127.0.0.1:9876")
TOPIC = sys.argv[1] if len(sys.argv) > 1 else "orders"

producer = Producer("PID-example")
producer.set_name_server_address(NAME_SERVERS)
producer.start()

msg = Message(TOPIC)
msg.set_keys("order-1")
msg.set_tags("created")
msg.set_body("moved over")
ret = producer.send_sync(msg)
print(ret.status, ret.msg_id, ret.offset)
producer.shutdown()
