"""`make release`: all that a release is made of, into dist/.

It is built from the commit that is checked out, not from the working tree, and with the commit's time for every
timestamp: whoever builds the same commit gets the same bytes. Images are the exception; they are built where there is a
builder, stay there, and are listed in images.txt. What cannot be made here is left out and said; --complete makes that
an error. Nothing is pushed anywhere.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import yaml
from release.lock import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ("worker", "operator", "spark")
CHECKSUMS, IMAGE_LIST, NOTES = "SHA256SUMS", "images.txt", "NOTES.md"
KUBE_VERSION = "1.34.0"  # that the install manifest is rendered for; the chart takes older ones too


class Left(Exception):
    """Something that cannot be made here, and why."""


class Release:
    """One release, from the tree of a commit into a directory."""

    def __init__(self, tree: Path, dist: Path, epoch: int, registry: str, source: str) -> None:
        self.tree = tree
        self.dist = dist
        self.epoch = epoch
        self.registry = registry
        self.source = source
        self.version = output(sys.executable, "-m", "hatchling", "version", cwd=tree)
        self.chart = tree / "helm" / "rocketfleet"

    def check(self, tag: str) -> None:
        """Refuse a tree whose parts disagree about the version, before anything is built."""
        chart = yaml.safe_load((self.chart / "Chart.yaml").read_text())
        named = {"the package": self.version, "Chart.yaml": chart["version"], "its appVersion": chart["appVersion"]}
        if tag:
            named["the tag"] = tag.removeprefix("v")
        if len(set(named.values())) > 1:
            sys.exit(f"versions disagree: {', '.join(f'{what} says {version}' for what, version in named.items())}")

    def notes(self) -> None:
        """The section of the changelog."""
        (self.dist / NOTES).write_text(section((self.tree / "CHANGELOG.md").read_text(), self.version))

    def package(self) -> None:
        """The sdist and the wheel, by the pinned hatchling beside us."""
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(self.dist), str(self.tree))

    def bills_of_materials(self) -> None:
        """An SBOM for each image's Python packages, out of its lock file."""
        for name in EXTRAS:
            lock = self.tree / "release" / "requirements" / f"{name}.txt"
            command = [sys.executable, "-m", "cyclonedx_py", "requirements", str(lock), "--output-reproducible"]
            bill = json.loads(output(*command, "--output-format", "JSON", "--mc-type", "application"))
            about = {"type": "application", "bom-ref": "rocketfleet", "name": "rocketfleet", "version": self.version}
            bill["metadata"]["component"] = {**about, "purl": f"pkg:pypi/rocketfleet@{self.version}"}
            bill["metadata"]["component"]["licenses"] = [{"license": {"id": "Apache-2.0"}}]
            file = self.dist / f"rocketfleet-{self.version}-{name}.cdx.json"
            file.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n")

    def packaged_chart(self) -> None:
        """The chart as `helm install` and `helm push` take it."""
        if self.source:
            about = self.chart / "Chart.yaml"
            about.write_text(f"{about.read_text()}home: {self.source}\nsources: [{self.source}]\n")
        program = helm()
        run(program, "lint", "--quiet", str(self.chart), *self._images())
        with tempfile.TemporaryDirectory() as directory:
            run(program, "package", str(self.chart), "--destination", directory)
            (package,) = Path(directory).glob("*.tgz")
            (self.dist / package.name).write_bytes(normalised(package.read_bytes(), self.epoch))

    def install_manifest(self) -> None:
        """All that the chart installs, in one file for `kubectl apply`."""
        if not self.registry:
            raise Left("REGISTRY is not set, and a manifest has to say where the images are")
        namespace = "rocketfleet-system"
        command = [helm(), "template", "rocketfleet", str(self.chart), "--namespace", namespace, "--skip-tests"]
        rendered = output(*command, "--kube-version", KUBE_VERSION, *self._images())
        head = (
            f"# Rocketfleet {self.version}, rendered from its chart: kubectl apply --server-side -f install.yaml\n"
            f"---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {namespace}\n"
            "  labels:\n    pod-security.kubernetes.io/enforce: restricted\n"
        )
        (self.dist / "install.yaml").write_text(f"{head}{rendered}\n")

    def images(self) -> None:
        """An image per role, in the builder's store; images.txt has their names and ids."""
        if not self.registry:
            raise Left("REGISTRY is not set, and images are named by it")
        builder = image_builder()
        labels = {
            "title": "rocketfleet",
            "version": self.version,
            "revision": output("git", "rev-parse", "HEAD", cwd=ROOT),
            "licenses": "Apache-2.0",
            **({"source": self.source} if self.source else {}),
        }
        told = [part for key, text in labels.items() for part in ("--label", f"org.opencontainers.image.{key}={text}")]
        lines = []
        for target in IMAGES:
            name = f"{self.registry}/{target}:{self.version}"
            with tempfile.TemporaryDirectory() as directory:
                identity = Path(directory) / "id"
                built = ["--target", target, "--tag", name, "--iidfile", str(identity)]
                run(builder, "build", *built, *told, str(self.tree))
                lines.append(f"{name} {identity.read_text().strip()}\n")
        (self.dist / IMAGE_LIST).write_text("".join(lines))

    def checksums(self) -> None:
        """SHA256SUMS of all that is the same wherever it is built, as `sha256sum --check` reads it."""
        files = sorted(path for path in self.dist.iterdir() if path.name not in (CHECKSUMS, IMAGE_LIST))
        lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
        (self.dist / CHECKSUMS).write_text("".join(lines))

    def _images(self) -> list[str]:
        return ["--set", f"imageRegistry={self.registry or 'registry.example/rocketfleet'}"]


