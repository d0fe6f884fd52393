"""Parts agree: pods fit the nodes that they are meant for, jobs name what the contract has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from found import contract_of
from placement import KINDS, fits, nodes_of, pods_in, where

from rendering import Objects, Rendering
from trainyard.chart import helm
from trainyard.components import all_components
from trainyard.paths import ROOT
from trainyard_agent.install import node_prep
from trainyard_agent.install.gpus import Gpus
from trainyard_dev.bench import configurations
from trainyard_dev.chart import options, parts

PLACED = {workload: where for one in all_components() for workload, where in one.placement.items()}
EVERYWHERE = {workload for workload, where in PLACED.items() if where == "every"}
ON_GPU = {workload for workload, where in PLACED.items() if where == "gpu"}
# Servers of data that jobs are using stay where they are.
STORES = {workload for one in all_components() for workload in one.stationary}
# Keys that an upstream chart reads but leaves out of its values.yaml.
UNLISTED = {"nvidia-device-plugin": {"nvidiaDevRoot": None}}
JOBS = sorted((ROOT / "manifests" / "jobs").glob("*.yaml"))
TEAMS = [{"name": "vision", "gid": 20001}, {"name": "speech", "gid": 20002}]


OPTIONS = [*options.switched(), *(f"global.contract.network.s3[0].{one}" for one in ("cidr=192.0.2.0/24", "port=443"))]


# Two NVIDIA pools that differ in everything but the resource, one of spot nodes, one of another maker, CPU nodes for
# special work.
def _gpu_pool(name: str, maker: str, taint: dict[str, str], **rest: Any) -> dict[str, Any]:
    labels = {"trainyard.io/pool": "gpu", "gpus": name}
    pool = {"name": name, "kind": "gpu", "labels": labels, "taint": taint, "gpu": {"resource": f"{maker}/gpu"}}
    return pool | ({"selector": {"maker/pool": name}} | rest)


RESERVE = {"resource": "nvidia.com/gpu", "reserve": {"cpu": 4, "memory": "16Gi"}}
ZOO = {
    "nodePools": [
        _gpu_pool("h100", "nvidia.com", {"key": "h100", "value": "yes", "effect": "NoExecute"}),
        _gpu_pool("spot", "nvidia.com", {"key": "spot", "effect": "NoSchedule"}, spot=True),
        _gpu_pool("soft", "nvidia.com", {"key": "soft", "effect": "PreferNoSchedule"}, selector={}, gpu=RESERVE),
        _gpu_pool("mi300", "amd.com", {"key": "amd.com/gpu", "effect": "NoSchedule"}),
        {"name": "data", "kind": "cpu", "selector": {"maker/pool": "d"}, "labels": {"trainyard.io/pool": "data"},
         "taint": {"key": "data", "effect": "NoSchedule"}},
        {"name": "cpu", "kind": "cpu", "labels": {"trainyard.io/pool": "cpu"}},
    ]
}  # fmt: skip


@pytest.fixture(
    scope="module",
    # The overlay's pools have no selectors, by which pods of teams are kept on some.
    params=[
        (p, t)
        for p in parts.profiles()
        for t in ("no teams", "two teams", "many pools", "packed")
        if (p, t) != ("services", "packed")
    ],
    ids=" ".join,
)
def installed(request: pytest.FixtureRequest, render: Rendering) -> Objects:
    """Every object of each profile: as it is, with two teams, with a zoo of node pools, and with the overlay."""
    profile, what = request.param
    if what == "packed":
        return render(configurations.OVERLAY, profile=profile, sets=OPTIONS)
    contract: dict[str, Any] = {"no teams": {}, "two teams": {"teams": TEAMS}, "many pools": ZOO}[what]
    if what == "two teams":
        contract |= {"network": {"s3": [{"cidr": "192.0.2.0/24", "port": 443}]}}
    return render({"global": {"contract": contract}}, profile=profile, sets=OPTIONS)


@pytest.fixture(scope="module")
def teamed(render: Rendering) -> Objects:
    """The profile kind with two teams."""
    return render({"global": {"contract": {"teams": TEAMS}}})


def meant_for(name: str, contract: dict[str, Any]) -> set[str]:
    """The pools that a workload of the platform is meant for."""
    pools = contract["nodePools"]
    if name in EVERYWHERE:
        return {pool["name"] for pool in pools}
    if name in ON_GPU:
        return {
            pool["name"] for pool in pools if pool["kind"] == "gpu" and pool["gpu"]["resource"].startswith("nvidia")
        }
    if contract["teamDefaults"]["pools"]:  # the platform's pods share no node with those of teams
        return {pool["name"] for pool in pools if pool["labels"]["trainyard.io/pool"] == "platform"}
    return {pool["name"] for pool in pools if pool["kind"] == "cpu" and not pool.get("taint")}


def test_every_workload_fits_the_nodes_it_is_meant_for(installed: Objects) -> None:
    contract = contract_of(installed)
    seen = set()
    for obj in installed:
        if obj["kind"] not in KINDS:
            continue
        name = obj["metadata"]["name"]
        seen.add(name)
        [spec] = helm.pod_specs(obj)
        wanted = meant_for(name, contract)
        assert where(spec, contract) == wanted, f"{obj['kind']} {name} is meant for {wanted}"
    assert EVERYWHERE | ON_GPU | {"trainyard-setup", "trainyard-test", "trainyard-scheduler"} <= seen


def test_every_pod_in_whatever_object_was_looked_at(installed: Objects) -> None:
    """Pod specs also lie in kinds that are not listed; those of CRDs are schemas."""
    missed = [
        f"{obj['kind']} {obj['metadata']['name']}"
        for obj in installed
        if obj["kind"] not in (*KINDS, "CustomResourceDefinition") and pods_in(obj)
    ]
    assert missed == []


def test_platform_pods_avoid_a_gpu_node_that_is_labelled_but_not_tainted_yet(installed: Objects) -> None:
    node = {"labels": {"trainyard.io/pool": "gpu"}, "taints": []}
    stray = [
        obj["metadata"]["name"]
        for obj in installed
        if obj["kind"] in KINDS and obj["metadata"]["name"] not in EVERYWHERE
        for spec in helm.pod_specs(obj)
        if fits(spec, node)
    ]
    assert stray == []


def test_node_preparation_agrees_with_what_pods_are_placed_by(installed: Objects) -> None:
    """A node as its maker leaves it becomes one of the pool, and stays so."""
    contract = contract_of(installed)
    for pool in contract["nodePools"]:
        found = Gpus(8, "Tesla T4", 16384) if pool["kind"] == "gpu" else Gpus(0)
        node = {"metadata": {"resourceVersion": "1", "labels": dict(pool.get("selector") or {})}, "spec": {}}
        for _ in range(2):
            chosen = node_prep.choose_pool(contract["nodePools"], node["metadata"]["labels"], found)
            assert chosen == pool
            patch = node_prep.patch_for(node, chosen, found)
            node["metadata"]["labels"] |= patch.get("metadata", {}).get("labels", {})
            node["spec"] |= patch.get("spec", {})
        assert patch == {}
        wanted = nodes_of(contract)[pool["name"]]
        assert wanted["labels"].items() <= node["metadata"]["labels"].items()
        assert node["spec"].get("taints", []) == wanted["taints"]


def test_no_stateless_pod_of_the_platform_keeps_a_node_from_being_scaled_down(installed: Objects) -> None:
    """Autoscalers leave a node alone whose pods have local folders, unless these say that they may go."""
    for obj in installed:
        if obj["kind"] != "Deployment" or obj["metadata"]["name"] in STORES:
            continue
        [spec] = helm.pod_specs(obj)
        if any("emptyDir" in volume or "hostPath" in volume for volume in spec.get("volumes", [])):
            notes = obj["spec"]["template"]["metadata"].get("annotations", {})
            assert notes.get("cluster-autoscaler.kubernetes.io/safe-to-evict") == "true", obj["metadata"]["name"]
    budgets = [obj["spec"] for obj in installed if obj["kind"] == "PodDisruptionBudget"]
    assert all(spec.get("maxUnavailable") == 1 for spec in budgets)  # minAvailable of a single pod would never let go


def test_subcharts_know_every_key_that_we_set(chart: Path) -> None:
    files = [parts.UMBRELLA / "values.yaml", *(parts.profile_file(name) for name in parts.profiles())]
    unknown = []
    for file in files:
        values = yaml.safe_load(file.read_text())
        for part in [upstream.name for upstream in parts.upstream()] + parts.own():
            folder = chart / "charts" / part
            if folder.exists():
                known = yaml.safe_load((folder / "values.yaml").read_text()) | UNLISTED.get(part, {})
                unknown += [f"{file.name}: {part}.{key}" for key in _unknown(values.get(part) or {}, known)]
    assert unknown == []


def test_unlisted_keys_are_still_read(chart: Path) -> None:
    for part, keys in UNLISTED.items():
        text = "".join(file.read_text() for file in (chart / "charts" / part / "templates").iterdir())
        assert all(f".Values.{key}" in text for key in keys)


def _unknown(given: dict[str, Any], known: dict[str, Any], path: str = "") -> list[str]:
    """Keys of ours that are not among the known; below a key that is empty or null there, anything goes."""
    found = []
    for key, value in given.items():
        if key not in known and (path or key != "enabled"):
            found.append(path + key)
        elif (
            isinstance(value, dict)
            and isinstance(known.get(key), dict)
            and known[key]
            and not {"nodeAffinity", "requests", "limits"} & (set(known[key]) | set(value))
        ):
            found += _unknown(value, known[key], f"{path}{key}.")
    return found


@pytest.mark.parametrize("file", JOBS, ids=lambda file: file.stem)
@pytest.mark.parametrize("profile", parts.profiles())
def test_example_jobs_fit_the_nodes_they_are_meant_for(file: Path, profile: str, rendered: dict[str, Objects]) -> None:
    """A pod with GPUs runs on GPU nodes that are not taken away; one without keeps off all of them, and off others'."""
    contract = contract_of(rendered[profile])
    pools = contract["nodePools"]
    gpu = next(pool["gpu"]["resource"] for pool in pools if pool["kind"] == "gpu")
    steady = {pool["name"] for pool in pools if pool["kind"] == "gpu" and not pool.get("spot")}
    specs = pods_in(list(yaml.safe_load_all(file.read_text())))
    assert specs
    for spec in specs:
        wants = any(gpu in container.get("resources", {}).get("limits", {}) for container in spec["containers"])
        own = contract["teamDefaults"]["pools"]
        plain = {pool["name"] for pool in pools if pool["kind"] == "cpu" and (not own or pool["name"] in own)}
        assert where(spec, contract) == (steady if wants else plain)


