"""What the exporter takes on a large cluster: memory, seconds of a scrape, processor time.

The program runs as its pod does, by HTTPS against real etcd and kube-apiserver, with the rights that the chart gives.
Times are what a busy machine makes of them, so processor time is told beside.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard.paths import ROOT
from trainyard_dev.apiserver import ApiServer, running
from trainyard_dev.apiserver.install import install, namespace
from trainyard_dev.apiserver.processes import Server, free_ports
from trainyard_dev.bench import costs, exporter_cluster
from trainyard_dev.bench.harness import MERGE, account

NODES, PODS = 1523, 10_000  # the trace that scheduling is measured on has so many nodes
MOST_MIB, MOST_SCRAPE_S = 200.0, 1.0
SCRAPES, EVERY_S, IDLE_S = 20, 15.0, 60.0
START_S = 1200.0
SYSTEM, RELEASE, ACCOUNT = "trainyard-system", "trainyard", "trainyard-exporter"
RIGHTS = ROOT / "charts" / "monitoring" / "templates" / "exporter-rbac.yaml"
JOB_RULES = '{{- include "trainyard.jobRules" (list . (list "list" "watch")) | nindent 2 }}'
# The agent takes its account from where kubelet puts it; here it is a folder of ours.
PROGRAM = (
    "import sys, pathlib; from trainyard_agent import api, __main__ as program; "
    "api.Api.__init__.__defaults__ = (pathlib.Path(sys.argv.pop(1)),); sys.exit(program.main())"
)


@dataclass(frozen=True)
class Found:
    """What was measured. Memory in MiB, times in seconds, `cpu` processor time.

    `cores` are processor seconds a second, without changes and while a tenth of the pods changes.
    """

    nodes: int
    pods: int
    pod_bytes: int
    samples: int
    page_bytes: int
    packed_bytes: int
    first_page_s: float
    first_page_cpu_s: float
    listed_mib: float
    peak_mib: float
    resident_mib: float
    look_s: float
    scrape_s: float
    longest_scrape_s: float
    scrape_cpu_s: float
    idle_cores: float
    busy_cores: float

    def lines(self) -> list[str]:
        """As a person reads it."""
        return [
            f"{self.nodes} nodes, {self.pods} pods of {self.pod_bytes} bytes each: {self.samples} samples,"
            f" {self.page_bytes / 1e6:.1f} MB, {self.packed_bytes / 1e3:.0f} kB as they are sent",
            f"memory: {self.listed_mib:.0f} MiB when all was listed, {self.resident_mib:.0f} MiB at the end,"
            f" {self.peak_mib:.0f} MiB at most; the bound is {MOST_MIB:.0f} MiB",
            f"a scrape: {self.scrape_s * 1000:.0f} ms (median of {SCRAPES}), {self.longest_scrape_s * 1000:.0f} ms at"
            f" most, {self.scrape_cpu_s * 1000:.1f} ms of a processor; the bound is {MOST_SCRAPE_S:.0f} s",
            f"a page is made in {self.look_s * 1000:.0f} ms every {EVERY_S:.0f} s; the first was there after"
            f" {self.first_page_s:.0f} s and {self.first_page_cpu_s:.1f} s of a processor",
            f"processor: {self.idle_cores:.3f} cores idle, {self.busy_cores:.3f} while {self.pods // 10} pods change in"
            f" {IDLE_S:.0f} s",
        ]

    def over(self) -> list[str]:
        """Bounds that don't hold, one sentence each."""
        found = []
        if self.peak_mib > MOST_MIB:
            found.append(f"the exporter took {self.peak_mib:.0f} MiB; the bound is {MOST_MIB:.0f} MiB")
        if self.longest_scrape_s > MOST_SCRAPE_S:
            found.append(f"a scrape took {self.longest_scrape_s:.2f} s; the bound is {MOST_SCRAPE_S:.0f} s")
        return found


def measure(nodes: int, pods: int, report: Callable[[str], None] = print) -> Found:
    """One run on an API server of its own, some minutes. Raises TrainyardError."""
    with TemporaryDirectory(prefix="trainyard-exporter-") as name, running(audit=False) as server:
        install(server, [*exporter_cluster.crds(), namespace(SYSTEM), *rights()])
        exporter_cluster.fill(server, nodes, pods, report)
        report("the exporter starts")
        return _measured(server, Path(name), nodes, pods)


def kinds() -> list[str]:
    """Every kind of job, as the chart names them to the exporter."""
    return [f"{kind.api_version}/{kind.plural}" for kind in registry.KINDS]


