"""The node: parts become its files, one process becomes its init, and kubeadm makes it a cluster."""

import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machine.record import RefusedError, Step

HERE = Path(__file__).parent
OWN = "/opt/trainyard"
PATH = f"{OWN}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DRIVER = f"{OWN}/driver"  # of the values; chart and plugin look below it for usr/lib/x86_64-linux-gnu and usr/bin


@dataclass(frozen=True)
class Kit:
    """A kit on a machine: its folder, and whether the GPU is the mock one."""

    root: Path
    mock: bool = False

    @property
    def files(self) -> Path:
        """The node's root, as this machine sees it."""
        return self.root / "node"

    def list(self) -> dict[str, Any]:
        """Version, device files of a mock GPU, and the parts of each archive."""
        return json.loads((HERE.parent / "kit.json").read_text())

    def inside(self, *argv: str, timeout: float = 120, input: str = "", check: bool = True, **env: str) -> str:
        """What a program prints that runs in the node. Raises RuntimeError with the end of its messages."""
        known = {"PATH": PATH, "KUBECONFIG": "/etc/kubernetes/admin.conf", "HOME": "/root", "PYTHONPATH": f"{OWN}/site"}
        words = ["nsenter", "-t", str(self.init()), "-m", "-u", "-i", "-n", "-p", "-r", "-w", "env", "-i"]
        words += [*(f"{key}={value}" for key, value in (known | env).items()), *argv]
        done = subprocess.run(words, input=input, capture_output=True, text=True, timeout=timeout, check=False)
        if check and done.returncode:
            raise RuntimeError(f"`{' '.join(argv)[:80]}` failed: {(done.stderr or done.stdout).strip()[-700:]}")
        return done.stdout.strip()

    def kubectl(self, *argv: str, **more: Any) -> str:
        """kubectl as the cluster's administrator."""
        return self.inside("kubectl", *argv, **more)

    def init(self) -> int:
        """The node's first process; 0 if it does not run."""
        file = self.root / "pid"
        pid = file.read_text().strip() if file.exists() else "0"
        return int(pid) if Path(f"/proc/{pid}/root{OWN}").exists() else 0

    def wait(self, what: str, seconds: float, *argv: str, until: str = ".") -> str:
        """The first answer in the node that the pattern `until` matches. Raises RuntimeError after so many seconds."""
        end = time.monotonic() + seconds
        while not re.search(until, said := self.inside(*argv, check=False), re.M):
            if time.monotonic() > end:
                raise RuntimeError(f"no {what} within {seconds:.0f} s; the last answer: {said}")
            time.sleep(1)
        return said


def device(kit: Kit, dev: Path = Path("/dev")) -> str:
    """Names the machine's GPU; makes the device files of a mock one. Raises RefusedError if the machine shows none."""
    if kit.mock:
        for argv in kit.list()["devices"]:
            subprocess.run(argv, check=True)
        return "mock"
    lacking = [] if list(dev.glob("nvidia[0-9]*")) else [f"{dev}/nvidia0"]
    if lacking := lacking + ([] if smi() else ["nvidia-smi"]):
        raise RefusedError(
            f"this machine shows no NVIDIA GPU: {' and '.join(lacking)} missing; --mock rehearses without"
        )
    return subprocess.run([smi(), "-L"], capture_output=True, text=True, check=True).stdout.strip()


def smi() -> str:
    """Path of the driver's program, "" if there is none."""
    return shutil.which("nvidia-smi", path=f"{os.environ['PATH']}:/usr/local/nvidia/bin") or ""


def unpack(kit: Kit) -> str:
    """Parts to files. Raises RuntimeError naming the parts that are missing."""
    archives = kit.list()["archives"].values()
    if left := [name for archive in archives for name in archive if not (kit.root / name).exists()]:
        raise RuntimeError(f"missing in {kit.root}: {', '.join(left)}")
    kit.files.mkdir(exist_ok=True)
    if "overlayfs" in subprocess.run(["stat", "-f", "-c", "%T", kit.files], capture_output=True, text=True).stdout:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", kit.files], check=True)  # containers' overlays need another
    script = 'cat "$@" | xz -dc | tar -x -C "$0"'
    words = ["bash", "-o", "pipefail", "-c", script, str(kit.files)]
    running = [subprocess.Popen([*words, *archive], cwd=kit.root) for archive in archives]
    if sum(one.wait() for one in running):
        raise RuntimeError("an archive cannot be unpacked")
    return f"{sum(map(len, archives))} parts"


