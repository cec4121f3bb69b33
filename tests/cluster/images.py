"""The images under test, built once for what they are made of and put where the cluster finds them.

The tag is a hash of the content, so that a run after no change builds nothing. Wheels are made on this machine and
copied in: a build in a container may not reach a package index. The base images come from kind-cluster, out of Debian
packages; E2E_BASE_IMAGE (Python) and E2E_JAVA_IMAGE (Python and Java) take others. A cluster that is not kind's needs a
registry that both we and it can reach: E2E_REGISTRY.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.cluster.provision import programs, tool

from rocketfleet.devbroker.distribution.jars import cache_directory, provide_jars

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
PYTHON_BASE, JAVA_BASE = "rocketfleet/python-base:local", "rocketfleet/python-java-base:local"
INSTALL = "release/install-rocketfleet"
TARGET_PYTHON = "3.11"  # of the base image


@dataclass(frozen=True)
class Images:
    """What is deployed. `worker_next` is the worker by another name: something to roll to."""

    worker: str
    worker_next: str
    operator: str
    rocketmq: str


def provide_images(kind: str | None) -> Images:
    """Build what is missing, and give it to the cluster."""
    bases = _bases()
    sources = [ROOT / "Dockerfile", ROOT / "pyproject.toml", ROOT / INSTALL, *_files(ROOT / "operator")]
    ours = digest(sources, _identity(bases[0]))
    jars = provide_jars()
    theirs = digest([*_files(HERE / "rocketmq"), jars / "verified.json"], _identity(bases[1]))
    prefix = os.environ.get("E2E_REGISTRY", "rocketfleet")
    images = Images(
        worker=f"{prefix}/worker:e2e-{ours}",
        worker_next=f"{prefix}/worker:e2e-{ours}-next",
        operator=f"{prefix}/operator:e2e-{ours}",
        rocketmq=f"{prefix}/rocketmq:e2e-{theirs}",
    )
    missing = [target for target in ("worker", "operator") if not _exists(getattr(images, target))]
    if missing:
        _build_ours({target: getattr(images, target) for target in missing}, bases[0], ROOT)
    if not _exists(images.rocketmq):
        _build_rocketmq(images.rocketmq, bases[1], jars)
    _run("docker", "tag", images.worker, images.worker_next)
    every = (images.worker, images.worker_next, images.operator, images.rocketmq)
    if kind is not None:
        _load(kind, every)
    elif os.environ.get("E2E_REGISTRY"):
        for image in every:
            _run("docker", "push", image)
    return images


def provide_spark_image(kind: str | None) -> str:
    """The image of Spark drivers and executors: only for the tests that need it, for it is large."""
    base = _bases()[1]
    sources = [ROOT / "Dockerfile", ROOT / "pyproject.toml", ROOT / INSTALL, *_files(ROOT / "operator")]
    image = f"{os.environ.get('E2E_REGISTRY', 'rocketfleet')}/spark:e2e-{digest(sources, _identity(base))}"
    if not _exists(image):
        _build_ours({"spark": image}, base, ROOT, spark=True)
    if kind is not None:
        _load(kind, [image])
    elif os.environ.get("E2E_REGISTRY"):
        _run("docker", "push", image)
    return image


def provide_images_of(tree: Path, images: Images, kind: str | None) -> Images:
    """The same with the operator and the worker of another version, whose files are in `tree`."""
    base = _bases()[0]
    theirs = digest([tree / "Dockerfile", tree / "pyproject.toml", *_files(tree / "operator")], _identity(base))
    tags = {name: f"{getattr(images, name).rpartition(':')[0]}:e2e-{theirs}" for name in ("worker", "operator")}
    missing = {name: tag for name, tag in tags.items() if not _exists(tag)}
    if missing:
        _build_ours(missing, base, tree)
    if kind is not None:
        _load(kind, tags.values())
    elif os.environ.get("E2E_REGISTRY"):
        for image in tags.values():
            _run("docker", "push", image)
    return replace(images, **tags)


def digest(files: Iterable[Path], *more: str) -> str:
    """A short name for the content of files."""
    state = hashlib.sha256("\0".join(more).encode())
    for file in sorted(files):
        state.update(f"{file.name}\0".encode() + file.read_bytes())
    return state.hexdigest()[:12]


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def _bases() -> tuple[str, str]:
    """The base images: given ones, or ours."""
    given = os.environ.get("E2E_BASE_IMAGE"), os.environ.get("E2E_JAVA_IMAGE")
    if not all(given):
        tool("base-image", "--java")
    return given[0] or PYTHON_BASE, given[1] or JAVA_BASE


def _build_ours(targets: dict[str, str], base: str, tree: Path, *, spark: bool = False) -> None:
    with tempfile.TemporaryDirectory(dir=cache_directory()) as directory:
        context = Path(directory)
        for name in ("Dockerfile", ".dockerignore", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(tree / name, context)
        shutil.copytree(tree / "operator", context / "operator", ignore=shutil.ignore_patterns("__pycache__"))
        if (tree / "release").exists():  # a version before may have none
            shutil.copytree(tree / "release", context / "release", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(_wheels(tree, spark=spark), context / "wheels")
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        _run(*pip, "--wheel-dir", str(context / "wheels"), str(tree))
        for target, tag in targets.items():
            _run(
                "docker", "build", "--quiet", "--target", target, "--build-arg", f"BASE_IMAGE={base}",
                "--tag", tag, str(context),
            )  # fmt: skip


def _wheels(tree: Path, *, spark: bool = False) -> Path:
    """The wheels of all that the operator needs, and Spark's, from the cache or the package index.

    At the versions that a release's images have, but without the hashes: of PySpark there is only a wheel of ours.
    """
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["operator"], *(extras["spark"] if spark else ())]
    versions = _locked_versions(tree)
    state = hashlib.sha256(" ".join([*sorted(wanted), *versions]).encode())
    directory = cache_directory() / f"wheels-{state.hexdigest()[:12]}"
    if not directory.exists():
        part = directory.with_suffix(f".{os.getpid()}.part")
        part.mkdir()
        constraints = part / "constraints.txt"
        constraints.write_text("\n".join(versions))
        if spark:  # there is no wheel of it to download; what is made here is for any Python
            (pyspark,) = [one for one in extras["spark"] if one.startswith("pyspark")]
            wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
            _run(*wheel, "--wheel-dir", str(part), pyspark)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--find-links", str(part)]
        pip += ["--python-version", TARGET_PYTHON, "--constraint", str(constraints)]
        _run(*pip, "--dest", str(part), *wanted)
        constraints.unlink()
        part.rename(directory)
    return directory


def _locked_versions(tree: Path) -> list[str]:
    """The lines `name==version` of the lock files; a version before may have none."""
    locks = [tree / "release" / "requirements" / f"{name}.txt" for name in ("operator", "spark")]
    lines = {
        line.removesuffix("\\").strip() for lock in locks if lock.exists() for line in lock.read_text().splitlines()
    }
    return sorted(line for line in lines if "==" in line and not line.startswith(("#", "--")))


def _build_rocketmq(tag: str, base: str, jars: Path) -> None:
    with tempfile.TemporaryDirectory(dir=cache_directory()) as directory:
        context = Path(directory)
        for name in ("Dockerfile", "start"):
            shutil.copy(HERE / "rocketmq" / name, context)
        (context / "lib").mkdir()
        for jar in jars.glob("*.jar"):
            os.link(jar, context / "lib" / jar.name)
        source = HERE / "rocketmq" / "Member.java"
        compiler = ["javac", "--release", "17", "-proc:none", "-nowarn", "-d", str(context / "classes")]
        _run(*compiler, "-cp", f"{jars}/*", str(source))
        _run("docker", "build", "--quiet", "--build-arg", f"BASE_IMAGE={base}", "--tag", tag, str(context))


def _load(kind: str, images: Iterable[str]) -> None:
    """Give kind's nodes what they lack. A tag says what is in it, so a node that has the tag has the image; kind itself
    compares ids, which differ between docker and containerd, and would load a gigabyte again in every run.
    """
    program = str(programs() / "kind")
    nodes = _output(program, "get", "nodes", "--name", kind).split()
    there = {
        node: _output("docker", "exec", node, "ctr", "-n", "k8s.io", "images", "ls", "-q").split() for node in nodes
    }
    for image in images:
        lacking = [node for node in nodes if f"docker.io/{image}" not in there[node]]
        if lacking:
            _run(program, "load", "docker-image", image, "--name", kind, "--nodes", ",".join(lacking))


def _identity(image: str) -> str:
    """What an image's name stands for at the moment; one that is yet to be pulled is known by its name only."""
    command = ["docker", "image", "inspect", "--format", "{{.Id}}", image]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or image


def _exists(image: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", image], capture_output=True, check=False).returncode == 0


def _run(*command: str) -> None:
    _output(*command)


def _output(*command: str) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise AssertionError(f"`{' '.join(command)}` ended with {answer.returncode}:\n{answer.stdout}{answer.stderr}")
    return answer.stdout
