"""Our replacement for the program of an upstream image: a few training steps with this image's framework.

Arguments of upstream's programs are ignored, except those that name the peers. The trainer is that of the job
kinds, on a data set that each rank makes for itself. The first rank prints its result as a line `result {…}`, which is
also its container's termination message.
"""

from __future__ import annotations

import json
import os
import pkgutil
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

SAMPLES, TESTS, PIXELS, CLASSES = 512, 100, 28, 10
TELLS = ("framework", "backend", "device", "rank", "world_size", "loss", "accuracy")
LAST_WORD = Path("/dev/termination-log")


def data_set(folder: Path) -> None:
    """Images whose bright row tells their class, as the four files of MNIST."""
    pick = random.Random(20)
    for half, count in (("train", SAMPLES), ("t10k", TESTS)):
        labels = bytes(at % CLASSES for at in range(count))
        images = bytearray()
        for label in labels:
            image = bytearray(value // 4 for value in pick.randbytes(PIXELS * PIXELS))
            image[label * 2 * PIXELS : (label * 2 + 2) * PIXELS] = b"\xff" * 2 * PIXELS
            images += image
        head = struct.pack(">IIII", 0x803, count, PIXELS, PIXELS)
        (folder / f"{half}-images-idx3-ubyte.gz").write_bytes(head + images)
        (folder / f"{half}-labels-idx1-ubyte.gz").write_bytes(struct.pack(">II", 0x801, count) + labels)


def peers(argv: Sequence[str], env: Mapping[str, str], host: str) -> dict[str, str]:
    """The peers as variables for the trainers, from TensorFlow's old options and MXNet's variables."""
    given = dict(word[2:].split("=", 1) for word in argv if word.startswith("--") and "=" in word)
    if "ps_hosts" in given and "worker_hosts" in given:
        cluster = {role: [name for name in given[f"{role}_hosts"].split(",") if name] for role in ("ps", "worker")}
        task = {"type": given["job_name"], "index": int(given["task_index"])}
        return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}
    if "TF_CONFIG" in env:  # put together by a shell, it may end a list with a comma
        return {"TF_CONFIG": re.sub(r",\s*]", "]", env["TF_CONFIG"])}
    if "DMLC_ROLE" in env:
        servers, workers = int(env["DMLC_NUM_SERVER"]), int(env["DMLC_NUM_WORKER"])
        before = {"scheduler": 0, "server": 1, "worker": 1 + servers}[env["DMLC_ROLE"]]
        return {
            "RANK": str(before + int(host.rpartition("-")[2])),
            "WORLD_SIZE": str(1 + servers + workers),
            "MASTER_ADDR": env["DMLC_PS_ROOT_URI"],
            "MASTER_PORT": env["DMLC_PS_ROOT_PORT"],
        }
    return {}


def frameworks() -> list[str]:
    """The installed frameworks for which there are trainers; NumPy, which every image has, is last."""
    spec = find_spec("mnist")
    names = [module.name for module in pkgutil.iter_modules(spec.submodule_search_locations if spec else ())]
    found = [name.removeprefix("train_") for name in names if name.startswith("train_")]
    return sorted(found, key=lambda name: name == "numpy")


def trainer(env: Mapping[str, str]) -> list[str]:
    """The trainer's command line: for the installed framework, in an MPI world over MPI."""
    found = next(name for name in frameworks() if find_spec(name))
    if found == "torch" and "OMPI_COMM_WORLD_SIZE" in env:
        return ["-m", "mnist.train_mpi", "--backend=mpi4py"]
    cluster = json.loads(env.get("TF_CONFIG") or "{}").get("cluster", {})
    if found == "tensorflow" and cluster and not cluster.get("ps"):
        return [str(Path(__file__).resolve().with_name("multi_worker.py"))]
    return ["-m", f"mnist.train_{found}"]


def main(argv: Sequence[str]) -> int:
    """Trains as one rank; the exit code is the trainer's."""
    env = {**os.environ, **peers(argv, os.environ, socket.gethostname())}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data_set(folder)
        words = [*trainer(env), f"--data={folder}", f"--out={folder}", f"--train-samples={SAMPLES}", "--epochs=2"]
        with subprocess.Popen([sys.executable, *words, "--batch-size=64"], env=env) as process:
            signal.signal(signal.SIGTERM, lambda *_: process.terminate())
            code = process.wait()
        metrics = folder / "metrics.json"
        if not code and metrics.exists():
            held = json.loads(metrics.read_text())
            result = json.dumps({key: held.get(key) for key in TELLS})
            print(f"result {result}", flush=True)
            with suppress(OSError):
                LAST_WORD.write_text(f"result {result}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