def rights() -> list[dict[str, Any]]:
    """The account and roles of the chart's part, for our namespace."""
    rules = [{**rule, "verbs": ["list", "watch"]} for rule in registry.rules(registry.KINDS) if rule.pop("apiVersions")]
    text = RIGHTS.read_text().replace(JOB_RULES, "- " + json.dumps(rules)[1:-1].replace("}, {", "}\n  - {"))
    text = re.sub(r"\{\{-.*?-\}\}", "", text, flags=re.DOTALL).replace("{{ .Release.Name }}", RELEASE)
    text = re.sub(r"\{\{.*?\}\}", SYSTEM, text)
    return [one for one in yaml.safe_load_all(text) if one]


def _measured(server: ApiServer, folder: Path, nodes: int, pods: int) -> Found:
    (port,) = free_ports(1)
    some = server.call("GET", "/api/v1/pods", query={"limit": "500"}).body["items"]
    mounted = account(server, SYSTEM, ACCOUNT, folder / "account", "there is no token for the exporter")
    begun = monotonic()
    process = Server(
        [sys.executable, "-c", PROGRAM, mounted, "exporter", "--contract", _contract(folder), "--port",
         str(port), "--period", str(EVERY_S), "--kinds", ",".join(kinds())],
        folder / "exporter.log", _environment(server),
    )  # fmt: skip
    try:
        process.wait(lambda: _page_is_there(port), START_S)
        first_page_s, first_page_cpu_s = monotonic() - begun, costs.processor_s(process.pid)
        listed = costs.resident_mib(process.pid)
        idle = _cores(process.pid, lambda: sleep(IDLE_S))
        busy = _cores(process.pid, lambda: _changes(server, some, pods // 10))
        used = costs.processor_s(process.pid)
        scrapes = [_scrape(port) for _ in range(SCRAPES)]
        scrape_cpu_s = (costs.processor_s(process.pid) - used) / SCRAPES
        body = scrapes[-1][0]
        text = gzip.decompress(body).decode()
        looks = re.search(r"^trainyard_exporter_look_seconds (\S+)$", text, re.MULTILINE)
        counted = re.search(r'^trainyard_exporter_objects\{kind="pods"\} (\d+)$', text, re.MULTILINE)
        if not looks or not counted or int(counted[1]) != pods // exporter_cluster.RANKS * exporter_cluster.RANKS:
            raise TrainyardError(f"the exporter counted {counted and counted[1]} pods, there are {pods}")
        if unread := [line for line in (folder / "exporter.log").read_text().splitlines() if "not counted" in line]:
            raise TrainyardError(f"the exporter left something out: {unread[0]}")
        seconds = [one[1] for one in scrapes]
        return Found(
            nodes=nodes, pods=pods,
            pod_bytes=sum(len(json.dumps(one, separators=(",", ":"))) for one in some) // len(some),
            samples=sum(not line.startswith("#") for line in text.splitlines()), page_bytes=len(text),
            packed_bytes=len(body), first_page_s=first_page_s, first_page_cpu_s=first_page_cpu_s, listed_mib=listed,
            peak_mib=costs.peak_mib(process.pid), resident_mib=costs.resident_mib(process.pid),
            look_s=float(looks[1]), scrape_s=median(seconds), longest_scrape_s=max(seconds), idle_cores=idle,
            busy_cores=busy, scrape_cpu_s=scrape_cpu_s,
        )  # fmt: skip
    finally:
        process.stop()


def _scrape(port: int) -> tuple[bytes, float]:
    """(the page as it is sent, seconds); nothing while there is none."""
    begun = monotonic()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept-Encoding": "gzip"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return answer.read(), monotonic() - begun
    except (urllib.error.URLError, OSError):
        return b"", 0.0


def _page_is_there(port: int) -> bool:
    """Asked rarely, since whoever answers has other work."""
    sleep(1)
    return bool(_scrape(port)[0])


def _changes(server: ApiServer, pods: list[dict[str, Any]], count: int) -> None:
    """So many changes of pods, evenly over a minute."""
    end = monotonic() + IDLE_S
    for number in range(count):
        pod, note = pods[number % len(pods)]["metadata"], {"metadata": {"annotations": {"changed": str(number)}}}
        server.call("PATCH", f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}", note, content=MERGE)
        sleep(max(0.0, (end - monotonic()) / (count - number)))


def _cores(pid: int, meanwhile: Callable[[], None]) -> float:
    begun, used = monotonic(), costs.processor_s(pid)
    meanwhile()
    return (costs.processor_s(pid) - used) / (monotonic() - begun)


def _contract(folder: Path) -> Path:
    pool = {"name": "gpu", "kind": "gpu", "labels": {"trainyard.io/pool": "gpu"}, "gpu": {"resource": "nvidia.com/gpu"}}
    teams = [{"name": name} for name in exporter_cluster.team_names()]
    file = folder / "contract.json"
    file.write_text(json.dumps({"nodePools": [pool], "teams": teams}))
    return file


def _environment(server: ApiServer) -> dict[str, str]:
    host, _, port = server._host.partition(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "PYTHONPATH": str(ROOT / "scripts")}
