"""What one team can put into etcd: every kind that it may make is counted, and so their largest sum is bounded."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import HERE
from test_rbac import RUN, SERVED, STEP

from trainyard.paths import ROOT
from trainyard_dev.apiserver import ApiServer, Identity, running
from trainyard_dev.apiserver.install import complete_namespace, install
from trainyard_dev.chart import package, parts
from trainyard_dev.policy.cases import bases, changed

pytestmark = pytest.mark.long
TEAM, EACH = "flood", 2
MEMBER = Identity("ada", (f"{TEAM}-members",))
STEPS = Identity.account(TEAM, "pipeline")
MIB = 1024 * 1024
# The largest request that etcd takes unless told otherwise: 1.5 MiB.
LARGEST = 3 * MIB // 2
FILL = LARGEST - 64 * 1024
# etcd's file is larger than what is in it: it grows by pages, and those that become free are used again.
FILE = 1.5
STREAMS = {"pods/exec", "pods/portforward"}
# What a server says to an object too large. The creation of a Job is tried again, and stumbles over its own first try.
SAYS = r"may not be more than|must have at most|request is too large|Too long|`selector` not auto-generated"
ALL = {name for may in (RUN, STEP) for name, verbs in may.items() if "create" in verbs} - STREAMS
# What members make where models are in service, by the case that has one.
SERVING = {
    "services": "model-service", "deployments.apps": "model-server", "ingresses.networking.k8s.io": "model-ingress",
    "horizontalpodautoscalers.autoscaling": "model-scaler", "httproutes.gateway.networking.k8s.io": "model-route",
    "scaledobjects.keda.sh": "scaled-object", "httpscaledobjects.http.keda.sh": "http-scaled-object",
    "inferenceservices.serving.kserve.io": "inference-service",
}  # fmt: skip
REFUSED = {"cronjobs.batch"}  # by trainyard-schedules, each one
MADE = sorted(ALL - {*SERVED, *SERVING, *REFUSED})


def defaults() -> dict[str, Any]:
    return yaml.safe_load((parts.UMBRELLA / "values.yaml").read_text())["global"]["contract"]["teamDefaults"]


def served_counts() -> dict[str, int]:
    found: dict[str, int] = yaml.safe_load((parts.UMBRELLA.parent / "serving" / "values.yaml").read_text())["counts"]
    return found


@pytest.fixture(scope="module")
def flooded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of its own, whose store is empty but for the platform, with a team that may have two of each kind."""
    team = {"name": TEAM, "gid": 20009, "members": {"groups": list(MEMBER.groups)}, "quota": {"all": {}},
            "counts": dict.fromkeys(defaults()["counts"], EACH)}  # fmt: skip
    serving = {"enabled": True, "hosts": {TEAM: ["digits.example.org"]}, "counts": dict.fromkeys(served_counts(), EACH)}
    values = tmp_path_factory.mktemp("flood") / "team.yaml"
    values.write_text(yaml.safe_dump({"global": {"contract": {"teams": [team]}}, "serving": serving}))
    objects = package.render("kind", values=[values])
    objects += [
        obj for obj in yaml.safe_load_all((HERE / "extra.yaml").read_text()) if obj["kind"].startswith("Custom")
    ]
    with running(audit=False) as server:
        install(server, objects)
        yield server


def hard(server: ApiServer) -> dict[str, str]:
    found = server.call("GET", f"/api/v1/namespaces/{TEAM}/resourcequotas").body["items"]
    return {name: amount for one in found for name, amount in one["status"]["hard"].items()}


def large(resource: str, size: int) -> dict[str, Any]:
    """An object of this kind with about so many bytes in it."""
    filling = "x" * size
    if resource == "configmaps":
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "case"}, "data": {"x": filling}}
    if resource == "workflowtaskresults.argoproj.io":
        return {"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTaskResult", "metadata": {"name": "case"},
                "outputs": {"result": filling}}  # fmt: skip
    if resource == "persistentvolumeclaims":
        return changed(bases()["claim"], {"/metadata/annotations": {"x": filling}})
    if spec := {"workflows.argoproj.io": "/spec", "cronworkflows.argoproj.io": "/spec/workflowSpec"}.get(resource):
        arguments = {"parameters": [{"name": "x", "value": filling}]}
        return changed(bases()[resource.split("s.")[0]], {f"{spec}/arguments": arguments})
    name = {"pods": "cpu-pod", "jobs.batch.volcano.sh": "vcjob"}.get(resource, resource.split(".")[0].removesuffix("s"))
    obj = changed(bases()[name], {})
    for node in walk(obj):
        node |= {key: TEAM for key in ("queue", "scheduling.volcano.sh/queue-name") if key in node}
    container = next(node["containers"][0] for node in walk(obj) if "containers" in node)
    container["env"] = [*container.get("env", []), {"name": "X", "value": filling}]
    return obj


