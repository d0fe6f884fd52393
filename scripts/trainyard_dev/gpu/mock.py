"""Mock GPUs of a node: their spec, the library, the folder that serves as driver root, faults, and device files.

`images/mock-nvml/README.md` describes `gpu.conf` and the protocol of the fault file. The mock proves allocation,
scheduling and recovery; it computes nothing.
"""

import hashlib
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from trainyard import shell
from trainyard.errors import TrainyardError, UsageError
from trainyard.paths import ROOT, cache_dir

SOURCES = ROOT / "images" / "mock-nvml"
LIBRARY = "libnvidia-ml.so.1"
LIBRARY_FOLDER = Path("usr/lib/x86_64-linux-gnu")
CONF = Path("etc/gpu.conf")
FAULT = Path("etc/fault")
LOAD = Path("etc/load")
NODE_ROOT = "/opt/trainyard/mock-gpu"
"""Path of the driver root on a node."""
MAX_GPUS = 16
DEVICE_MAJOR = 195
CONTROL_MINOR = 255

_NO_COMPILER = "install a C compiler: `apt-get install gcc make libc6-dev`"


@dataclass(frozen=True)
class MockGpuSpec:
    """The GPUs of one node; all are alike. The library that reads the spec refuses other impossible values.

    Attributes:
        count: 1 to 16.
        memory_mib: memory of each GPU in MiB.
        driver, cuda: versions that the driver reports.
        compute: CUDA compute capability, such as `8.0`.
        pci_device_id: device id in the upper 16 bits, vendor 10de in the lower.
        nvlinks: `(gpu, gpu, links)`. None: GPUs 0-1, 2-3, … share four links each.
        pairs: `(gpu, gpu, level)`, such as `single`. None: linked pairs are behind one PCIe switch.
        default_pair: level of all other pairs.

    Raises:
        UsageError: for an impossible count.
    """

    model: str = "NVIDIA A100-SXM4-40GB"
    count: int = 4
    memory_mib: int = 40960
    driver: str = "550.163.01"
    cuda: str = "12.4"
    compute: str = "8.0"
    pci_device_id: int = 0x20B010DE
    nvlinks: tuple[tuple[int, int, int], ...] | None = None
    pairs: tuple[tuple[int, int, str], ...] | None = None
    default_pair: str = "node"

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MAX_GPUS:
            what = f"number of mock GPUs must be from 1 to {MAX_GPUS}, not {self.count!r}"
            raise UsageError(what, hint="change count")

    def conf(self, node: str) -> str:
        """The text of `gpu.conf` for one node."""
        links = self.nvlinks
        if links is None:
            links = tuple((gpu, gpu + 1, 4) for gpu in range(0, self.count - 1, 2))
        pairs = self.pairs if self.pairs is not None else tuple((a, b, "single") for a, b, _ in links)
        lines = [
            f"model = {self.model}", f"count = {self.count}", f"memory_mib = {self.memory_mib}", f"node = {node}",
            f"driver = {self.driver}", f"cuda = {self.cuda}", f"compute = {self.compute}",
            f"pci_device_id = {self.pci_device_id:#010x}", f"default_pair = {self.default_pair}",
        ]  # fmt: skip
        lines += [f"nvlink = {a}-{b}:{number}" for a, b, number in links]
        lines += [f"pair = {a}-{b} {level}" for a, b, level in pairs]
        return "\n".join(lines) + "\n"


def build_library(dest: Path) -> Path:
    """Compiles the library into the file `dest` and returns it.

    The file appears complete or not at all.

    Raises:
        TrainyardError: gcc or make is missing, or the sources do not compile.
    """
    for tool in ("gcc", "make"):
        if shutil.which(tool) is None:
            raise TrainyardError(f"{tool} is required to build the mock GPU library, but is missing", hint=_NO_COMPILER)
    dest = dest.absolute()
    dest.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=dest.parent, prefix=".mock-nvml-") as folder:
        built = Path(folder) / LIBRARY
        shell.run(["make", "-s", "-C", SOURCES, f"OUT={built}"], timeout=300, hint=_NO_COMPILER)
        built.chmod(0o644)
        built.replace(dest)
    return dest


def cached_library() -> Path:
    """Returns the library from the cache, built once for every state of its sources."""
    digest = hashlib.sha256()
    for source in sorted(SOURCES.glob("*")):
        if source.suffix in (".c", ".h") or source.name == "Makefile":
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
    library = cache_dir() / "mock-nvml" / digest.hexdigest()[:16] / LIBRARY
    return library if library.is_file() else build_library(library)


