"""A training job as processes of this machine: each node's ranks, with the variables that an operator would set."""

import json
import shlex
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard.kinds.spec import MPI, TENSORFLOW, JobSpec
from trainyard.pipelines.steps.processes import Ended, Processes
from trainyard.pipelines.steps.request import Request

HOST = "127.0.0.1"
PYTHONS = ("python", "python3")
MOST = 8  # processes of one job on this machine


def run(request: Request, env: Mapping[str, str]) -> None:
    """Runs all ranks to their end, in the folder `ranks`. Raises TrainyardError with the failing rank's message."""
    spec = request.spec()
    roles = _roles(spec)
    home = Path.cwd() / "ranks"
    home.mkdir(exist_ok=True)
    for what in _not_honoured(spec):
        print(f"ignored locally: {what}", flush=True)
    print(f"{spec.name}: {len(roles)} ranks on this machine: {shlex.join(spec.command)}", flush=True)
    processes, ended = Processes(), dict[str, tuple[float, Ended]]()

    def stop(*_: object) -> None:
        processes.end()
        sys.exit(143)

    signal.signal(signal.SIGTERM, stop)
    command = [sys.executable if spec.command[0] in PYTHONS else spec.command[0], *spec.command[1:]]
    if not shutil.which(command[0]):
        raise TrainyardError(f"the program {command[0]} is not on this machine", hint="install it, or submit instead")

    def one(role: str, variables: Mapping[str, str]) -> None:
        folder = home / role
        folder.mkdir(exist_ok=True)
        result = processes.run(command, name=role, folder=folder, env=variables, log=home / f"{role}.txt")
        ended[role] = (time.monotonic(), result)

    threads = []
    for role, variables in roles.items():
        own = {
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            **{name: value for name, value in spec.env.items() if isinstance(value, str)},
            **_kept(spec, home / role),
            **variables,
        }
        threads.append(threading.Thread(target=one, args=(role, own), daemon=True))
        threads[-1].start()
    try:
        _wait(threads, ended, processes)
    finally:
        processes.end()
    _keep(request, spec, home / next(iter(roles)), env)


def _wait(threads: list[threading.Thread], ended: dict[str, tuple[float, Ended]], processes: Processes) -> None:
    """Waits until all ranks have ended; the first failure ends the others."""
    while any(thread.is_alive() for thread in threads):
        if any(one.code for _, one in list(ended.values())):
            break
        with suppress(RuntimeError):
            next(thread for thread in threads if thread.is_alive()).join(0.1)
    failed = sorted(((at, role, one) for role, (at, one) in ended.items() if one.code), key=lambda entry: entry[0])
    if failed:
        _, role, one = failed[0]
        processes.end()
        raise TrainyardError(f"{role} failed with code {one.code}: {one.reason}")


def _roles(spec: JobSpec) -> dict[str, dict[str, str]]:
    """Variables of each process, the one that keeps the results first."""
    if spec.framework == TENSORFLOW:
        return _tensorflow(spec)
    size = spec.nodes * (spec.processes or 1)  # GPUs determine the number of ranks only where there are GPUs
    if size > MOST:
        what = f"the job has {size} ranks, at most {MOST} run on this machine"
        raise TrainyardError(what, hint="lower the number of nodes, for example with --param nodes=2")
    if spec.framework == MPI and size > 1:
        print("without mpirun here, every rank runs by itself", flush=True)
    port = str(_free_port())
    names = ["master-0", *(f"worker-{at}" for at in range(size - 1))]
    variables = {**registry.RENDEZVOUS, **registry.of_framework(spec.framework).environment, "LOCAL_RANK": "{rank}"}

    def of(rank: int) -> dict[str, str]:
        values = {"address": HOST, "port": port, "size": str(size), "rank": str(rank)}
        return {name: text.format(**values) for name, text in variables.items()}

    return {name: of(rank) for rank, name in enumerate(names)}


def _tensorflow(spec: JobSpec) -> dict[str, dict[str, str]]:
    counts = {"chief": 1, "worker": spec.nodes - 1, "ps": spec.parameter_servers}
    cluster = {role: [f"{HOST}:{_free_port()}" for _ in range(count)] for role, count in counts.items() if count}
    if spec.nodes == 1 and not spec.parameter_servers:
        return {"chief-0": {}}
    return {
        f"{role}-{at}": {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": at}})}
        for role, hosts in cluster.items()
        for at in range(len(hosts))
    }


def _kept(spec: JobSpec, folder: Path) -> dict[str, str]:
    """Paths where a rank may leave results and checkpoints as files."""
    if not spec.output:
        return {}
    found = {"TRAINYARD_RESULTS": str(folder / spec.results)}
    if spec.checkpoints:
        found["TRAINYARD_CHECKPOINTS"] = str(folder / spec.checkpoints)
    for place in found.values():
        Path(place).mkdir(parents=True, exist_ok=True)
    return found


def _keep(request: Request, spec: JobSpec, folder: Path, env: Mapping[str, str]) -> None:
    """Copies the files that rank 0 left to the place where the platform would put them."""
    source = folder / spec.results
    if spec.output and source.is_dir():
        target = Path(env["TRAINYARD_BUCKETS"], request.run.bucket, request.results)
        shutil.copytree(source, target, dirs_exist_ok=True)


def _not_honoured(spec: JobSpec) -> list[str]:
    found = [f"volume {mount.claim} at {mount.path}" for mount in spec.mounts]
    found += [f"secret {value['secret']} as {name}" for name, value in spec.env.items() if not isinstance(value, str)]
    if spec.gpus:
        found.append(f"GPUs ({spec.gpus} per node requested)")
    if spec.pool:
        found.append(f"pool {spec.pool}")
    if spec.retries:
        found.append(f"{spec.retries} retries of ranks")
    if spec.image:
        found.append(f"image {spec.image}")
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]
