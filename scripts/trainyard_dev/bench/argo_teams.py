"""What a controller of Argo for each team costs beside one for all: memory, seconds until it is ready, time of steps.

Real etcd, API server and controllers; pods are objects that end at once, so that what is left is the controllers' time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard_dev import tools
from trainyard_dev.apiserver import ApiServer, running
from trainyard_dev.apiserver.install import await_force, complete_namespace, namespace
from trainyard_dev.apiserver.processes import Server
from trainyard_dev.argo import NAME, quiet
from trainyard_dev.bench import argo_load, costs, plots, tables
from trainyard_dev.bench.environment import machine
from trainyard_dev.chart import package
from trainyard_dev.versions import load

SHARED, OWN = "one for all teams", "one for each team"
TEAMS = (1, 10, 30)
STEPS = 10
IDLE_S = 10.0
KEPT, LONG = 100, 300  # runs that a team may have at a time, and steps of a long one
SYSTEM = "trainyard-system"
USER = "bench"
FILE = "argo-teams.json"
HEADINGS = {
    "resident_mib": "MiB resident, each by itself", "held_mib": "MiB on one node", "busy_mib": "MiB there after work",
    "idle_cores": "thousandths of a core, idle", "ready_s": "seconds until all are ready",
    "back_s": "seconds until one is back", "alone_s": "seconds a step, one team",
    "together_s": "seconds a step, all teams at once",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One way to run controllers for so many teams. Memory and processor time are sums over all of them.

    `held_mib` and `busy_mib` count pages of the program's file once, as a node holds them, `resident_mib` with each.
    """

    way: str
    teams: int
    resident_mib: float
    held_mib: float
    busy_mib: float
    idle_cores: float
    ready_s: float
    back_s: float
    alone_s: float
    together_s: float


@dataclass(frozen=True)
class Found:
    """What was measured, where and with what."""

    argo: str
    machine: str
    steps: int
    full_mib: float  # resident, of one team's controller with KEPT finished runs of LONG steps
    rows: tuple[Row, ...]


class Fleet:
    """The controllers of one row: the Deployment's program and settings, with a team's rights everywhere."""

    def __init__(self, server: ApiServer, folder: Path, deployment: dict[str, Any], names: Sequence[str]) -> None:
        """`names`: the teams with a controller each, or [""] for one that serves all."""
        self._folder, self._names = folder, list(names)
        self._container = deployment["spec"]["template"]["spec"]["containers"][0]
        self._programs: list[Server] = []
        self._count = 0
        config = yaml.safe_load(server.kubeconfig.read_text())
        config["users"][0]["user"]["as"] = USER
        self._kubeconfig = folder / "kubeconfig"
        self._kubeconfig.write_text(yaml.safe_dump(config))

    def start(self) -> None:
        """Starts all that don't run."""
        for name in self._names[len(self._programs) :]:
            self._count += 1
            log = self._folder / f"{self._count}.log"
            argv = [tools.binary("workflow-controller"), *self._args(name)]
            env = {one["name"]: one["value"] for one in self._container["env"]}
            self._programs.append(Server(argv, log, env))

    def stop(self, count: int | None = None) -> None:
        """Ends the last `count` of them, or all."""
        for _ in range(len(self._programs) if count is None else count):
            self._programs.pop().stop()

    @property
    def pids(self) -> list[int]:
        """Ids of all that run."""
        return [one.pid for one in self._programs]

    def _args(self, name: str) -> Iterator[str | Path]:
        for word in self._container["args"]:
            if name and word.startswith("--managed-namespace="):
                yield f"--managed-namespace={name}"
            elif name or not word.startswith(("--namespaced", "--managed-namespace=")):
                yield word
        yield from ("--kubeconfig", self._kubeconfig, "--namespace", SYSTEM)


def measure(teams: Sequence[int] = TEAMS) -> Found:
    """All rows: both ways for each number of teams. Raises TrainyardError."""
    names = [f"team-{number:02}" for number in range(max(teams))]
    sets = ["global.contract.teams[0].name=team-00", "global.contract.teams[0].gid=20001"]
    objects = package.render("kind", sets=sets)
    quiet(objects)
    deployment = next(one for one in objects if one["kind"] == "Deployment" and NAME in one["metadata"]["name"])
    rows = []
    with TemporaryDirectory() as folder, running() as server, argo_load.played(server):
        _prepare(server, objects, names)
        for count in teams:
            for way, served in ((SHARED, [""]), (OWN, names[:count])):
                with _fleet(server, Path(folder), deployment, served) as fleet:
                    rows.append(_row(server, fleet, way, names[:count]))
        with _fleet(server, Path(folder), deployment, names[:1]) as fleet:
            full = _full(server, fleet, names[0])
    return Found(load().raw["components"]["argo"], machine(), STEPS, full, tuple(rows))


