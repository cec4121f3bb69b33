"""The executor's command line, out of what Spark's scheduler puts into the environment."""

from pathlib import Path

import pytest

from rocketfleet.spark.submitting.executor import BACKEND, NotInAPod, command

GIVEN = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:7078",
    "SPARK_EXECUTOR_ID": "2",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "shop-exec-2",
    "JAVA_HOME": "/opt/java",
}


def test_it_is_java_with_spark_s_own_backend() -> None:
    options = {f"SPARK_JAVA_OPT_{number}": f"-Da={number}" for number in (10, 2, 0)}
    made = command({**GIVEN, **options, "SPARK_JAVA_OPT_X": "no"}, Path("/spark"))
    assert made[:6] == ["/opt/java/bin/java", "-Da=0", "-Da=2", "-Da=10", "-Xms1024m", "-Xmx1024m"]
    assert made[6:9] == ["-cp", "/spark/jars/*", BACKEND]
    given = dict(zip(made[9::2], made[10::2], strict=True))
    assert given["--driver-url"] == GIVEN["SPARK_DRIVER_URL"]
    assert given["--podName"] == "shop-exec-2"
    assert len(given) == 7


def test_what_is_given_before_and_after_spark_s_own_jars_stays_there() -> None:
    more = {"SPARK_CLASSPATH": "/first.jar", "SPARK_EXTRA_CLASSPATH": "/last.jar"}
    made = command(GIVEN | more, Path("/spark"))
    assert made[made.index("-cp") + 1] == "/first.jar:/spark/jars/*:/last.jar"


def test_elsewhere_it_says_where_it_belongs() -> None:
    with pytest.raises(NotInAPod, match="SPARK_DRIVER_URL"):
        command({}, Path("/spark"))
