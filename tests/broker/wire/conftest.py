"""One oracle for all tests of a module: a JVM takes longer to start than to answer thousands of questions."""

from collections.abc import Iterator

import pytest
from tests.broker.java_main import JavaPrograms
from tests.broker.wire.oracle import Oracle


@pytest.fixture(scope="module")
def oracle(_java_programs: JavaPrograms) -> Iterator[Oracle]:
    with Oracle(_java_programs.command("WireOracle.java")) as oracle:
        yield oracle
