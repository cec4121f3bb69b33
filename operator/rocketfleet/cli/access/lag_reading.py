"""The lag that `rocketfleet lag`, `status` and `group status` show: one look by `lag/`, and who has which queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocketfleet.cli.rows.lag_rows import LagRow, LagTotal, lag_rows, total_of
from rocketfleet.group.at_brokers import GroupAtBrokers, owners_of
from rocketfleet.lag.look import look
from rocketfleet.lag.target import target_of

if TYPE_CHECKING:
    from rocketfleet.api.consumer_group import ConsumerGroup
    from rocketfleet.client.client import Client
    from rocketfleet.client.errors import RocketMQError


@dataclass(frozen=True)
class GroupRows:
    """A group's lag: its own queues, those of its retries, the sums of both, and who did not answer. Dead letters are
    counted only; None: not known.
    """

    own: list[LagRow]
    retry: list[LagRow]
    total: LagTotal
    retry_total: LagTotal
    errors: dict[str, RocketMQError]
    dead_letters: int | None = None

    @property
    def rows(self) -> list[LagRow]:
        """All of them, in the order of topics, brokers and queues."""
        return sorted([*self.own, *self.retry], key=lambda row: (row["topic"], row["broker"], row["queue"]))

    def owner_counts(self) -> list[int]:
        """For each of its own queues, how many members have it. A broadcasting group has a row for each of them."""
        owners: dict[tuple[str, str, int], set[str]] = {}
        for row in self.own:
            owners.setdefault((row["topic"], row["broker"], row["queue"]), set()).update(row["owner"])
        return [len(them) for them in owners.values()]


NOTHING = GroupRows([], [], total_of([]), total_of([]), {})
"""Of a group that has no topic."""


async def read_lag(client: Client, group: ConsumerGroup, *, owners: bool = True) -> GroupRows:
    """Look at the group now, as the operator does for its status."""
    target = target_of(client, group)
    seen = await look(target)
    place, errors, owned = GroupAtBrokers(client, target.group), dict(seen.errors), {}
    if target.broadcast:  # a look at its members does not say which brokers were silent
        ids = await place.member_ids()
        ids.some_or_raise()
        errors.update(ids.errors)
    elif owners:
        ids = await place.member_ids()
        holdings = await place.holdings({member for found in ids.results.values() for member in found})
        owned = owners_of(holdings.results)
        errors.update({**ids.errors, **holdings.errors})
    own, retry = lag_rows(seen.moment.queues, owned), lag_rows(seen.retries, owned)
    return GroupRows(
        own,
        retry,
        total_of(own, complete=seen.moment.messages is not None),
        total_of(retry, complete=seen.moment.retry is not None),
        errors,
        seen.moment.dlq,
    )