def _row(server: ApiServer, fleet: Fleet, way: str, teams: Sequence[str]) -> Row:
    begun = monotonic()
    fleet.start()
    argo_load.run(server, teams, "ready", 1)
    ready = monotonic() - begun
    sleep(2)  # what starting left is collected
    before, at = costs.processor_s(*fleet.pids), monotonic()
    sleep(IDLE_S)
    idle = (costs.processor_s(*fleet.pids) - before) / (monotonic() - at)
    resident, held = sum(_memory(fleet.pids, "VmRSS")), _held(fleet.pids)
    alone = fmean(argo_load.run(server, teams[:1], "alone", STEPS)) / STEPS
    together = fmean(argo_load.run(server, teams, "together", STEPS)) / STEPS
    busy = _held(fleet.pids)
    fleet.stop(1)
    begun = monotonic()
    fleet.start()
    argo_load.run(server, teams[-1:], "back", 1)
    back = monotonic() - begun
    argo_load.remove(server, teams)
    return Row(way, len(teams), resident, held, busy, idle * 1000, ready, back, alone, together)


def _full(server: ApiServer, fleet: Fleet, team: str) -> float:
    for number in range(KEPT):
        made = server.call(
            "POST", f"{argo_load.ARGO}/namespaces/{team}/workflows", argo_load.finished(f"old-{number}", LONG)
        )
        if not made.ok:
            raise TrainyardError(f"a finished workflow is refused: {made.message}")
    fleet.start()
    argo_load.run(server, [team], "beside", STEPS)
    found = sum(_memory(fleet.pids, "VmRSS"))
    argo_load.remove(server, [team])
    return found


def _held(pids: Sequence[int]) -> float:
    """MiB that all of them hold, pages of their file counted once."""
    return sum(_memory(pids, "RssAnon")) + max(_memory(pids, "RssFile"))


def _memory(pids: Sequence[int], key: str) -> list[float]:
    """MiB that /proc says of each of these processes."""
    found = [re.search(rf"^{key}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE) for pid in pids]
    return [int(one[1]) / 1024 for one in found if one]


@contextmanager
def _fleet(server: ApiServer, folder: Path, deployment: dict[str, Any], names: Sequence[str]) -> Iterator[Fleet]:
    fleet = Fleet(server, folder, deployment, names)
    try:
        yield fleet
    finally:
        fleet.stop()


def _prepare(server: ApiServer, objects: list[dict[str, Any]], teams: Sequence[str]) -> None:
    """CRDs, namespaces with the account of steps, rights of the controllers, and the configuration."""
    for crd in objects:
        if crd["kind"] == "CustomResourceDefinition" and crd["spec"]["group"] == "argoproj.io":
            server.apply(crd)
            plural = crd["spec"]["names"]["plural"]
            await_force(f"the CRD {plural}", lambda plural=plural: server.call("GET", f"{argo_load.ARGO}/{plural}").ok)
    for name in (SYSTEM, *teams):
        server.apply(namespace(name))
        complete_namespace(server, name)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "pipeline", "namespace": name}}
        server.apply(account)
    role = next(one for one in objects if one["kind"] == "ClusterRole" and one["metadata"]["name"] == f"{NAME}-team")
    rights = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": USER}}
    rights["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{NAME}-team"}
    rights["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}]
    server.apply(role)
    server.apply(rights)
    server.apply(next(one for one in objects if one["kind"] == "ConfigMap" and one["metadata"]["name"] == NAME))


def table(found: Found) -> str:
    """All rows as Markdown."""
    rows = [[f"{row.way}, {row.teams}", *(tables.number(getattr(row, key)) for key in HEADINGS)] for row in found.rows]
    full = f"\nWith {KEPT} finished runs of {LONG} steps one team's controller has {found.full_mib:.0f} MiB resident.\n"
    return tables.markdown(["controllers, teams", *HEADINGS.values()], rows) + full


def write(found: Found, folder: Path) -> None:
    """The figures and two plots."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(asdict(found), indent=1) + "\n")
    for key, title in (("held_mib", "Memory of idle controllers of Argo"), ("together_s", "A step, all teams at once")):
        series = {
            way: [(row.teams, getattr(row, key)) for row in found.rows if row.way == way] for way in (SHARED, OWN)
        }
        file = folder / f"argo-teams-{key.partition('_')[0]}.svg"
        plots.lines(file, series, title=title, x="teams", y=HEADINGS[key])


def read(folder: Path) -> Found:
    """What `write` wrote."""
    raw = yaml.safe_load((folder / FILE).read_text())
    return Found(raw["argo"], raw["machine"], raw["steps"], raw["full_mib"], tuple(Row(**row) for row in raw["rows"]))
