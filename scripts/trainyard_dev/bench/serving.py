"""What the model server costs beside the bare library: latency, throughput, and CPU of each request.

One process each, of one thread. The client is a process of its own on the same machine, so throughput is of both
together; CPU of a request is the server's alone. Where kserve's Python server is installed, it is measured, too.
"""

from __future__ import annotations

import json
import os
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev.apiserver.processes import Server, free_ports
from trainyard_dev.bench import costs, plots, summary, tables
from trainyard_dev.bench.environment import machine
from trainyard_dev.bench.results import Figure
from trainyard_dev.serving import environment, process

NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
PEERED = ("onnx", "sklearn")  # what peer.py serves
ROWS = (1, 32)
CONNECTIONS = (1, 16)
FORMS = ("json", "binary")
LIBRARY = "library"
NAME, WITH_GPU = "serving", "serving-gpu"
MOST_ROWS, ONE = "32 rows", "1 connection"
_MODULE = "trainyard_dev.serving"
_PEER_S = 120


@dataclass(frozen=True)
class Case:
    """A model's folder, and what the environment adds; `name` is what tables call it."""

    name: str
    folder: str
    env: Mapping[str, str]


@dataclass(frozen=True)
class Measured:
    """One measurement: requests a second, latencies and the server's CPU in ms for each request."""

    model: str
    who: str
    form: str
    rows: int
    connections: int
    per_second: float
    latency_ms: Mapping[str, float]
    cpu_ms: float
    failed: Mapping[str, int]


@dataclass(frozen=True)
class Found:
    """All measurements of one machine, its GPU ("" where none was used), and the memory of each server in MiB."""

    machine: str
    gpu: str
    figures: list[Measured]
    memory_mib: Mapping[str, float]


def measure(seconds: float, report: Callable[[str], None]) -> Found:
    """Everything, each for so many seconds. Raises TrainyardError where the environment isn't made."""
    python = environment.python()
    figures: list[Measured] = []
    memory: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="trainyard-serving-") as name:
        folder = Path(name)
        _python("models", folder / "made")
        gpu, cases = _cases(folder / "made")
        for case in cases:
            model, name = folder / "made" / case.folder, case.name
            for rows in ROWS:
                report(f"{name}: the bare library, {rows} rows")
                said = _json(_python("bare", model, rows, 1, seconds, **case.env))
                figures.append(_measured(name, LIBRARY, "", rows, 1, said, said["cpu_ms"]))
            server = process.start(model, folder / "log", THREADS="1", MAX_BATCH="32", **case.env)
            try:
                server.wait_ready()
                figures += _asked(name, "ours", server.port, server.process.pid, folder, seconds, report)
                memory[f"{name} ours"] = costs.resident_mib(server.process.pid)
            finally:
                server.stop()
            if case.name in PEERED and not environment.lacks("kserve"):
                with _peer(python, model, folder / "peer") as (port, pid):
                    figures += _asked(name, "kserve", port, pid, folder, seconds, report)
                    memory[f"{name} kserve"] = costs.resident_mib(pid)
    return Found(machine(), gpu, figures, memory)


def write(found: Found, folder: Path) -> Path:
    """Writes all figures, and the medians as a plot beside them; returns the former's path."""
    bench, command = WITH_GPU if found.gpu else NAME, "bin/trainyard bench serving"
    figures = []
    for one in found.figures:
        several = f"{one.connections} connection{'s' if one.connections > 1 else ''}"
        case, column = f"{one.model}, {one.rows} rows, {several}", f"{one.who}, {one.form}".removesuffix(", ")
        said = {"per_second": (one.per_second, "1/s"), "cpu_ms": (one.cpu_ms, "ms")}
        said |= {f"p{share}_ms": (value, "ms") for share, value in one.latency_ms.items()}
        said["failed"] = (float(sum(one.failed.values())), "requests")
        for metric, (value, unit) in said.items():
            figures.append(Figure.once(bench, case, column, metric, value, unit, command))
    for who, mib in found.memory_mib.items():
        figures.append(Figure.once(bench, "in memory", who, "mib", mib, "MiB", command))
    file = summary.write_made(figures, folder, "; ".join(filter(None, (found.machine, found.gpu))))
    draw(figures, folder)
    return file


def draw(figures: Sequence[Figure], folder: Path) -> None:
    """The medians of a large request, one at a time; `figures` are of one file."""
    medians = [one for one in figures if one.metric == "p50_ms" and one.case.endswith(f"{MOST_ROWS}, {ONE}")]
    groups: dict[str, dict[str, tuple[float]]] = {}
    for one in medians:
        groups.setdefault(one.case.rpartition(f", {MOST_ROWS}")[0].replace(", ", ",\n"), {})[one.column] = (one.value,)
    title = f"A request of {MOST_ROWS.split()[0]} images, one at a time: half are answered within"
    plots.bars(folder / f"{figures[0].bench}.svg", groups, title=title, y="ms", log_y=True)