def prepare_node(folder: Path, node: str, spec: MockGpuSpec, *, library: Path | None = None) -> Path:
    """Lays out the driver root of one node in `folder`, without faults, readable for every user; returns `folder`.

    Args:
        folder: is created or updated; mount it at `NODE_ROOT` of the node, as a folder.
        node: name of the node; the UUIDs of its GPUs follow from it.
        library: an already built library; otherwise the cached one.
    """
    conf = spec.conf(node)
    library = library or cached_library()
    for part in (folder, folder / LIBRARY_FOLDER, folder / CONF.parent):
        part.mkdir(parents=True, exist_ok=True)
    for part in (folder, folder / "usr", folder / "usr/lib", folder / LIBRARY_FOLDER, folder / CONF.parent):
        part.chmod(0o755)
    versioned = f"libnvidia-ml.so.{spec.driver}"  # the driver's own layout, by which nvidia-ctk finds its libraries
    _write(folder / LIBRARY_FOLDER / versioned, library.read_bytes())
    for name, target in ((LIBRARY, versioned), ("libnvidia-ml.so", LIBRARY)):
        link = folder / LIBRARY_FOLDER / name
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    _write(folder / CONF, conf.encode())
    _write(folder / FAULT, b"")
    return folder


def inject_xid(folder: Path, gpu: int, code: int) -> None:
    """Makes GPU `gpu` of the node in `folder` report the Xid error `code` once to every listener."""
    if code < 1:
        raise UsageError(f"invalid Xid code: {code}; must be a positive number")
    _append(folder, f"xid {_checked(gpu)} {code} id={time.time_ns()}")


def lose(folder: Path, gpu: int) -> None:
    """Makes GPU `gpu` of the node in `folder` fall off the bus, until `heal`."""
    _append(folder, f"lost {_checked(gpu)}")


def work(folder: Path, gpu: int, busy: int, memory_mib: int) -> None:
    """Makes GPU `gpu` of the node in `folder` look busy by `busy` percent, with that much of its memory taken."""
    if not 0 <= busy <= 100 or memory_mib < 0:
        raise UsageError(f"a GPU is busy by 0 to 100 percent and holds memory, not {busy} and {memory_mib} MiB")
    _existing(folder)
    path = folder / LOAD
    kept = path.read_text().splitlines() if path.exists() else []
    kept = [line for line in kept if line.split()[1:2] != [str(_checked(gpu))]]
    _write(path, "".join(f"{line}\n" for line in [*kept, f"load {gpu} {busy} {memory_mib}"]).encode())


def heal(folder: Path, gpu: int | None = None) -> None:
    """Removes the faults of one GPU, or of all. A device plugin keeps a GPU unhealthy until its pod is restarted."""
    fault = _existing(folder)
    kept = [line for line in fault.read_text().splitlines() if gpu is not None and line.split()[1:2] != [str(gpu)]]
    _write(fault, "".join(f"{line}\n" for line in kept).encode())


def device_commands(count: int) -> list[list[str]]:
    """The commands that make the device files of `count` GPUs on a node, to be run there as root; repeatable.

    A file of the same name that is not a character device is replaced.
    """
    if not 1 <= count <= MAX_GPUS:
        raise UsageError(f"number of mock GPUs must be from 1 to {MAX_GPUS}, not {count}", hint="change count")
    minors = {f"/dev/nvidia{gpu}": gpu for gpu in range(count)} | {"/dev/nvidiactl": CONTROL_MINOR}
    return [["sh", "-c", _device_script(path, minor)] for path, minor in minors.items()]


def _device_script(path: str, minor: int) -> str:
    make = f"rm -f {path} && mknod {path} c {DEVICE_MAJOR} {minor}"
    return f"if [ ! -c {path} ]; then {make}; fi && chmod 0666 {path}"


def _checked(gpu: int) -> int:
    if not 0 <= gpu < MAX_GPUS:
        raise UsageError(f"no mock GPU {gpu}", hint=f"use a number from 0 to {MAX_GPUS - 1}")
    return gpu


def _existing(folder: Path) -> Path:
    fault = folder / FAULT
    if not fault.is_file():
        raise TrainyardError("not a driver root of mock GPUs", where=str(folder), hint="prepare the node first")
    return fault


def _append(folder: Path, line: str) -> None:
    with _existing(folder).open("a") as file:
        file.write(line + "\n")


def _write(path: Path, content: bytes) -> None:
    """Replaces a file in one step, so that no reader sees half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.chmod(0o644)
    temporary.replace(path)
