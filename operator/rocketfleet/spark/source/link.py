"""A client for code that Spark calls: blocking functions in a Python worker, one after the other.

Python workers live longer than a task, and a connection costs a handshake, so a worker keeps one client a cluster, on
an event loop in a thread of its own. Pulls run there while the worker's main thread turns earlier answers into Arrow.
The thread is a daemon: a worker that Spark ends, ends.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from rocketfleet.base.loop_thread import LoopThread
from rocketfleet.client.client import Client
from rocketfleet.spark.source.errors import SourceError

if TYPE_CHECKING:
    from rocketfleet.client.config import ClientConfig
    from rocketfleet.spark.source.options import SourceConnection


class Link(LoopThread):
    """A client, and the loop it runs on."""

    def __init__(self, config: ClientConfig) -> None:
        super().__init__("rocketmq")
        try:
            self.client = self.call(_started(config))
        except ValueError as error:  # a certificate or key that cannot be loaded
            super().close()
            raise SourceError(str(error)) from None

    def close(self) -> None:
        """Close the connections and end the thread."""
        try:
            self.call(self.client.close())
        finally:
            super().close()


async def _started(config: ClientConfig) -> Client:
    client = Client(config)
    client.start()
    return client


_links: dict[tuple[int, SourceConnection], Link] = {}
_lock = threading.Lock()


def link(connection: SourceConnection) -> Link:
    """This process's link to a cluster. A forked process makes its own: threads do not survive a fork."""
    key = (os.getpid(), connection)
    with _lock:
        if key not in _links:
            _links[key] = Link(connection.config())
        return _links[key]


def close_links() -> None:
    """Close all links of this process."""
    with _lock:
        mine = [key for key in _links if key[0] == os.getpid()]
        links = [_links.pop(key) for key in mine]
    for one in links:
        one.close()