def section(changelog: str, version: str) -> str:
    """What a changelog says about a version."""
    found = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        sys.exit(f"CHANGELOG.md has no section for {version}")
    return found[1].strip() + "\n"


def normalised(archive: bytes, epoch: int) -> bytes:
    """A .tgz with the same files, but nothing in it of when, where and by whom it was made."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(fileobj=packed, mode="w") as new:
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            content = old.extractfile(member)
            clean = tarfile.TarInfo(member.name)
            clean.size, clean.mtime, clean.mode, clean.type = member.size, epoch, 0o644, member.type
            new.addfile(clean, content)
    return gzip.compress(packed.getvalue(), mtime=epoch)


def helm() -> str:
    """The helm on the PATH, or that of the cluster's tests, or one of its version, compiled once into the cache."""
    cache = Path(os.environ.get("ROCKETFLEET_CACHE") or Path.home() / ".cache" / "rocketfleet")
    tool = (ROOT / "tests" / "cluster" / "kind" / "kind-cluster").read_text()
    version = re.findall(r"^HELM_VERSION=(\S+)", tool, re.MULTILINE)[0]
    ours = cache / f"helm-{version}"
    for candidate in (shutil.which("helm"), cache / "bin" / "helm", ours / "helm"):
        if candidate and Path(candidate).exists():
            return str(candidate)
    if shutil.which("go") is None:
        raise Left("there is no helm, and no Go to compile it with: install one of them")
    print(f"compiling helm {version} into {ours}: once, some minutes", flush=True)
    module = f"helm.sh/helm/v3/cmd/helm@{version}"
    run("go", "install", "-trimpath", "-ldflags=-s -w", module, GOBIN=str(ours), CGO_ENABLED="0")
    return str(ours / "helm")


def image_builder() -> str:
    """A program that builds images here and now."""
    for program in filter(shutil.which, ("docker", "podman", "buildah")):
        if subprocess.run([program, "info"], capture_output=True, check=False).returncode == 0:
            return program
    raise Left("there is no docker with a running daemon, no podman and no buildah")


def run(*command: str, **environment: str) -> None:
    """Run a command that says by itself what it does."""
    if subprocess.run(command, check=False, env={**os.environ, **environment}).returncode:
        sys.exit(f"failed: {' '.join(command)}")


def output(*command: str, cwd: Path | None = None) -> str:
    """What a command prints."""
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if answer.returncode:
        sys.exit(f"failed: {' '.join(command)}\n{answer.stdout}{answer.stderr}")
    return answer.stdout.strip()


def arguments() -> Any:
    """The command line. Without a registry there are no images and no install.yaml."""
    parser = argparse.ArgumentParser(prog="make release")
    parser.add_argument("--registry", default="", help="where images will be pushed: registry.example/rocketfleet")
    parser.add_argument("--source", default="", help="the address of the repository, for the chart and the images")
    parser.add_argument("--tag", default="", help="the tag that is released; it has to agree with the version")
    parser.add_argument("--complete", action="store_true", help="fail if anything has to be left out")
    return parser.parse_args()


def main() -> None:
    """Build everything."""
    given = arguments()
    if output("git", "status", "--porcelain", cwd=ROOT):
        print("what is not committed is not in the release", flush=True)
    epoch = int(output("git", "log", "-1", "--format=%ct", cwd=ROOT))
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch)
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    left = []
    with tempfile.TemporaryDirectory() as directory:
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(directory, filter="data")
        release = Release(Path(directory), dist, epoch, given.registry.rstrip("/"), given.source)
        release.check(given.tag)
        parts = (release.notes, release.package, release.bills_of_materials, release.packaged_chart)
        for part in (*parts, release.install_manifest, release.images, release.checksums):
            name = part.__name__.replace("_", " ")
            print(f"== {name}", flush=True)
            try:
                part()
            except Left as why:
                left.append(f"left out: {name}: {why}")
    made = sorted(path.name for path in dist.iterdir())
    print("\n".join([f"dist/ has Rocketfleet {release.version}:", *made, *left]))
    if left and given.complete:
        sys.exit("the release is not complete")


if __name__ == "__main__":
    main()
