"""`trainyard gpus` on a real API server: the platform's pod publishes with its rights, members read with theirs."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from hook_api import SYSTEM, HookApi
from rights import may

from trainyard.cli import trainyard
from trainyard.errors import TrainyardError
from trainyard_agent.api import ApiError
from trainyard_agent.usage.gpu_view import KEY, NAME, View
from trainyard_dev.apiserver import ApiServer, Identity
from trainyard_dev.policy.cases import bases

ACCOUNT = "trainyard-gpu-view"
MERGE = "application/merge-patch+json"
MEMBER, VIEWER = Identity("ada", ("vision-members",)), Identity("bob", ("vision-viewers",))
OTHER, NOBODY = Identity("eve", ("speech-members",)), Identity("mallory", ("guests",))
Make = Callable[..., dict[str, Any]]


def contract(server: ApiServer) -> dict[str, Any]:
    path = f"/api/v1/namespaces/{SYSTEM}/configmaps/trainyard-contract"
    found: dict[str, Any] = json.loads(server.call("GET", path).body["data"]["contract.json"])
    return found


def show(server: ApiServer, who: Identity, *words: str, team: str = "vision") -> Any:
    groups = [word for group in who.groups for word in ("--as-group", group)]
    access = ["--kubeconfig", str(server.kubeconfig), "-n", team, "--as", who.user, *groups]
    return CliRunner().invoke(trainyard, ["gpus", *words, *access])


@pytest.fixture
def cluster(server: ApiServer, made: Make) -> Iterator[None]:
    """Two GPU nodes, of which one is closed; a pod of vision on one, and one of speech beside it; a gang that waits."""
    for name, closed in (("first", False), ("second", True)):
        amounts = {"nvidia.com/gpu": "4", "cpu": "8", "memory": "32Gi", "pods": "10"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        labels = {"trainyard.io/pool": "gpu", "nvidia.com/gpu.product": "NVIDIA-H100"}
        made({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels, "namespace": None},
              "spec": {"unschedulable": closed}}, status)  # fmt: skip
    for team, gpus in (("vision", 1), ("speech", 2)):
        pod = json.loads(json.dumps(bases()["gpu-pod"]))
        pod["metadata"] = {"name": f"{team}-pod", "namespace": team,
                           "annotations": {"scheduling.volcano.sh/queue-name": team}}  # fmt: skip
        pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = gpus
        pod["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = gpus
        made(pod)
        bound = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"{team}-pod"},
                 "target": {"apiVersion": "v1", "kind": "Node", "name": "first"}}  # fmt: skip
        assert server.call("POST", f"/api/v1/namespaces/{team}/pods/{team}-pod/binding", bound).ok
    made({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
          "metadata": {"name": "waits", "namespace": "vision"},
          "spec": {"queue": "training", "minMember": 1, "minResources": {"nvidia.com/gpu": "8"}}})  # fmt: skip
    yield
    for name in (NAME, f"{NAME}-vision", f"{NAME}-speech"):
        path = f"/api/v1/namespaces/{SYSTEM}/configmaps/{name}"
        assert server.call("PATCH", path, {"data": None}, content=MERGE).ok


def test_a_member_sees_pools_the_own_share_and_the_wait(server: ApiServer, cluster: None) -> None:
    View(HookApi(server, ACCOUNT)).look(contract(server), 30)
    done = show(server, MEMBER, "-o", "json")
    assert done.exit_code == 0, done.output
    seen = json.loads(done.stdout)
    [pool] = seen["pools"]
    assert {key: pool[key] for key in ("pool", "model", "nodes", "gpus", "held", "yours", "free", "out", "fits")} == {
        "pool": "gpu", "model": "NVIDIA-H100", "nodes": 2, "gpus": 8, "held": 3, "yours": 1, "free": 1, "out": 4,
        "fits": {"1": 1},
    }  # fmt: skip
    waits = {queue["queue"]: (queue["waiting"]["jobs"], queue["waiting"]["gpus"]) for queue in seen["queues"]}
    assert waits == {"vision": (0, 0), "training": (1, 8)}
    assert not seen["late"] and seen["waiting"] == {"jobs": 1, "gpus": 8}


def test_the_table_names_no_other_team(server: ApiServer, cluster: None) -> None:
    View(HookApi(server, ACCOUNT)).look(contract(server), 30)
    done = show(server, VIEWER)
    assert done.exit_code == 0 and "speech" not in done.output
    assert "gpu   NVIDIA-H100  2      8     3     1      1     4    1 on 1 node" in done.stdout
    assert "in all queues, 1 job waits for 8 GPUs" in done.stdout


def test_another_teams_numbers_are_refused_and_its_name_taken_for_none_of_yours(
    server: ApiServer, cluster: None
) -> None:
    View(HookApi(server, ACCOUNT)).look(contract(server), 30)
    answer = server.call("GET", f"/api/v1/namespaces/{SYSTEM}/configmaps/{NAME}-vision", identity=OTHER)
    assert answer.status == 403 and 'cannot get resource "configmaps"' in answer.message
    done = show(server, OTHER)
    assert done.exit_code == 0 and "QUEUE" not in done.stdout
    assert "warning: vision is not your team, so no share and no queues are shown" in done.stderr


def test_who_is_in_no_team_is_refused_with_whom_to_ask(server: ApiServer, cluster: None) -> None:
    refused = show(server, NOBODY)
    assert refused.exit_code == 1 and isinstance(refused.exception, TrainyardError)
    assert "your user must be a member or viewer of a team" in str(refused.exception)


def test_nothing_published_yet_is_said(server: ApiServer) -> None:
    silent = show(server, MEMBER)
    assert isinstance(silent.exception, TrainyardError)
    assert "the platform publishes no GPU data" in str(silent.exception)
    assert "gpuView.enabled is false" in str(silent.exception)


@pytest.mark.parametrize("name", ["trainyard-contract", "argo-cache"])
def test_the_pod_writes_no_other_map(server: ApiServer, name: str) -> None:
    api = HookApi(server, ACCOUNT)
    with pytest.raises(ApiError, match=r"cannot patch resource .?\"configmaps"):
        api.merge(f"/api/v1/namespaces/{SYSTEM}/configmaps/{name}", {"data": {KEY: "{}"}}, manager="test")


def test_the_pod_reads_no_secrets_and_changes_nothing(server: ApiServer) -> None:
    who = Identity.account(SYSTEM, ACCOUNT)
    assert may(server, who, "list", "pods") and may(server, who, "list", "nodes")
    for verb in ("create", "update", "patch", "delete"):
        assert not may(server, who, verb, "pods") and not may(server, who, verb, "nodes")
    assert not may(server, who, "list", "secrets") and not may(server, who, "get", "secrets", SYSTEM)
    assert not may(server, MEMBER, "patch", "configmaps", SYSTEM, NAME)