def walk(node: Any) -> Iterator[dict[str, Any]]:
    """Every object within an object, the outer ones first."""
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from walk(inner)


def create(server: ApiServer, resource: str, number: int, size: int) -> Any:
    who = STEPS if resource.startswith("workflowtaskresults") else MEMBER
    place = {"/metadata/namespace": TEAM, "/metadata/name": f"flood-{number}"}
    return server.create(changed(large(resource, size), place), identity=who)


def stored(server: ApiServer) -> int:
    """Bytes of etcd's file."""
    text = server.call("GET", "/metrics").body["text"]
    [size] = re.findall(r"^apiserver_storage_size_bytes\{[^}]*\} (\S+)$", text, re.MULTILINE)
    return int(float(size))


def fits(resource: str) -> int:
    """Bytes of filling that the API takes beside what else the object has."""
    return {"configmaps": MIB, "persistentvolumeclaims": 255 * 1024}.get(resource, FILL)


def test_every_kind_that_a_team_may_make_is_counted(flooded: ApiServer) -> None:
    assert {f"count/{resource}" for resource in ALL} <= set(hard(flooded))


@pytest.mark.parametrize(("resource", "base"), SERVING.items())
def test_what_serves_models_is_counted(flooded: ApiServer, resource: str, base: str) -> None:
    complete_namespace(flooded, TEAM)
    text = json.dumps(bases()[base]).replace("/vision/", f"/{TEAM}/")
    said = []
    for number in range(EACH + 1):
        obj = changed(json.loads(text), {"/metadata/namespace": TEAM, "/metadata/name": f"model-{number}"})
        said.append(flooded.create(obj, identity=MEMBER))
    assert all(answer.ok for answer in said[:-1]), [answer.message for answer in said]
    assert said[-1].status == 403
    assert re.search(rf"exceeded quota: team-(serving-)?counts, .*count/{resource}={EACH}", said[-1].message)


def test_a_flood_is_refused_by_counts_and_the_store_stays_small(flooded: ApiServer) -> None:
    before = stored(flooded)
    for resource in MADE:
        for number in range(EACH):
            answer = create(flooded, resource, number, fits(resource))
            assert answer.ok, f"{resource}: {answer.message}"
        refused = create(flooded, resource, EACH, 1)
        assert refused.status == 403
        quota = "team-kinds" if "." in resource and resource != "jobs.batch" else "team-counts"
        assert f"exceeded quota: {quota}, " in refused.message
        assert f"count/{resource}={EACH}" in refused.message
    assert stored(flooded) - before <= len(MADE) * EACH * LARGEST * FILE


@pytest.mark.parametrize("resource", MADE)
def test_no_object_is_larger_than_what_the_bound_says(flooded: ApiServer, resource: str) -> None:
    complete_namespace(flooded, TEAM)  # its quotas count from nothing
    too_large = {"configmaps": MIB + 1, "persistentvolumeclaims": 257 * 1024}.get(resource, LARGEST)
    answer = create(flooded, resource, 2 * EACH, too_large)
    assert not answer.ok
    assert re.search(SAYS, answer.message), answer.message


def bound(counts: dict[str, int]) -> float:
    """GiB that a team can store at once with these counts."""
    return sum(counts.get(one, counts["jobs"]) * (MIB if one == "configmaps" else LARGEST) for one in MADE) / 1024**3


def test_the_documented_bound_is_that_of_the_defaults() -> None:
    page = Path(ROOT, "docs/teams.md").read_text()
    [said] = re.findall(r"at most (\d+\.\d) GiB of etcd", page)
    assert f"{bound(defaults()['counts']):.1f}" == said
    [block] = re.findall(r"counts: (\{[^}]*\})", page)
    [small] = re.findall(r"these make it (\d+\.\d) GiB", page)
    assert f"{bound(defaults()['counts'] | yaml.safe_load(block)):.1f}" == small
