"""Recommendations on their way from a report to the objects of groups."""

import json
from pathlib import Path

import pytest
from tests.unit.spark.analytics.making import KEY, analysis, group, hour

from rocketfleet.cli.rows.recommended_replicas import placed
from rocketfleet.spark.analytics.figures import ClusterGroupKey
from rocketfleet.spark.analytics.recommendation_file import (
    Floor,
    floors_at,
    read_floors,
    replicas_for,
    write_recommendations,
)
from rocketfleet.spark.analytics.recommending import recommend
from rocketfleet.spark.analytics.windows.reference import HistoryError

BY_HOUR = group(busy_rate=100.0, busy_windows=9, hours=(None, hour(20), hour(300), *(hour(700),) * 21))


def at(hours: float) -> float:
    return 1_700_006_400.0 // 86_400 * 86_400 + hours * 3600


def test_what_was_written_is_read_for_the_hour(tmp_path: Path) -> None:
    path = tmp_path / "floors.json"
    unknown = group(key=ClusterGroupKey("c", "other"), shared=True)
    advice = [recommend(BY_HOUR), recommend(unknown)]
    write_recommendations(path, analysis(BY_HOUR, unknown), advice)
    other = Floor(unknown.key, None)
    assert read_floors(path, at(0.5)) == [Floor(KEY, None), other], "that hour was never seen"
    assert read_floors(path, at(1.0)) == [Floor(KEY, 1), other]
    assert read_floors(path, at(2.99)) == [Floor(KEY, 4), other]
    assert read_floors(path, at(23.99)) == [Floor(KEY, 8), other]
    for hours in (0.5, 1, 2.5, 23):
        assert floors_at(advice, at(hours)) == read_floors(path, at(hours))
    assert [one.name for one in tmp_path.iterdir()] == ["floors.json"]


def test_infinities_do_not_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "floors.json"
    write_recommendations(path, analysis(), [recommend(BY_HOUR)])
    json.loads(path.read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"version": 1}', '{"version": 1, "groups": [{"cluster": "c", "group": "g", "membersByHour": [1]}]}',
     '{"version": 1, "groups": [{"cluster": "c", "group": "g", "membersByHour": ' + str([-1] * 24) + "}]}"],
)  # fmt: skip
def test_what_is_no_such_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "floors.json"
    path.write_text(content)
    with pytest.raises(HistoryError, match="does not hold recommendations"):
        read_floors(path, 0.0)


def test_a_file_of_another_version_and_none_at_all(tmp_path: Path) -> None:
    path = tmp_path / "floors.json"
    with pytest.raises(HistoryError, match="there is no file"):
        read_floors(path, 0.0)
    path.write_text('{"version": 2}')
    with pytest.raises(HistoryError, match="is of version 2"):
        read_floors(path, 0.0)


def test_pods_of_several_members() -> None:
    assert [replicas_for(members, 3) for members in (0, 1, 3, 4)] == [0, 1, 1, 2]


def an_object(name: str, **spec: object) -> dict[str, object]:
    base = {"cluster": {"nameServers": ["10.0.0.1:9876"]}, "autoscaling": {"maxReplicas": 8}}
    return {"metadata": {"name": name}, "spec": {**base, **spec}}


def test_each_floor_goes_to_the_object_of_its_group() -> None:
    objects = [
        an_object("orders"),
        an_object("renamed", groupName="orders"),
        an_object("elsewhere", groupName="orders", cluster={"nameServers": ["10.9.9.9:9876"]}),
        an_object("two-in-a-pod", groupName="orders", worker={"processes": 2}),
        an_object("fixed", groupName="orders", autoscaling=None),
        an_object("all-of-them", groupName="orders", messageModel="Broadcasting"),
    ]
    found = {one.name: one for one in placed(objects, [Floor(KEY, 4)])}
    assert {name: one.replicas for name, one in found.items()} == {
        "all-of-them": None,
        "elsewhere": None,
        "fixed": None,
        "orders": 4,
        "renamed": 4,
        "two-in-a-pod": 2,
    }
    assert found["orders"].told == "at least 4 replicas in this hour"
    assert "no autoscaling" in found["fixed"].told
    assert "nothing about it" in found["elsewhere"].told


def test_a_floor_of_another_hour_is_taken_away() -> None:
    stale, fresh = an_object("orders"), an_object("renamed", groupName="orders")
    stale["metadata"] = {"name": "orders", "annotations": {"rocketfleet.io/recommended-replicas": "4"}}
    found = {one.name: one for one in placed([stale, fresh], [Floor(KEY, None)])}
    assert found["orders"].taken_away
    assert not found["renamed"].taken_away
    assert {one.replicas for one in found.values()} == {None}
