"""Detection of this machine's GPUs, and the choice between them and mock ones."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from trainyard import shell
from trainyard.errors import TrainyardError, UsageError

KINDS = ("auto", "mock", "real")
_PROC = Path("/proc/driver/nvidia")


@dataclass(frozen=True)
class RealGpus:
    """The NVIDIA GPUs of this machine.

    Attributes:
        memory_mib: memory of the smallest GPU in MiB; None where the driver's tool is missing.
        source: what reported it: `nvidia-smi` or the driver's folder under /proc.
    """

    count: int
    model: str
    memory_mib: int | None
    driver: str
    uuids: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class GpuChoice:
    """The GPUs that a run uses: `kind` is `mock` or `real`; `reason` explains it in the console and the report."""

    kind: str
    reason: str
    real: RealGpus | None = None

    @property
    def uuids(self) -> tuple[str, ...]:
        """The UUIDs of the real GPUs, none for mock ones."""
        return self.real.uuids if self.real else ()


def find_real(proc: Path = _PROC) -> RealGpus | None:
    """The GPUs that a working driver shows, or None. A driver without a GPU, or a broken one, counts as none."""
    return _from_smi() or _from_proc(proc)


def choose(
    kind: str,
    *,
    real: RealGpus | None = None,
    look: bool = True,
) -> GpuChoice:
    """Decides between the machine's own GPUs and mock ones; a cluster never has both.

    Args:
        kind: `real` uses the machine's own; `mock` does not, nor does `auto`: real ones have not run a cluster yet.
        real, look: with `look=False`, `real` is taken as what the machine has; for tests and repeated calls.

    Raises:
        UsageError: an unknown kind.
        TrainyardError: `real` without a GPU.
    """
    if kind not in KINDS:
        raise UsageError(f"GPU must be one of {', '.join(KINDS)}, not {kind!r}", hint="set GPU=auto")
    found = find_real() if look else real
    if found is None:
        if kind == "real":
            raise TrainyardError(
                "GPU=real is set, but this machine has no NVIDIA GPU",
                hint="install the driver until `nvidia-smi` lists the GPUs, or run with GPU=mock",
            )
        return GpuChoice("mock", "no GPU found" if kind == "auto" else "GPU=mock is set")
    shown = f"{found.count} x {found.model}, driver {found.driver}, reported by {found.source}"
    if kind != "real":
        why = "GPU=mock is set" if kind == "mock" else "GPU=real is not set"
        return GpuChoice("mock", f"{why}; this machine's GPUs stay unused ({shown})")
    return GpuChoice("real", shown, found)


def _from_smi() -> RealGpus | None:
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version,uuid", "--format=csv,noheader,nounits"]
    try:
        done = shell.run(query, timeout=30, check=False)
    except TrainyardError:  # it hangs: the driver is broken
        return None
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]
    rows = [row for row in rows if len(row) == 4 and row[3].startswith("GPU-")]
    if done.returncode or not rows:
        return None
    memory = [int(row[1]) for row in rows if row[1].isdigit()]
    return RealGpus(
        len(rows), rows[0][0], min(memory) if memory else None, rows[0][2], tuple(row[3] for row in rows), "nvidia-smi"
    )


def _from_proc(proc: Path) -> RealGpus | None:
    texts = [path.read_text(errors="replace") for path in sorted(proc.glob("gpus/*/information"))]
    if not texts:
        return None
    models = [match.group(1) for text in texts if (match := re.search(r"^Model:\s*(.+?)\s*$", text, re.M))]
    uuids = [match.group(1) for text in texts if (match := re.search(r"^GPU UUID:\s*(GPU-\S+)", text, re.M))]
    try:
        version = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", (proc / "version").read_text(errors="replace"))
    except OSError:
        version = None
    model = models[0] if models else "unknown model"
    return RealGpus(len(texts), model, None, version.group(1) if version else "unknown", tuple(uuids), str(proc))
