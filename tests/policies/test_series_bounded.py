"""What one pod of a member adds to the series of kube-state-metrics, the real one beside a real API server."""

import copy
import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainyard.chart import helm
from trainyard_dev import tools
from trainyard_dev.apiserver import ApiServer, Identity
from trainyard_dev.apiserver.install import policies_in_force
from trainyard_dev.apiserver.processes import Server, free_ports
from trainyard_dev.chart import package
from trainyard_dev.policy.cases import bases
from trainyard_dev.tools import build

BUILT = build.is_built(build.builder("kube-state-metrics"))
pytestmark = pytest.mark.skipif(not BUILT, reason="bin/trainyard tools path kube-state-metrics builds what is tried")
MEMBER = Identity("ada", ("vision-members",))
MANY = 300
MOST = 200  # series of one pod


@pytest.fixture(scope="module")
def objects(server: ApiServer) -> Iterator[list[dict[str, Any]]]:
    """What the option renders; its policy of pods is on the server until the tests end."""
    found = package.render("kind", sets=["monitoring.enabled=true"])
    made = [obj for obj in found if obj["metadata"]["name"] == "trainyard-series"]
    for obj in made:
        answer = server.create(obj)
        assert answer.ok, answer.message
    policies_in_force(server)
    yield found
    for obj in made:
        server.call("DELETE", f"{server.path(obj)}/{obj['metadata']['name']}")


@pytest.fixture
def page(server: ApiServer, objects: list[dict[str, Any]], tmp_path: Path) -> Iterator[Any]:
    """`page()` is what kube-state-metrics, run as the chart runs it, says now."""
    [pod] = (obj for obj in objects if obj["metadata"]["name"] == "trainyard-kube-state-metrics"
             and obj["kind"] == "Deployment")  # fmt: skip
    args = [one for one in helm.pod_specs(pod)[0]["containers"][0]["args"] if "port" not in one.partition("=")[0]]
    port, telemetry = free_ports(2)
    here = ["--host=127.0.0.1", f"--port={port}", "--telemetry-host=127.0.0.1", f"--telemetry-port={telemetry}"]
    program = tools.binary("kube-state-metrics")
    process = Server([program, *args, *here, f"--kubeconfig={server.kubeconfig}"], tmp_path / "log")

    def read() -> str:
        try:
            opened = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                f"http://127.0.0.1:{port}/metrics"
            )
            with opened as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    try:
        process.wait(lambda: "kube_namespace_created" in read(), 30)
        yield read
    finally:
        process.stop()


def large(**spec: Any) -> dict[str, Any]:
    """A pod that the other rules let through, with as much as an object holds of what nobody counts."""
    made = copy.deepcopy(bases()["cpu-pod"])
    made["metadata"] |= {"name": "large", "namespace": "vision"}
    made["spec"] |= spec
    return made


def test_a_pod_adds_few_series_whatever_it_names(server: ApiServer, page: Any, made: Any) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "uid": "6f1c7d1e-2b0a-4c7e-9d1f-0a1b2c3d4e5f"}
    pod = large(
        tolerations=[{"key": f"example.org/{at}", "operator": "Exists", "effect": "NoSchedule"} for at in range(MANY)],
        volumes=[{"name": f"v{at}", "persistentVolumeClaim": {"claimName": f"none-{at}"}} for at in range(MANY)],
    )
    pod["metadata"]["ownerReferences"] = [owner | {"name": f"{at}-" + "x" * 300} for at in range(MANY)]
    answer = server.create(pod, identity=MEMBER, dry_run=True)
    assert answer.ok, answer.message
    made(pod)
    end = time.monotonic() + 20
    while not (found := re.findall(r'^kube_\w+\{[^}]*pod="large".*', page(), re.MULTILINE)):
        assert time.monotonic() < end, "the pod is not counted"
        time.sleep(0.3)
    print(f"\n{len(found)} series, the longest of {max(map(len, found))} characters")
    assert len(found) < MOST and max(map(len, found)) < 1000


def test_a_pod_has_no_more_containers_than_series_are_made_for(
    server: ApiServer, objects: list[dict[str, Any]]
) -> None:
    container = bases()["cpu-pod"]["spec"]["containers"][0]

    def ask(count: int, beginning: int) -> str:
        some = [container | {"name": f"c{at}"} for at in range(count)]
        first = [container | {"name": f"i{at}"} for at in range(beginning)]
        return server.create(large(containers=some, initContainers=first), identity=MEMBER, dry_run=True).message

    assert ask(30, 2) == ""
    assert "the pod has 33 containers" in ask(31, 2) and "may have 32" in ask(31, 2)
    assert "the pod has 300 containers" in ask(MANY, 0)
