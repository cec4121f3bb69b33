"""A fleet in the hands of tests: it can be disturbed and settles again, and makes topics and groups nobody else has."""

import itertools
import os
from typing import Any

from rocketfleet.devbroker.fleet import GRACE_SECONDS, START_SECONDS, Fleet
from rocketfleet.devbroker.guard import Guard
from rocketfleet.devbroker.setup.config import FleetSpec
from rocketfleet.devbroker.topics import create_group, create_topic

_numbers = itertools.count()


class Cluster(Fleet):
    """Notes that it was disturbed, so that it is mended after a test only when it must be."""

    disturbed = False
    _guard: Guard | None = None

    def start(self, spec: FleetSpec, *, repository: str | None = None, timeout: float = START_SECONDS) -> bool:
        self._guard = self._guard or Guard(self.directory)  # a run that is killed leaves no broker behind
        return super().start(spec, repository=repository, timeout=timeout)

    def stop(self, *, delete_data: bool = False, grace: float = GRACE_SECONDS) -> list[str]:
        ended = super().stop(delete_data=delete_data, grace=grace)
        if self._guard is not None:
            self._guard.dismiss()
            self._guard = None
        return ended

    def kill(self, process: str | None = None) -> None:
        self.disturbed = True
        super().kill(process)

    def pause(self, process: str | None = None) -> None:
        self.disturbed = True
        super().pause(process)

    def end(self, process: str | None = None, grace: float = GRACE_SECONDS) -> None:
        self.disturbed = True
        super().end(process, grace)

    def restart(self, process: str | None = None, timeout: float = START_SECONDS, grace: float = GRACE_SECONDS) -> None:
        self.disturbed = True
        super().restart(process, timeout, grace)

    def settle(self) -> None:
        """Make whole what a test has broken."""
        if self.disturbed:
            self.mend()
            self.disturbed = False

    def create_topic(self, queues: int = 8, *, order: bool = False, **attributes: str) -> str:
        """A topic that no other test has; attributes as in message_type="FIFO"."""
        topic = unique("topic")
        named = {name.replace("_", "."): value for name, value in attributes.items()}
        create_topic(self, topic, queues, order=order, attributes=named)
        return topic

    def create_group(self, **settings: Any) -> str:
        """A consumer group that no other test has; settings by the names of SubscriptionGroupConfig."""
        group = unique("group")
        create_group(self, group, **settings)
        return group


def unique(kind: str) -> str:
    """A name that no other test of any run has."""
    return f"{kind}-{os.getpid()}-{next(_numbers)}"
