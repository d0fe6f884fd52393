"""The model server compared with the bare library: latency, throughput, and CPU per request.

Each is a process with one thread. The client is a separate process on the same machine, so throughput includes
both; CPU per request is the server's alone. Where kserve's Python server is installed, it is measured, too.
"""

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
PEERED = ("onnx", "sklearn")  # models that peer.py serves
ROWS = (1, 32)
MANY, ONE = "16 connections", "1 connection"
CONNECTIONS = {1: ONE, 16: MANY}
FORMS = ("json", "binary")
LIBRARY = "library"
NAME, WITH_GPU = "serving", "serving-gpu"
MOST_ROWS, COMMAND = "32 rows", "bin/trainyard bench serving"
_MODULE = "trainyard_dev.serving"
_PEER_S = 120


@dataclass(frozen=True)
class Case:
    """A model's folder and additional environment variables; `name`: in tables."""

    name: str
    folder: str
    env: Mapping[str, str]


def measure(seconds: float, report: Callable[[str], None]) -> tuple[list[Figure], str]:
    """Measures each case for this many seconds; also returns the machine. Raises TrainyardError without environment."""
    python, figures = environment.python(), list[Figure]()
    with tempfile.TemporaryDirectory(prefix="trainyard-serving-") as name:
        folder = Path(name)
        _python("models", folder / "made")
        gpu, cases = _cases(folder / "made")
        bench = WITH_GPU if gpu else NAME

        def asked(who: str, name: str, port: int, pid: int) -> None:
            figures.extend(_asked(bench, name, who, port, pid, folder, seconds, report))
            held = costs.resident_mib(pid)
            figures.append(Figure.once(bench, "in memory", f"{name} {who}", "mib", held, "MiB", COMMAND))

        for case in cases:
            model, name = folder / "made" / case.folder, case.name
            for rows in ROWS:
                report(f"{name}: the bare library, {rows} rows")
                said = _json(_python("bare", model, rows, 1, seconds, **case.env))
                figures += _measured(bench, f"{name}, {rows} rows, {ONE}", LIBRARY, said, said["cpu_ms"])
            server = process.start(model, folder / "log", THREADS="1", MAX_BATCH="32", **case.env)
            try:
                server.wait_ready()
                asked("ours", name, server.port, server.process.pid)
            finally:
                server.stop()
            if case.name in PEERED and not environment.lacks("kserve"):
                with _peer(python, model, folder / "peer") as (port, pid):
                    asked("kserve", name, port, pid)
    return figures, "; ".join(filter(None, (machine(), gpu)))


def write(figures: Sequence[Figure], where: str, folder: Path) -> Path:
    """Writes the file of figures and a plot of the medians; returns the file's path."""
    file = summary.write_made(figures, folder, where)
    draw(figures, folder)
    return file


def draw(figures: Sequence[Figure], folder: Path) -> None:
    """Draws the medians of a large request, one request at a time; `figures` are of one file."""
    medians = [one for one in figures if one.metric == "p50_ms" and one.case.endswith(f"{MOST_ROWS}, {ONE}")]
    groups: dict[str, dict[str, tuple[float]]] = {}
    for one in medians:
        groups.setdefault(one.case.rpartition(f", {MOST_ROWS}")[0].replace(", ", ",\n"), {})[one.column] = (one.value,)
    title = f"A request of {MOST_ROWS.split()[0]} images, one at a time: half are answered within"
    plots.bars(folder / f"{figures[0].bench}.svg", groups, title=title, y="ms", log_y=True)


def table(figures: Sequence[Figure]) -> str:
    """A table line per model, server and number of rows: latency of one connection, requests per second of several."""
    heads = ["model", "who", "rows", "library ms"]
    heads += [f"{form} {what}" for form in FORMS for what in ("p50 ms", "p99 ms", "CPU ms", "requests/s", "failed")]
    value = {(one.case, one.column, one.metric): one.value for one in figures}
    lines = []
    for one in figures:
        who, _, form = one.column.rpartition(", ")
        alone, many = one.case, f"{one.case.removesuffix(ONE)}{MANY}"
        if (one.metric, form) != ("p50_ms", FORMS[0]) or not alone.endswith(f", {ONE}"):
            continue
        model, rows, _ = alone.rsplit(", ", 2)
        line = [model, who, rows.split()[0], f"{value[alone, LIBRARY, 'p50_ms']:.2f}"]
        for column in (f"{who}, {form}" for form in FORMS):
            failed = value[alone, column, "failed"] + value[many, column, "failed"]
            line += [f"{value[alone, column, metric]:.2f}" for metric in ("p50_ms", "p99_ms", "cpu_ms")]
            line += [f"{value[many, column, 'per_second']:,.0f}", f"{failed:.0f}"]
        lines.append(line)
    return tables.markdown(heads, lines)


def _cases(made: Path) -> tuple[str, list[Case]]:
    """The GPU that PyTorch sees, "" without one, and the cases to serve: PyTorch's with and without the GPU."""
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
    bench: str, model: str, who: str, port: int, pid: int, folder: Path, seconds: float, report: Callable[[str], None]
) -> Iterator[Figure]:
    for form in FORMS:
        for rows in ROWS:
            body, headers = _request(form, rows)
            (folder / "body").write_bytes(body)
            for connections, said_as in CONNECTIONS.items():
                report(f"{model}: {who}, {form}, {rows} rows, {said_as}")
                more = ["--connections", connections, "--seconds", seconds]
                more += [part for name, value in headers.items() for part in ("--header", f"{name}={value}")]
                before = costs.processor_s(pid)
                said = _json(_python("load", port, "/v2/models/digits/infer", folder / "body", *more))
                cpu_ms = 1000 * (costs.processor_s(pid) - before) / max(1, said["answered"])
                yield from _measured(bench, f"{model}, {rows} rows, {said_as}", f"{who}, {form}", said, cpu_ms)


def _request(form: str, rows: int) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a request with this many images."""
    images = np.random.default_rng(7).random((rows, 64), np.float32).round(4)
    one: dict[str, Any] = {"name": "image", "datatype": "FP32", "shape": [rows, 64]}
    if form == "json":
        return json.dumps({"inputs": [one | {"data": images.ravel().astype(float).round(4).tolist()}]}).encode(), {}
    one["parameters"] = {"binary_data_size": images.nbytes}
    head = json.dumps({"inputs": [one], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    return head + images.tobytes(), headers


def _measured(bench: str, case: str, column: str, said: Mapping[str, Any], cpu_ms: float) -> Iterator[Figure]:
    found = {"per_second": (said["answered"] / said["seconds"], "1/s"), "cpu_ms": (cpu_ms, "ms")}
    found |= {f"p{share}_ms": (value, "ms") for share, value in said["latency_ms"].items()}
    found["failed"] = (float(sum(said["failed"].values())), "requests")
    for metric, (value, unit) in found.items():
        yield Figure.once(bench, case, column, metric, value, unit, COMMAND)


@contextmanager
def _peer(python: Path, model: Path, log: Path) -> Iterator[tuple[int, int]]:
    """Runs kserve's Python server with the same model; yields its port and process id."""
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
    argv = [str(environment.python()), "-m", f"{_MODULE}.{module}", *map(str, arguments)]
    return run(argv, env=_env() | env, timeout=600).stdout


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "OMP_NUM_THREADS": "1"}


def _json(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    return found
