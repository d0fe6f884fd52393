"""The report of a rank: `rank-<role>-<n>.json` from each one, `metrics.json` from the chief."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mnist.store import Store

STARTED = time.monotonic()
SCHEMA = "trainyard.io/training-result/v1"
GPU_NODE = re.compile(r"^nvidia[0-9]+$")


def visible_devices(env: Mapping[str, str]) -> list[str]:
    """Entries of NVIDIA_VISIBLE_DEVICES, [] when unset, empty, `void` or `none`."""
    text = env.get("NVIDIA_VISIBLE_DEVICES", "").strip()
    return [] if text in ("", "void", "none") else [entry.strip() for entry in text.split(",") if entry.strip()]


def device_nodes(folder: Path = Path("/dev")) -> list[str]:
    """GPU device nodes in this pod (/dev/nvidia0, …), in numeric order; control nodes are left out."""
    try:
        names = [entry.name for entry in folder.iterdir() if GPU_NODE.match(entry.name)]
    except OSError:
        return []
    return [str(folder / name) for name in sorted(names, key=lambda name: int(name[len("nvidia") :]))]


@dataclass
class Result:
    """Everything that one rank reports at its end; times are seconds, `seconds` counts from process start."""

    framework: str
    backend: str
    role: str
    index: int
    rank: int
    world_size: int
    device: str
    data_uri: str
    samples: int = 0
    epochs: int = 0
    accuracy: float | None = None
    loss: float | None = None
    train_seconds: float = 0.0
    seconds: float = 0.0
    status: str = "succeeded"
    hostname: str = field(default_factory=socket.gethostname)
    node: str = field(default_factory=lambda: os.environ.get("NODE_NAME", ""))
    visible_devices: list[str] = field(default_factory=lambda: visible_devices(os.environ))
    device_nodes: list[str] = field(default_factory=device_nodes)
    checkpoint: dict[str, object] | None = None
    schema: str = SCHEMA

    def to_json(self) -> bytes:
        """UTF-8 JSON with sorted keys; fractions rounded to six digits."""
        values = {key: round(value, 6) if isinstance(value, float) else value for key, value in asdict(self).items()}
        return (json.dumps(values, indent=2, sort_keys=True) + "\n").encode()

    def write_rank(self, store: Store) -> str:
        """Writes this rank's file; returns where it is."""
        self.seconds = time.monotonic() - STARTED
        return store.put(f"rank-{self.role}-{self.index}.json", self.to_json())

    def write_metrics(self, store: Store) -> str:
        """Writes the job's metrics (chief only); returns where they are."""
        self.seconds = time.monotonic() - STARTED
        return store.put("metrics.json", self.to_json())

    def publish(self, store: Store, barrier: Callable[[], object] = lambda: None) -> None:
        """Writes this rank's file, and rank 0 the metrics: they appear only when every rank has written its own."""
        self.write_rank(store)
        barrier()
        if self.rank == 0:
            print(f"test accuracy {self.accuracy:.4f}; metrics in {self.write_metrics(store)}", flush=True)
        barrier()