def test_what_the_page_of_profiles_says_chooses_spot_nodes(rendered: dict[str, Objects]) -> None:
    text = (ROOT / "docs" / "profiles.md").read_text()
    spec = yaml.safe_load(text.split("```yaml spot\n")[1].split("```")[0])
    assert where(spec, contract_of(rendered["cloud"])) == {"gpu-spot"}
    gke = {
        "labels": spec["nodeSelector"],
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
    }
    assert fits(spec, gke)


@pytest.mark.parametrize("file", JOBS, ids=lambda file: file.stem)
def test_example_jobs_name_what_the_contract_has(file: Path, teamed: Objects) -> None:
    contract = contract_of(teamed)
    queues = {queue["name"] for queue in contract["queues"]} | {team["name"] for team in TEAMS}
    classes = {entry["name"] for entry in contract["priorityClasses"]}
    images = {f"{contract['imageRegistry']}/{image}" for image in contract["images"].values()}
    buckets = {bucket["name"] for bucket in contract["storage"]["buckets"]}
    known = {
        "queue": queues, "scheduling.volcano.sh/queue-name": queues, "priorityClassName": classes,
        "priorityClass": classes, "image": images, "schedulerName": {contract["scheduler"]["name"]},
        "storageClassName": {contract["storage"]["sharedClass"], contract["storage"]["workspaceClass"]},
    }  # fmt: skip
    for key, value in _leaves(list(yaml.safe_load_all(file.read_text()))):
        assert key not in known or value in known[key], f"{key}: {value}"
        if isinstance(value, str) and "s3://" in value:
            assert value.split("s3://")[1].split("/")[0] in buckets, value


def _leaves(node: Any, key: str = "") -> list[tuple[str, Any]]:
    if isinstance(node, dict):
        return [leaf for name, value in node.items() for leaf in _leaves(value, name)]
    if isinstance(node, list):
        return [leaf for value in node for leaf in _leaves(value, key)]
    return [(key, node)]


@pytest.mark.parametrize("profile", parts.profiles())
def test_every_profile_with_the_overlay_schedules_as_the_benchmarks_did(render: Rendering, profile: str) -> None:
    objects = render(configurations.OVERLAY, profile=profile)
    [config] = [obj["data"] for obj in objects if obj["metadata"]["name"] == "trainyard-scheduler-configmap"]
    assert config["volcano-scheduler.conf"] == configurations.column("ours").config
