"""What is said about groups, and which of them come first."""

from dataclasses import replace

from tests.unit.spark.analytics.making import KEY, STUCK, WELL, analysis, group, hour, points

from rocketfleet.spark.analytics.figures import ClusterGroupKey, GroupDetail, QueueTotal
from rocketfleet.spark.analytics.findings import Weight, findings, low_water, most_worth_a_look
from rocketfleet.spark.analytics.recommending import recommend


def test_nothing_is_said_of_a_group_that_is_well() -> None:
    detail = GroupDetail(points(*[10.0, 200.0] * 12))
    assert findings(analysis(WELL, details={KEY: detail}), [recommend(WELL)]) == []


def test_a_queue_that_stands_still() -> None:
    (said,) = findings(analysis(stuck=(STUCK,)), [])
    assert said.weight is Weight.BAD
    assert said.sentence == (
        "Queue orders@broker-a/3 has stood still for 10 h with 1,200 messages waiting, owned by orders-1."
    )


def test_queues_that_stood_still_together_are_one_sentence() -> None:
    moved = [replace(STUCK, queue=number, owner=None, still=False, until=60_000.0) for number in range(4)]
    (said,) = findings(analysis(stuck=tuple(moved)), [])
    assert said.weight is Weight.HINT
    assert said.sentence == "4 queues stood still for 2 h 40 min, until 1970-01-01 16:40, owned by nobody."


def test_a_group_that_never_catches_up_falls_behind() -> None:
    rising = [1000.0 * step for step in range(24)]
    (said,) = findings(analysis(group(consume_rate=90.0), details={KEY: GroupDetail(points(*rising))}), [])
    assert said.word == "behind"
    assert "as few as 0 waited, since then never fewer than 12 k" in said.sentence
    assert "Lately it consumes 90% of what comes in" in said.sentence


def test_a_group_that_catches_up_every_night_does_not_fall_behind() -> None:
    waves = [90_000.0, 50_000.0, 5.0, 20_000.0] * 6
    assert findings(analysis(WELL, details={KEY: GroupDetail(points(*waves))}), []) == []


def test_too_few_points_tell_nothing() -> None:
    assert low_water(points(1.0, None, 2.0)) is None
    assert low_water(points(*[5.0] * 6, *[9.0] * 6)) == (5.0, 9.0)


def test_a_skewed_group_names_its_worst_queue() -> None:
    queues = tuple(QueueTotal("orders", "b", number, 10.0 * number, 9, 9, 1.0, 2.0) for number in range(3))
    skewed = group(lag_skew=2.6, produce_skew=2.5)
    (said,) = findings(analysis(skewed, details={KEY: GroupDetail(queues=queues)}), [])
    assert said.sentence == (
        "One queue has 2.6 times an even share of what waits, most of all orders@b/2. More comes into it, too: "
        "the keys are uneven."
    )


def test_a_group_that_is_gone_is_not_judged() -> None:
    (said,) = findings(analysis(group(last_seen=40_000.0, lag_skew=9.0)), [])
    assert said.word == "gone"


def test_too_few_queues() -> None:
    short = group(queues=2, busy_rate=10.0, busy_windows=9, hours=(hour(100),) * 24)
    said = findings(analysis(short), [recommend(short)])
    assert [one.word for one in said] == ["too few queues"]


def test_what_matters_most_comes_first() -> None:
    names = {name: ClusterGroupKey("c", name) for name in ("slow", "stuck", "well")}
    groups = [group(key=key, seconds_p95=9.0 if name == "slow" else 1.0) for name, key in names.items()]
    stuck = [replace(STUCK, key=names["stuck"])]
    assert most_worth_a_look(groups, stuck, 2) == [names["stuck"], names["slow"]]
    said = findings(analysis(*groups, stuck=(*stuck, replace(STUCK, key=names["well"], still=False))), [])
    assert [one.weight for one in said] == [Weight.BAD, Weight.HINT]
