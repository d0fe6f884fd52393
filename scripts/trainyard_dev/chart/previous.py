"""The version before this one, made again out of the repository's history: its chart and its own images."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml

from trainyard.chart.helm import NAME
from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev.chart import history
from trainyard_dev.engine import Engine
from trainyard_dev.images import registry
from trainyard_dev.versions import load

# Trainers and bases are left out: a job of the previous version may use this version's trainer.
IMAGES = ("platform", "minio", "nfs-server", "nfs-provisioner", "kubectl-delivery")
BUILD = """
import json, sys
from trainyard import engine as engines
from trainyard.images.build import build
from trainyard.versions import load
engine, base, names = engines.find(sys.argv[1]), sys.argv[2], sys.argv[3:]
print(json.dumps({load().image(name): build(engine, load().images[name], base) for name in names}))
"""


def version() -> str:
    """Number of the previous version, such as 0.1.0."""
    return str(load().raw["previous"]["version"])


def commit() -> str:
    """The commit that it was released from."""
    return str(load().raw["previous"]["commit"])


def missing(root: Path = ROOT) -> str:
    """Why it can't be made here, or ""."""
    return history.missing(version(), commit(), root)


def tree() -> Path:
    """Its source tree in the cache, laid out on the first call. Raises TrainyardError."""
    return history.tree(version(), commit())


def package() -> Path:
    """Its chart, packaged by its own packager; the file lies in the cache."""
    folder = tree()
    file = folder / "out" / "charts" / f"{NAME}-{version()}.tgz"
    if not file.exists():
        run([folder / "bin" / "trainyard", "chart", "package"], timeout=600)
    return file


def profile(name: str) -> Path:
    """Values file of one of its profiles."""
    return tree() / "charts" / NAME / "profiles" / f"{name}.yaml"


def job(name: str) -> dict:
    """One of its example jobs, such as pytorchjob."""
    return yaml.safe_load((tree() / "manifests" / "jobs" / f"{name}.yaml").read_text())


def push_images(engine: Engine, base: str, address: str) -> list[str]:
    """Build its own images, from its own tree, and push them to the cluster's registry under their own tags.

    Returns:
        what was pushed; images that the registry holds from an earlier call are left out.
    """
    record = registry.storage() / "previous.json"
    held = json.loads(record.read_text()) if record.exists() else {}
    if held.get(commit()) == base:
        return []
    env = {**engine.env, "PYTHONPATH": str(tree() / "scripts")}
    built = run([sys.executable, "-c", BUILD, engine.name, base, *IMAGES], env=env, timeout=1800)
    images: dict[str, str] = json.loads(built.stdout.splitlines()[-1])
    for ref, local in images.items():
        path, tag = registry.repository(ref)
        registry.push_as(engine, local, f"{address}/{path}:{tag}")
    record.write_text(json.dumps({commit(): base}))
    return sorted(images)
