"""Who is missing from the routes, and how sparingly the name server is asked about it."""

from tests.support.clock import Clock

from rocketfleet.producer.queues.absence import Absences

AB, A, B, NONE = frozenset("ab"), frozenset("a"), frozenset("b"), frozenset[str]()


def test_nobody_is_asked_while_nobody_is_missing() -> None:
    absences = Absences(Clock(0.0))
    assert absences.route_changed("t", NONE, AB) == []
    assert absences.canaries() == []


def test_one_topic_is_asked_for_each_missing_broker_once_an_interval() -> None:
    clock = Clock(0.0)
    absences = Absences(clock, interval=2.0)
    for topic in ("t", "u", "v"):
        absences.route_changed(topic, AB, A)
    assert absences.canaries() == ["t"]
    assert absences.canaries() == []
    clock.now += 2.0
    assert absences.canaries() == ["t"]


def test_when_a_broker_is_back_the_other_topics_are_refreshed() -> None:
    absences = Absences(Clock(0.0))
    for topic in ("t", "u", "v"):
        absences.route_changed(topic, AB, A)
    assert absences.route_changed("t", A, AB) == ["u", "v"]
    assert len(absences) == 0
    assert absences.route_changed("u", A, AB) == []


def test_a_topic_that_a_broker_never_had_does_not_end_the_search_for_another() -> None:
    absences = Absences(Clock(0.0))
    absences.route_changed("t", AB, A)
    assert absences.route_changed("x", NONE, A) == []
    assert absences.canaries() == ["t"]


def test_patience_ends() -> None:
    clock = Clock(0.0)
    absences = Absences(clock, patience=600.0)
    absences.route_changed("t", AB, A)
    clock.now = 601.0
    assert absences.canaries() == []
    assert len(absences) == 0


def test_topics_out_of_use_are_not_asked_for() -> None:
    absences = Absences(Clock(0.0))
    absences.route_changed("t", AB, A)
    absences.route_changed("u", AB, A)
    absences.forget_topic("t")
    assert absences.canaries() == ["u"]
    absences.forget_topic("u")
    assert len(absences) == 0
