"""The previous version, rebuilt from the repository's history: its chart and its own images."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from trainyard.chart.helm import NAME
from trainyard.errors import TrainyardError
from trainyard.paths import ROOT, cache_dir
from trainyard.shell import run
from trainyard_dev.engine import Engine
from trainyard_dev.images import registry
from trainyard_dev.images.base import of_suite
from trainyard_dev.versions import load

RENDER = """
import sys
from pathlib import Path
from trainyard_dev.chart import package
Path(sys.argv[1]).write_text(package.template(sys.argv[2], values=[Path(sys.argv[3])]))
"""
RENDER_S = 900
# Builds the images that its chart names, from its own tree, except references that the cluster's registry has.
BUILD = """
import json, sys
from pathlib import Path
from trainyard_dev import engine as engines
from trainyard_dev.images.build import build
from trainyard_dev.versions import load
engine, base, rendered, left = engines.find(sys.argv[1]), sys.argv[2], Path(sys.argv[3]).read_text(), sys.argv[4:]
due = [image for image in load().images.values()
       if image.ref in rendered and image.ref not in left
       and ("/trainer-" not in image.ref or "/trainer-torch:" in image.ref)]  # the others' jobs don't run here
print(json.dumps({image.ref: build(engine, image, base) for image in due}))
"""
# Only an MPIJob's launcher pulls it, and its kubectl would require compiling a whole Kubernetes.
LEFT = "docker.io/trainyard/kubectl-delivery"
BUILD_S = 1800
TEAMS = Path("manifests/cluster/teams.yaml")  # in each tree, the two teams of a run


def version() -> str:
    """Number of the previous version, such as 0.1.0."""
    return str(load().raw["previous"]["version"])


def commit() -> str:
    """The commit from which it was released."""
    return str(load().raw["previous"]["commit"])


def missing(root: Path = ROOT) -> str:
    """The reason why it can't be built here, or ""."""
    try:
        known = run(["git", "-C", root, "cat-file", "-e", f"{commit()}^{{commit}}"], check=False)
    except TrainyardError as error:
        return error.what
    if known.returncode:
        return f"version {version()} is commit {commit()[:7]}, which this clone lacks (git fetch --unshallow)"
    return ""


def tree() -> Path:
    """Its source tree in the cache, checked out on the first call. Raises TrainyardError."""
    if reason := missing():
        raise TrainyardError(reason)
    folder = cache_dir() / "previous" / commit()[:12]
    if not folder.exists():
        aside = folder.with_name(f"{folder.name}.{os.getpid()}")
        aside.mkdir(parents=True)
        with subprocess.Popen(["git", "-C", ROOT, "archive", commit()], stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", aside], stdin=archive.stdout, check=True)
        aside.rename(folder)
    return folder


def package() -> Path:
    """Its chart, packaged by its own packager; the file is in the cache."""
    folder = tree()
    file = folder / "out" / "charts" / f"{NAME}-{version()}.tgz"
    if not file.exists():
        run([folder / "bin" / "trainyard", "chart", "package"], timeout=600)
    return file


def job(name: str) -> dict[str, Any]:
    """One of its example jobs, such as pytorchjob, for team vision."""
    found: dict[str, Any] = yaml.safe_load((tree() / "manifests" / "jobs" / f"{name}.yaml").read_text())
    return found


def rendered() -> str:
    """Its own packager's rendering of its profile kind and the two teams of its own run; stored in its tree.

    Raises:
        TrainyardError: the clone lacks the commit, or its packager fails.
    """
    folder = tree()
    file = folder / "out" / "rendered.yaml"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        # Without KUBECONFIG, helm would look things up in the caller's cluster.
        env = {"PYTHONPATH": str(folder / "scripts"), "KUBECONFIG": "/dev/null"}
        run([sys.executable, "-c", RENDER, part, "kind", folder / TEAMS], env=env, timeout=RENDER_S)
        part.rename(file)
    return file.read_text()


def suite() -> str:
    """The suite of Debian that its images use."""
    pulled: str = yaml.safe_load((tree() / "versions.yaml").read_text())["pull"]["base-image"]
    return pulled.rpartition(":")[2].partition("-")[0]


def push_images(engine: Engine, base: str, address: str) -> list[str]:
    """Build images of its chart that this version's registry lacks, from its own tree, and push them by its own tags.

    Args:
        base: the base of this version's images; those of the previous one get the same of their own suite.

    Returns:
        the pushed images; those that the registry has from an earlier call are left out.
    """
    base = of_suite(base, suite())
    record = registry.storage() / "previous.json"
    held = json.loads(record.read_text()) if record.exists() else {}
    # By digest: the previous version's own tree pushes under the same tags when it is run.
    same = held.get("base") == base and held.get("commit") == commit()
    if same and all(registry.digest(ref) == digest for ref, digest in held["digests"].items()):
        return []
    left = [*(image.ref for image in load().images.values()), f"{LEFT}:{version()}"]
    env = {**engine.env, "PYTHONPATH": str(tree() / "scripts")}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(rendered())
        file.flush()
        built = run([sys.executable, "-c", BUILD, engine.name, base, file.name, *left], env=env, timeout=BUILD_S)
    images: dict[str, str] = json.loads(built.stdout.splitlines()[-1])
    for ref, local in images.items():
        path, tag = registry.repository(ref)
        registry.push_as(engine, local, f"{address}/{path}:{tag}")
    digests = {ref: registry.digest(ref) for ref in images}
    record.write_text(json.dumps({"commit": commit(), "base": base, "digests": digests}))
    return sorted(images)
