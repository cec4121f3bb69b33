"""How many partitions a report's work gets."""

from hypothesis import given
from hypothesis import strategies as st

from rocketfleet.spark.analytics.windows.sizing import ROWS, partitions_for


@given(rows=st.integers(0, 10**12), cores=st.integers(1, 1000))
def test_every_core_gets_as_many_and_none_of_them_is_too_large(rows: int, cores: int) -> None:
    many = partitions_for(rows, cores)
    assert many % cores == 0
    assert rows / many <= ROWS
    assert many == 2 * cores or rows / (many - cores) > ROWS, "and no more of them than that takes"


def test_where_the_rows_are_not_known_there_are_enough_for_a_day_of_a_large_fleet() -> None:
    assert partitions_for(None, 2) == 16
    assert partitions_for(None, 100) == 200
