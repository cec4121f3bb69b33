"""Recommendations as a JSON file, and what of it counts at a moment. Pure but for the file.

```json
{"version": 1, "source": "/data/lag", "since": "2026-01-24T00:00:00Z", "until": "2026-01-31T00:00:00Z",
 "groups": [{"cluster": "10.0.0.1:9876", "group": "orders", "queues": 8, "queuesToAdd": 0, "memberRate": 98.2,
             "learnt": "busy", "membersByHour": [1, 1, 1, …], "why": "…"}]}
```

Hours are of UTC. A number is of members: a pod may hold several, and who applies it knows how many. null is not
known.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rocketfleet.spark.analytics.figures import HOURS, ClusterGroupKey
from rocketfleet.spark.analytics.windows.reference import HistoryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rocketfleet.spark.analytics.figures import Analysis
    from rocketfleet.spark.analytics.recommending import Recommendation

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Floor:
    """How many members a group should have at least, at some hour; None if nothing is recommended for it."""

    key: ClusterGroupKey
    members: int | None


def write_recommendations(path: Path, analysis: Analysis, recommendations: Iterable[Recommendation]) -> None:
    """Write the file: whole or not at all."""
    content = {
        "version": VERSION,
        "source": analysis.source,
        "since": _text(analysis.since),
        "until": _text(analysis.until),
        "groups": [_entry(one) for one in recommendations],
    }
    beside = path.with_name(f".{path.name}.part")
    beside.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    beside.replace(path)


def read_floors(path: Path, now: float) -> list[Floor]:
    """What the file says of the hour that `now` is in, of every group."""
    try:
        content = json.loads(path.read_text("utf-8"))
        version = content["version"]
        if version != VERSION:
            raise HistoryError(f"{path} is of version {version}, and version {VERSION} is known: write it again")
        hour = datetime.fromtimestamp(now, UTC).hour
        found = [(ClusterGroupKey(one["cluster"], one["group"]), _hours(one)[hour]) for one in content["groups"]]
    except FileNotFoundError:
        raise HistoryError(
            f"there is no file {path}: `rocketfleet spark report --recommend {path}` writes it"
        ) from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise HistoryError(
            f"{path} does not hold recommendations: `rocketfleet spark report --recommend` writes such a file"
        ) from error
    return [Floor(key, members) for key, members in found]


def floors_at(recommendations: Iterable[Recommendation], now: float) -> list[Floor]:
    """The same, of recommendations that were just made."""
    hour = datetime.fromtimestamp(now, UTC).hour
    return [Floor(one.key, one.members[hour]) for one in recommendations]


def replicas_for(members: int, members_per_pod: int) -> int:
    """As many pods as hold so many members."""
    return -(-members // max(1, members_per_pod))


def _hours(entry: dict[str, Any]) -> Sequence[int | None]:
    hours = entry["membersByHour"]
    if len(hours) != HOURS or not all(one is None or (type(one) is int and one >= 0) for one in hours):
        raise ValueError("membersByHour")
    result: Sequence[int | None] = hours
    return result


def _entry(one: Recommendation) -> dict[str, object]:
    return {
        "cluster": one.key.cluster,
        "group": one.key.group,
        "queues": one.queues,
        "queuesToAdd": one.queues_to_add,
        "memberRate": None if one.member_rate is None else round(one.member_rate, 3),
        "learnt": one.learnt,
        "membersByHour": list(one.members),
        "why": one.why,
    }


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
