"""The machine's own Python and PyTorch in pods: mounted by CDI wherever a GPU is, never copied."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

SPEC = "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json"  # the device plugin writes it
LIBC = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util))\.so.*")  # every image brings its own


def site(given: Path = Path("/opt/torch")) -> Path:
    """The folder that holds the package torch. Raises RuntimeError if there is none."""
    for found in sorted(given.glob("**/torch/version.py")):
        return found.parents[1]
    raise RuntimeError(f"this machine has no PyTorch below {given}")


def mounts(packages: Path) -> dict[str, Path]:
    """Places in a pod and what the machine has there: Python, its packages, and the shared libraries that they load."""
    python, library = Path(sys.executable).resolve(), Path(os.__file__).parent
    pairs = {f"/usr/local/bin/{name}": python for name in ("python", "python3")}
    pairs |= {str(library): library, f"/usr/local/lib/{library.name}/dist-packages": packages}
    patterns = ("torch/*.so", "torch/lib/*.so*", "numpy/**/*.so")
    loaded = [python, *library.glob("lib-dynload/*.so"), *(file for one in patterns for file in packages.glob(one))]
    return pairs | {str(path): path for path in needed(loaded) if packages not in path.parents}


def needed(files: Iterable[Path]) -> list[Path]:
    """Shared libraries that these files load, except those of the C library."""
    said = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False).stdout
    found = {Path(path) for path in re.findall(r"=> (/\S+)", said)}
    return sorted(path for path in found if not LIBC.fullmatch(path.name))


def into(spec: str, pairs: dict[str, Path]) -> str:
    """A CDI specification with these mounts for each of its devices; the node sees the machine below /machine."""
    found = json.loads(spec)
    edits = found.setdefault("containerEdits", {})
    edits.setdefault("mounts", []).extend(
        {"hostPath": f"/machine{source.resolve()}", "containerPath": target, "options": ["ro", "rbind"]}
        for target, source in pairs.items()
    )
    edits.setdefault("env", []).append(f"PYTHONHOME={sys.base_prefix}")
    return json.dumps(found)