def start(kit: Kit) -> str:
    """Starts the node unless it runs, and shows it the driver's folders; it outlives this call."""
    if kit.init():
        return "it runs"
    delegate(Path("/sys/fs/cgroup"))
    for name in ("nfs", "nfs4"):
        wrapper, own = kit.files / f"usr/sbin/mount.{name}", f"{OWN}/mount-nfs"
        wrapper.unlink(missing_ok=True)
        wrapper.write_text(f'#!/bin/sh\nexec env LD_LIBRARY_PATH={own}/lib {own}/sbin/mount.nfs "$@"\n')
        wrapper.chmod(0o755)
    words = ["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--net", "sh"]
    words += [str(HERE / "node.sh"), str(kit.files)]
    with (kit.root / "node.log").open("a") as log:
        subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    kit.wait("containerd", 60, "ctr", "version", until="Server")
    seen = {f"{OWN}/mock-gpu": DRIVER}
    if not kit.mock:
        cache = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
        [library, *_] = re.findall(r"libnvidia-ml\.so\.1 \(.*x86-64.*=> (\S+)/", cache)
        seen = {f"/machine{library}": f"{DRIVER}/usr/lib/x86_64-linux-gnu",
                f"/machine{Path(smi()).parent}": f"{DRIVER}/usr/bin"}  # fmt: skip
    for source, target in seen.items():
        kit.inside("mkdir", "-p", target)
        kit.inside("mount", "--bind", source, target)
    return kit.inside("containerd", "--version")


def delegate(groups: Path) -> None:
    """Lets child groups have all controllers with control groups of version 2; version 1 needs nothing."""
    if not (groups / "cgroup.controllers").exists():
        return
    words = [("cgroup.subtree_control", f"+{name}") for name in (groups / "cgroup.controllers").read_text().split()]
    if (groups / "cgroup.type").exists():  # not the machine's own root group: its processes must move to a leaf
        (groups / "init").mkdir(exist_ok=True)
        words = [("init/cgroup.procs", pid) for pid in (groups / "cgroup.procs").read_text().split()] + words
    for file, word in words:
        try:
            (groups / file).write_text(word)
        except OSError as error:  # the process has ended, or the machine lacks the controller
            print(f"{file}: {word}: {error}", flush=True)


def load(kit: Kit) -> str:
    """Gives containerd all images that travelled."""
    kit.inside("ctr", "-n", "k8s.io", "images", "import", "/images.tar", timeout=190)
    named = kit.inside("ctr", "-n", "k8s.io", "images", "ls", "-q").splitlines()
    return f"{sum('sha256:' not in name for name in named)} names"


def cluster(kit: Kit) -> str:
    """kubeadm, pod network and local volumes; the node is Ready afterwards."""
    kit.inside("kubeadm", "init", "--config", f"{OWN}/kit/kubeadm.yaml", "--skip-phases=preflight", timeout=190)
    files = [word for name in ("kind-agent", "default-storage") for word in ("-f", f"{OWN}/kit/{name}.yaml")]
    kit.kubectl("apply", "--server-side", "--force-conflicts", *files)
    kit.kubectl("wait", "--for=condition=Ready", "node/kit", "--timeout=120s", timeout=130)
    return kit.kubectl("get", "nodes", "--no-headers")


def chart(kit: Kit) -> str:
    """Our chart, with the profile of test clusters and the values of one node."""
    words = ["upgrade", "--install", "trainyard", f"{OWN}/kit/trainyard.tgz", "-n", "trainyard-system"]
    words += [word for name in ("kind", "one-node") for word in ("-f", f"{OWN}/kit/{name}.yaml")]
    kit.inside("helm", *words, "--create-namespace", "--wait", "--timeout", "3m", timeout=190)
    return kit.inside("helm", "list", "-A", "--no-headers")


STEPS: list[Step] = [
    ("device", device), ("unpack", unpack), ("node", start), ("images", load), ("cluster", cluster), ("chart", chart),
]  # fmt: skip
