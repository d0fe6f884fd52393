"""The profile for clusters with business services: placement, priority classes, and values that would undo it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from found import contract_of
from placement import KINDS, Node, fits, pods_in

from rendering import Objects, Rendering
from trainyard.chart import helm
from trainyard.contract import Contract, of_objects
from trainyard.kinds import JobSpec, TeamConfig, manifest
from trainyard.paths import ROOT
from trainyard.pipelines.translate.settings import Settings
from trainyard.policy import fill
from trainyard_agent.install import node_prep
from trainyard_agent.install.gpus import Gpus
from trainyard_dev.chart import options

TEAM = "vision"
TEAMS = [{"name": TEAM, "gid": 20001}]
OPTIONS = (*options.switched(*options.OPTIONS), "backup.enabled=true",
           "global.contract.storage.caches[0].name=mnist", "global.contract.storage.caches[0].bucket=datasets",
           "global.contract.storage.caches[0].prefix=shared/mnist")  # fmt: skip
SERVERS, JOBS, SYSTEM = (
    "trainyard-platform",
    "trainyard-platform-jobs",
    {"system-node-critical", "system-cluster-critical"},
)
# Before an upgrade the classes may not be there yet; what takes the release away goes with it.
HOOKS = {"trainyard-crds", "trainyard-retire", "trainyard-teardown"}
# Nodes of business as the site has them: without our labels, with GPUs of their own, and one of another team's making.
PLAIN: Node = {"labels": {"kubernetes.io/os": "linux"}, "taints": []}
INFERENCE: Node = {"labels": {"nvidia.com/gpu.present": "true"}, "taints": []}
OTHERS: Node = {"labels": {"trainyard.io/pool": "shop"}, "taints": []}
OURS = {name: {"labels": {"trainyard.io/pool": name}, "taints": []} for name in ("gpu", "cpu", "platform")}
EVERYWHERE = {"trainyard-node-prep", "trainyard-node-exporter", "trainyard-logs"}


@pytest.fixture(scope="module")
def shared(render: Rendering) -> Objects:
    """The profile with a team and every option."""
    return render({"global": {"contract": {"teams": TEAMS}}}, profile="services", sets=OPTIONS)


@pytest.fixture(scope="module")
def site(shared: Objects) -> Contract:
    return of_objects(shared)


def workloads(objects: Objects) -> dict[str, dict[str, Any]]:
    """Every pod spec of the platform, by the name of its object."""
    return {obj["metadata"]["name"]: helm.pod_specs(obj)[0] for obj in objects if obj["kind"] in KINDS}


@pytest.mark.parametrize("profile", ["services", "kind", "cloud"])
def test_each_pod_of_the_platform_has_a_class(profile: str, render: Rendering) -> None:
    sets = [*OPTIONS, *(f"global.contract.network.s3[0].{one}" for one in ("cidr=192.0.2.0/24", "port=443"))]
    objects = render(profile=profile, sets=sets)
    found = {name: spec.get("priorityClassName") for name, spec in workloads(objects).items()}
    without = {name for name, held in found.items() if not held}
    assert without <= HOOKS, without
    jobs = {obj["metadata"]["name"] for obj in objects if obj["kind"] in ("Job", "CronJob", "Pod")} - HOOKS
    assert {found[name] for name in jobs} <= {JOBS, *SYSTEM}
    assert {held for name, held in found.items() if name not in jobs and held} <= {SERVERS, *SYSTEM}
    assert JOBS in found.values()


def test_jobs_of_the_platform_wait_before_training_and_displace_nobody(shared: Objects) -> None:
    classes = {obj["metadata"]["name"]: obj for obj in shared if obj["kind"] == "PriorityClass"}
    highest = max(one["value"] for name, one in classes.items() if name not in (SERVERS, JOBS))
    assert highest < classes[JOBS]["value"] < classes[SERVERS]["value"]
    assert classes[JOBS]["preemptionPolicy"] == "Never"
    assert not any(one["globalDefault"] for one in classes.values())


def test_no_pod_of_the_platform_goes_to_nodes_of_business(shared: Objects) -> None:
    for name, spec in workloads(shared).items():
        astray = [node["labels"] for node in (PLAIN, INFERENCE) if fits(spec, node)]
        assert astray == [], f"{name} may run on {astray}"


def test_the_platform_shares_no_node_with_teams(shared: Objects) -> None:
    for name, spec in workloads(shared).items():
        where = {pool for pool, node in OURS.items() if fits(spec, node)}
        if name in EVERYWHERE:
            assert where == set(OURS), name
        elif name != "trainyard-nvidia-device-plugin":
            assert where == {"platform"}, name


def test_node_preparation_leaves_nodes_of_business_alone(shared: Objects) -> None:
    pools = contract_of(shared)["nodePools"]
    for node, found in ((PLAIN, Gpus(0)), (INFERENCE, Gpus(8, "Tesla T4", 16384)), (OTHERS, Gpus(0))):
        assert node_prep.choose_pool(pools, node["labels"], found) is None


def test_the_namespace_says_where_the_teams_pods_stay(shared: Objects) -> None:
    [namespace] = [obj for obj in shared if obj["kind"] == "Namespace" and obj["metadata"]["name"] == TEAM]
    assert namespace["metadata"]["annotations"]["trainyard.io/pools"] == "trainyard.io/pool=gpu,trainyard.io/pool=cpu"


@pytest.mark.parametrize("scheduler", ["volcano", "default-scheduler"])
@pytest.mark.parametrize(("gpus", "due"), [(0, "cpu"), (1, "gpu")])
def test_a_plain_pod_stays_on_a_pool_of_teams(site: Contract, scheduler: str, gpus: int, due: str) -> None:
    amounts = {"cpu": "1", "memory": "1Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    container = {"name": "main", "image": "example", "resources": {"requests": amounts, "limits": amounts}}
    spec = {"schedulerName": scheduler, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": spec}
    made = fill.filled(pod, site, site.team(TEAM)).obj["spec"]
    assert made["nodeSelector"] == {"trainyard.io/pool": due}
    assert [name for name, node in OURS.items() if fits(made, node)] == [due]
    assert not any(fits(made, node) for node in (PLAIN, INFERENCE, OTHERS))


def test_where_a_team_has_no_pools_a_plain_pod_is_left_alone(site: Contract, render: Rendering) -> None:
    plain = of_objects(render({"global": {"contract": {"teams": [{"name": TEAM, "gid": 20001}]}}}))
    container = {"name": "main", "image": "example", "resources": {}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": {"containers": [container]}}
    assert "nodeSelector" not in fill.filled(pod, plain, plain.team(TEAM)).obj["spec"]
    assert plain.team(TEAM).home == {}
    assert not plain.team(TEAM).stays and site.team(TEAM).stays
    assert [pool.name for pool in site.team(TEAM).pools] == ["gpu", "cpu"]


def test_what_trainyard_sends_stays_on_a_pool_of_teams(site: Contract) -> None:
    found = TeamConfig.of(site, TEAM)
    assert [pool.name for pool in found.team.pools] == ["gpu", "cpu"]
    for gpus in (0, 1):
        job = manifest(JobSpec("digits", ("python3", "train.py"), framework="pytorch", gpus=gpus), found)
        for spec in pods_in(job):
            assert spec["nodeSelector"] == {"trainyard.io/pool": "gpu" if gpus else "cpu"}
    assert {pool.name for pool in Settings.of(site, TEAM).team.pools} == {"gpu", "cpu"}
    assert Settings.of(site, TEAM).team.home == {"trainyard.io/pool": "cpu"}


def test_a_workflow_is_filled_in_whole(site: Contract) -> None:
    """Steps without GPUs take the workflow's selector, one with GPUs has its own, which goes before."""
    amounts = {"requests": {"nvidia.com/gpu": "1", "cpu": "1", "memory": "1Gi"}}
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    train = {"name": "train", "container": {"image": "example", "resources": amounts}, "tolerations": tolerations}
    templates = [{"name": "load", "container": {"image": "example"}}, train]
    flow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "flow"},
            "spec": {"entrypoint": "load", "templates": templates}}  # fmt: skip
    spec = fill.filled(flow, site, site.team(TEAM)).obj["spec"]
    assert spec["nodeSelector"] == {"trainyard.io/pool": "cpu"}
    assert "nodeSelector" not in spec["templates"][0]
    assert spec["templates"][1]["nodeSelector"] == {"trainyard.io/pool": "gpu"}


