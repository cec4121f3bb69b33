"""A real standalone cluster, whose executors have a Python without this package: it is sent to them."""

import os
import socket
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from tests.broker.cluster import Cluster
from tests.spark.sending import numbered, send
from tests.spark.test_driver import EXAMPLES, Driver
from tests.support.waiting import wait_until

SITE = Path(pyspark.__file__).parents[1]
SOURCE = Path(__file__).parents[2] / "operator"
OURS = ("rocketfleet", "lz4", "zstandard")


def bare_environment() -> dict[str, str]:
    """An environment that leads no Python to this package."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PY", "SPARK_"))}


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """An interpreter that has what this one has, but neither this package nor the libraries that it needs."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for entry in SITE.iterdir():
        if not any(name in entry.name for name in OURS) and entry.suffix != ".pth":
            (packages / entry.name).symlink_to(entry)
    home = tmp_path / "bare"
    venv.create(home, symlinks=True)
    site = next((home / "lib").glob("python*/site-packages"))
    (site / "packages.pth").write_text(f"{packages}\n")
    python = str(home / "bin" / "python")
    environment = bare_environment()
    for module, there in (("pyarrow", True), ("pyspark", True), ("rocketfleet", False), ("lz4", False)):
        found = subprocess.run([python, "-c", f"import {module}"], check=False, env=environment, capture_output=True)
        assert (found.returncode == 0) is there, module
    return python


class Standalone:
    """A master and a worker of Spark's own, as processes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self.master = f"spark://127.0.0.1:{port}"
        self._start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        wait_until(lambda: "New state: ALIVE" in self._log("master.Master"), "the master", within=180)
        work = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "2", "--memory", "1g"]
        self._start("worker.Worker", *work, "--work-dir", str(directory / "work"), self.master)
        wait_until(lambda: "registered with master" in self._log("worker.Worker"), "the worker", within=180)

    def _start(self, name: str, *arguments: str) -> None:
        home = Path(pyspark.__file__).parent
        environment = {**bare_environment(), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
        environment["SPARK_DAEMON_MEMORY"] = "256m"
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        with (self._directory / f"{name}.log").open("wb") as log:
            # The default log says nothing of a successful start.
            environment["SPARK_DAEMON_JAVA_OPTS"] = f"-Dlog4j2.configurationFile={_log_settings(self._directory)}"
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))

    def _log(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text(errors="replace")

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(60)


def _log_settings(directory: Path) -> Path:
    path = directory / "log4j2.properties"
    path.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.out.ref = out\nappender.out.type = Console\n"
        "appender.out.name = out\nappender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %m%n\n"
    )
    return path


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Standalone]:
    made = Standalone(tmp_path)
    yield made
    made.stop()


@pytest.mark.timeout(900)
def test_executors_get_the_package_from_the_driver(
    broker: Cluster,
    topic: str,
    tmp_path: Path,
    standalone: Standalone,
    bare_python: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send(broker, numbered(topic, 120, tags=["a", "b"]))
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for name in OURS[1:]:
        (libraries / name).symlink_to(SITE / name)
    # Spark plans reads in Python processes of the driver's, which are of the interpreter that executors have.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), str(libraries)]))
    ran = {}
    for ship in ("--ship", "--no-ship"):
        driver = Driver(
            tmp_path / f"driver{ship}.log",
            *("--conf", "spark.executor.memory=512m", ship),
            *(str(EXAMPLES / "count_by_tag.py"), broker.name_server, topic),
            master=standalone.master,
            python=bare_python,
        )
        try:
            ran[ship] = driver.process.wait(300), driver.log()
        finally:
            driver.kill()
    assert ran["--ship"][0] == 0, ran["--ship"][1]
    assert "a\t60\t" in ran["--ship"][1]
    assert ran["--no-ship"][0] == 1
    assert "No module named 'rocketfleet'" in ran["--no-ship"][1]
    assert sys.executable != bare_python
    _neighbours_are_sent_too(tmp_path, standalone, bare_python)


def _neighbours_are_sent_too(tmp_path: Path, standalone: Standalone, python: str) -> None:
    """A file imports what lies beside it, and its functions use that on the executors."""
    scripts = tmp_path / "scripts"
    (scripts / "shapes").mkdir(parents=True)
    (scripts / "shapes" / "__init__.py").write_text("")
    (scripts / "shapes" / "squares.py").write_text("def square(number): return number * number\n")
    (scripts / "adding.py").write_text("ADDED = 1000\n")
    (scripts / "with_neighbours.py").write_text(
        "import adding\n"
        "from shapes.squares import square\n"
        "def apply(number): return square(number) + adding.ADDED\n"
        "def pipeline(spark): print('sum', spark.sparkContext.parallelize(range(4), 2).map(apply).sum())\n"
    )
    log = tmp_path / "neighbours.log"
    driver = Driver(
        log,
        *("--conf", "spark.executor.memory=512m", "--no-ship", str(scripts / "with_neighbours.py")),
        master=standalone.master,
        python=python,
    )
    try:
        assert driver.process.wait(300) == 0, driver.log()
    finally:
        driver.kill()
    assert "sum 4014" in driver.log()