def table(found: Found) -> str:
    """A line for each model, server and number of rows; latencies of one connection, requests a second of several."""
    alone, many = CONNECTIONS
    heads = ["model", "who", "rows", "library ms"]
    heads += [f"{form} {what}" for form in FORMS for what in ("p50 ms", "p99 ms", "CPU ms", "requests/s", "failed")]
    lines = []
    at = {(one.model, one.who, one.form, one.rows, one.connections): one for one in found.figures}
    for model, who, rows in dict.fromkeys(
        (one.model, one.who, one.rows) for one in found.figures if one.who != LIBRARY
    ):
        line = [model, who, str(rows), f"{at[model, LIBRARY, '', rows, 1].latency_ms['50']:.2f}"]
        for form in FORMS:
            single, several = (at[model, who, form, rows, connections] for connections in (alone, many))
            failed = sum(single.failed.values()) + sum(several.failed.values())
            line += [f"{single.latency_ms[share]:.2f}" for share in ("50", "99")]
            line += [f"{single.cpu_ms:.2f}", f"{several.per_second:,.0f}", str(failed)]
        lines.append(line)
    return tables.markdown(heads, lines)


def _cases(made: Path) -> tuple[str, list[Case]]:
    """The GPU that PyTorch sees, "" where there is none, and what can be served: PyTorch's with and without it."""
    cases = [Case("onnx", "onnx", {}), Case("sklearn", "sklearn", {})]
    if environment.lacks("torch"):
        return "", cases
    _python("torch_models", made)
    code = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else '')"
    gpu = run([environment.python(), "-c", code], env=_env(), timeout=120).stdout.strip()
    for folder in ("pytorch", "pytorch-wide"):
        cases += [Case(folder, folder, NO_GPU)] + ([Case(f"{folder}, GPU", folder, {})] if gpu else [])
    return gpu, cases


def _asked(
    model: str, who: str, port: int, pid: int, folder: Path, seconds: float, report: Callable[[str], None]
) -> Iterator[Measured]:
    for form in FORMS:
        for rows in ROWS:
            body, headers = _request(form, rows)
            (folder / "body").write_bytes(body)
            for connections in CONNECTIONS:
                report(f"{model}: {who}, {form}, {rows} rows, {connections} connections")
                more = ["--connections", connections, "--seconds", seconds]
                more += [part for name, value in headers.items() for part in ("--header", f"{name}={value}")]
                before = costs.processor_s(pid)
                said = _json(_python("load", port, "/v2/models/digits/infer", folder / "body", *more))
                used = costs.processor_s(pid) - before
                yield _measured(model, who, form, rows, connections, said, 1000 * used / max(1, said["answered"]))


def _request(form: str, rows: int) -> tuple[bytes, dict[str, str]]:
    """Body and headers of so many images."""
    images = np.random.default_rng(7).random((rows, 64), np.float32).round(4)
    one: dict[str, Any] = {"name": "image", "datatype": "FP32", "shape": [rows, 64]}
    if form == "json":
        return json.dumps({"inputs": [one | {"data": images.ravel().astype(float).round(4).tolist()}]}).encode(), {}
    one["parameters"] = {"binary_data_size": images.nbytes}
    head = json.dumps({"inputs": [one], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    return head + images.tobytes(), headers


def _measured(
    model: str, who: str, form: str, rows: int, connections: int, said: Mapping[str, Any], cpu_ms: float
) -> Measured:
    speed = said["answered"] / said["seconds"]
    return Measured(model, who, form, rows, connections, speed, said["latency_ms"], cpu_ms, said["failed"])


@contextmanager
def _peer(python: Path, model: Path, log: Path) -> Iterator[tuple[int, int]]:
    """kserve's Python server with the same model, as a process: its port and its id."""
    [port] = free_ports(1)

    def ready() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5):
                return True
        except OSError:
            return False

    server = Server([python, "-m", f"{_MODULE}.peer", model, str(port)], log, _env())
    try:
        try:
            server.wait(ready, _PEER_S)
        except TrainyardError:
            raise TrainyardError(f"kserve's server doesn't start: {log.read_text()[-2000:]}") from None
        yield port, server.pid
    finally:
        server.stop()


def _python(module: str, *arguments: object, **env: str) -> str:
    argv = [environment.python(), "-m", f"{_MODULE}.{module}", *map(str, arguments)]
    return run(argv, env=_env() | env, timeout=600).stdout


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "OMP_NUM_THREADS": "1"}


def _json(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    return found