def test_a_toleration_chooses_among_pools_with_gpus(render: Rendering) -> None:
    """A pod that tolerates only spot nodes is sent there, even where permanent nodes come first."""
    spot: dict[str, Any] = {"name": "spot", "kind": "gpu", "spot": True, "selector": {"spot": "yes"}}
    spot |= {"labels": {"trainyard.io/pool": "gpu", "spot": "yes"}, "gpu": {"resource": "nvidia.com/gpu"}}
    spot |= {"taint": {"key": "spot", "effect": "NoSchedule"}}
    own = yaml.safe_load((ROOT / "charts/trainyard/profiles/services.yaml").read_text())["global"]["contract"]
    contract = {"nodePools": [spot, *own["nodePools"]], "teamDefaults": {"pools": ["spot", "gpu", "cpu"]}}
    site = of_objects(render({"global": {"contract": contract | {"teams": TEAMS}}}, profile="services"))
    amounts = {"nvidia.com/gpu": "1", "cpu": "1", "memory": "1Gi"}
    container = {"name": "main", "image": "example", "resources": {"requests": amounts, "limits": amounts}}
    for key, due in (
        ("spot", {"trainyard.io/pool": "gpu", "spot": "yes"}),
        ("nvidia.com/gpu", {"trainyard.io/pool": "gpu"}),
    ):
        spec = {"containers": [container], "tolerations": [{"key": key, "operator": "Exists"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": spec}
        assert fill.filled(pod, site, site.team(TEAM)).obj["spec"]["nodeSelector"] == due


POOLS = [
    {"name": "gpu", "kind": "gpu", "selector": {"trainyard.io/pool": "gpu"}, "labels": {"trainyard.io/pool": "gpu"},
     "taint": {"key": "nvidia.com/gpu", "effect": "NoSchedule"}, "gpu": {"resource": "nvidia.com/gpu"}},
    {"name": "cpu", "kind": "cpu", "labels": {"trainyard.io/pool": "cpu"}},
    {"name": "bare", "kind": "cpu", "selector": {"a": "b"}},
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"pools": ["gpu", "data"]}, 'restricted to pool "data", which is not among global.contract.nodePools (gpu,'),
        ({"pools": ["cpu"]}, 'is restricted to pool "cpu", which has no selector, so node preparation would add'),
        ({"pools": ["bare"]}, 'restricted to pool "bare", which has no labels to keep its pods there; add labels.'),
        ({"pools": ["gpu"]}, "is restricted to pools of kind gpu (gpu), so none of its pods without GPUs could"),
    ],
)  # fmt: skip
def test_pools_that_keep_nobody_are_refused(change: dict[str, Any], sentence: str, render: Rendering) -> None:
    team = {"name": TEAM, "gid": 20001} | change
    found = render.errors({"global": {"contract": {"nodePools": POOLS, "teams": [team]}}})
    assert any(sentence in line for line in found), found


JOB = "platformJobPriorityClass"


@pytest.mark.parametrize(
    ("contract", "sentence"),
    [
        ({JOB: {"name": "trainyard-platform", "value": 50}}, "has the name of platformPriorityClass"),
        ({JOB: {"name": "jobs", "value": 200000000}}, "which is not below platformPriorityClass"),
        ({JOB: {"name": "jobs", "value": 500}}, "its pods would precede the platform's jobs"),
        ({JOB: {"name": "training-low", "value": 50000}}, "the class of the platform's own pods"),
    ],
)  # fmt: skip
def test_classes_out_of_order_are_refused(contract: dict[str, Any], sentence: str, render: Rendering) -> None:
    found = render.errors({"global": {"contract": contract}})
    assert any(sentence in line for line in found), found
