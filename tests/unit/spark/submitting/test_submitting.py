"""`rocketfleet spark submit` before any Spark is started: finding the pipeline, packing the package, wrong settings."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from rocketfleet.cli.commands.spark import spark
from rocketfleet.spark.submitting.pipeline_loading import PipelineError, load_pipeline, script_files
from rocketfleet.spark.submitting.shipping import pack, shipped, zipped


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some_pipeline_of_a_test.py"
    lines = ["import neighbour_of_a_test", "def pipeline(_): return neighbour_of_a_test.WORD", "def other(_): return 2"]
    path.write_text("\n".join(lines))
    (tmp_path / "neighbour_of_a_test.py").write_text("WORD = 'found'\n")
    return path


def test_a_file_and_its_neighbours(file: Path) -> None:
    assert load_pipeline(str(file))(None) == "found"
    assert load_pipeline(f"{file}:other")(None) == 2


def test_a_file_and_what_it_imports_from_beside_it_are_sent(tmp_path: Path) -> None:
    script = tmp_path / "sent_pipeline_of_a_test.py"
    script.write_text("import sent_module_of_a_test\nimport sent_package_of_a_test.inner\ndef pipeline(_): ...\n")
    (tmp_path / "sent_module_of_a_test.py").write_text("")
    (tmp_path / "other_module_of_a_test.py").write_text("")
    package = tmp_path / "sent_package_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text("WORD = 'packed'\n")
    load_pipeline(str(script))
    found = script_files(str(script))
    names = ["sent_module_of_a_test.py", "sent_package_of_a_test", "sent_pipeline_of_a_test.py"]
    assert [path.name for path in found] == names
    assert script_files(f"{script}:pipeline") == found
    assert script_files("os.path:join") == []
    code = "import sys; sys.path.insert(0, sys.argv[1]); from sent_package_of_a_test.inner import WORD; print(WORD)"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = [sys.executable, "-I", "-S", "-c", code, str(zipped(package, elsewhere))]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "packed\n"


def test_a_module() -> None:
    assert load_pipeline("os.path:join")("a", "b") == "a/b"


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("nothing", "'nothing' does not name a pipeline: write module:function"),
        ("no_such_module_anywhere:x", "there is no module 'no_such_module_anywhere'"),
        ("os.path:no_such", "os.path has no function no_such"),
        ("os:sep", "sep in os is a str, and not a function"),
        ("/no/such/file.py", "there is no file /no/such/file.py"),
    ],
)
def test_what_cannot_be_found_is_one_sentence(reference: str, said: str) -> None:
    with pytest.raises(PipelineError) as caught:
        load_pipeline(reference)
    assert said in str(caught.value)


def test_a_wrong_setting_is_refused(file: Path) -> None:
    answer = CliRunner().invoke(spark, ["submit", "--conf", "executor.memory=1g", str(file)])
    assert answer.exit_code == 2
    assert "'executor.memory=1g' is no setting: write spark.some.name=value" in answer.output


def test_the_archive_is_all_that_a_task_imports(tmp_path: Path) -> None:
    archive = pack(tmp_path / "rocketfleet.zip")
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(unpacked)
    assert not list(unpacked.rglob("__pycache__"))
    modules = "rocketfleet.spark.source.tasks.pulling, rocketfleet.spark.source.cluster, rocketfleet.producer"
    code = f"import sys; sys.path.insert(0, {str(unpacked)!r}); import {modules}; print(rocketfleet.__file__)"
    found = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith(str(unpacked))
    assert shipped(archive)["spark.archives"] == f"{archive}#rocketfleet-packages"
