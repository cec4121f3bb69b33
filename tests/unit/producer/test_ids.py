"""Message ids: one maker a process, none shared across a fork."""

import os

from rocketfleet.producer.ids import own_address, process_ids
from rocketfleet.wire.message import decode_unique_id


def test_one_maker_a_process() -> None:
    assert process_ids("127.0.0.1:9876") is process_ids("127.0.0.1:1")
    one, two = (decode_unique_id(process_ids("127.0.0.1:9876").next()) for _ in range(2))
    assert (one.address, one.process_id, one.salt) == (two.address, two.process_id, two.salt)
    assert one.counter != two.counter


def test_the_address_is_the_one_towards_the_name_server() -> None:
    assert own_address("127.0.0.1:9876") == bytes([127, 0, 0, 1])
    assert own_address("not-resolved.example:9876") == bytes([127, 0, 0, 1]), "names are not looked up: that can block"


def test_a_forked_child_makes_ids_of_its_own() -> None:
    parent = decode_unique_id(process_ids("127.0.0.1:9876").next())
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, process_ids("127.0.0.1:9876").next().encode())
        os._exit(0)
    os.waitpid(child, 0)
    made = decode_unique_id(os.read(reading, 100).decode())
    os.close(reading)
    os.close(writing)
    assert made.salt != parent.salt
