"""Makes the kit: the files of our node image, all images of an installation, and what the machine's script needs."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import yaml
from packaging.requirements import Requirement

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT, cache_dir
from trainyard_dev import tools
from trainyard_dev.chart import package
from trainyard_dev.cluster import config, nodes
from trainyard_dev.engine import Engine
from trainyard_dev.gpu import mock
from trainyard_dev.images.build import build as build_image
from trainyard_dev.images.source import choose
from trainyard_dev.progress import Progress
from trainyard_dev.release import python
from trainyard_dev.versions import load

PART = 45 * 1024**2  # bytes; with the tree beside it, a part fits into a transfer of 64 MiB
LIST = "kit.json"
MACHINE = Path(__file__).parent / "machine"
# What `trainyard train` and `trainyard gpus` import; the SDK of pipelines stays here.
NEEDED = ("click", "google-re2", "jsonschema", "kubernetes", "minio", "packaging", "pathspec", "PyYAML")
PROGRAMS = ("helm", "nvidia-cdi-hook", "nvidia-ctk")


def build(engine: Engine, folder: Path, level: int) -> dict[str, Any]:
    """Builds all parts into the folder and returns their list; `level` of xz, 0 to 9.

    Raises:
        TrainyardError: an image cannot be built.
    """
    base, progress = choose("build").base(engine), Progress(3, f"Kit in {folder}")
    # PyTorch is the machine's own.
    images = [one for one in load().images.values() if one.stage in ("cluster", "install") and not one.local]
    kit: dict[str, Any] = {"version": load().raw["trainyard"], "devices": mock.device_commands(1), "archives": {}}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def archive(name: str, *command: str | Path) -> None:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as made:
            words = ["xz", "-T0", f"-{level}", "-c"]
            with subprocess.Popen(words, stdin=made.stdout, stdout=subprocess.PIPE) as xz:
                assert xz.stdout
                kit["archives"][name] = split(xz.stdout, folder, f"{name}.tar.xz")
        if made.returncode or xz.returncode:
            raise TrainyardError(f"the archive {name} is incomplete", where=str(folder), hint="check the disk's room")

    with tempfile.TemporaryDirectory(dir=cache_dir()) as room:
        with progress.step("node"):
            container = engine("create", build_image(engine, load().images["node"], base)).stdout.strip()
            archive("node", engine.name, "export", container)
            engine("rm", container)
        with progress.step("programs, chart, Python"):
            _gather(engine, base, Path(room) / "files")
            archive("files", "tar", "-C", Path(room) / "files", "-c", ".")
        with progress.step(f"{len(images)} images"):
            refs = {ref: build_image(engine, one, base) for one in images for ref in (one.ref, *one.also)}
            for ref, local in refs.items():
                engine("tag", local, ref)
            many = ["-m"] if engine.name == "podman" else []
            engine("save", *many, "-o", Path(room) / "images.tar", *refs)  # each layer once, uncompressed
            archive("images", "tar", "-C", room, "-c", "images.tar")
    shutil.copytree(MACHINE, folder / "machine", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / LIST).write_text(json.dumps(kit, indent=1))
    return kit


def split(stream: IO[bytes], folder: Path, name: str, size: int = PART) -> list[str]:
    """Writes a stream to files NAME.00, NAME.01, … of at most `size` bytes; returns their names."""
    found: list[str] = []
    while block := stream.read(size):
        found.append(f"{name}.{len(found):02}")
        (folder / found[-1]).write_bytes(block)
    return found


def _gather(engine: Engine, base: str, room: Path) -> None:
    """Lays out, below the node's root, programs, chart, values, an example, our Python and the mock driver."""
    own = room / "opt/trainyard"
    for folder in ("kit", "bin", "site"):
        (own / folder).mkdir(parents=True)
    for name in PROGRAMS:
        shutil.copy2(tools.binary(name), own / "bin" / name)
    (own / "kit/kubeadm.yaml").write_text(kubeadm())
    shutil.copy(package.package(), own / "kit/trainyard.tgz")
    named = ("charts/trainyard/profiles/kind.yaml", "images/node/manifests/default-storage.yaml")
    for file in (*(ROOT / one for one in named), config.MANIFESTS / "kind-agent.yaml", *MACHINE.glob("*.yaml")):
        shutil.copy(file, own / "kit")
    shutil.copytree(ROOT / "examples/ddp", own / "kit/ddp")
    shutil.copytree(nodes.userspace_nfs(engine, base).host, own / "mount-nfs")
    mock.prepare_node(own / "mock-gpu", "kit", mock.MockGpuSpec(count=1))
    pins = [f"{name}=={metadata.version(name)}" for name in _closure(NEEDED)]
    python.pip("install", "--no-deps", "--no-compile", "--target", own / "site", python.wheel(room.parent), *pins)


def _closure(names: Sequence[str]) -> set[str]:
    """These distributions and all that they require on this Python."""
    found, left = set(), list(names)
    while left:
        if (name := left.pop().lower()) not in found:
            found.add(name)
            required = map(Requirement, metadata.requires(name) or ())
            left += [one.name for one in required if not one.marker or one.marker.evaluate({"extra": ""})]
    return found


def kubeadm() -> str:
    """The configuration of a cluster of one node: what kind's nodes have, without systemd's control groups."""
    pins, given = load().tools, config.template()
    patches = {one["kind"]: one for one in map(yaml.safe_load, given["kubeadmConfigPatches"])}
    alone = {"extraArgs": [{"name": "leader-elect", "value": "false"}]}
    etcd = {"imageTag": f"{pins['etcd'].number}-0", "extraArgs": [{"name": "unsafe-no-fsync", "value": "true"}]}
    labels = "trainyard.io/pool=gpu,trainyard.io/any=yes"  # the two pools of one-node.yaml
    api = "kubeadm.k8s.io/v1beta4"
    return yaml.safe_dump_all([
        {"apiVersion": api, "kind": "ClusterConfiguration", "kubernetesVersion": f"v{load().kubernetes}",
         "controllerManager": alone, "scheduler": alone, "etcd": {"local": etcd},
         "dns": {"imageTag": pins["coredns"].version},
         "networking": {key: given["networking"][key] for key in ("podSubnet", "serviceSubnet")}},
        {"apiVersion": api, "kind": "InitConfiguration", "localAPIEndpoint": {"advertiseAddress": "10.0.0.2"},
         "nodeRegistration": {"name": "kit", "taints": [], "criSocket": "unix:///run/containerd/containerd.sock",
                              "kubeletExtraArgs": [{"name": "node-labels", "value": labels}]}},
        {"apiVersion": "kubelet.config.k8s.io/v1beta1", **patches["KubeletConfiguration"], "cgroupDriver": "cgroupfs",
         "failSwapOn": False, "imageGCHighThresholdPercent": 100, "evictionHard": {"nodefs.available": "0%"}},
        {"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", **patches["KubeProxyConfiguration"]},
    ])  # fmt: skip
