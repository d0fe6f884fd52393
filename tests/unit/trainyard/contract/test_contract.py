"""The contract as Python reads it: from values, the ConfigMap, a cluster, and invalid sources."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard import contract
from trainyard.contract import render
from trainyard.errors import TrainyardError, UsageError
from trainyard.paths import ROOT
from trainyard.pipelines.translate import Settings

TEAMS = ROOT / "tests" / "policies" / "teams.yaml"
BARE: dict[str, Any] = {
    "scheduler": {"name": "volcano"},
    "nodePools": [
        {"name": "big", "kind": "gpu", "gpu": {"resource": "nvidia.com/gpu", "count": 8}, "spot": True,
         "taint": {"key": "spot", "value": "yes", "effect": "NoSchedule"}},
        {"name": "small", "kind": "gpu", "gpu": {"resource": "nvidia.com/gpu", "count": 4}},
        {"name": "cpu", "kind": "cpu"},
    ],
    "queues": [{"name": "all", "capability": {"nvidia.com/gpu": 8}}, {"name": "part", "parent": "all"}],
    "defaultQueue": "part",
    "priorityClasses": [{"name": "low"}],
    "storage": {"sharedClass": "shared", "buckets": [{"name": "runs", "teams": "own"}]},
}  # fmt: skip


class Cluster:
    """A cluster that holds one ConfigMap, or none, or does not answer."""

    host = "https://cluster"
    namespace = "trainyard-system"

    def __init__(self, data: dict[str, str] | None, error: bool = False) -> None:
        self.data, self.error = data, error

    def path(self, version: str, resource: str, name: str, *, namespace: str) -> str:
        return f"{namespace}/{resource}/{name}"

    def find(self, path: str) -> dict[str, Any] | None:
        if self.error:
            raise TrainyardError("the cluster does not answer")
        assert path == f"{self.namespace}/configmaps/trainyard-contract"
        return None if self.data is None else {"data": self.data}


def test_values_stand_over_the_charts_defaults() -> None:
    found = contract.load(TEAMS)
    assert found.team("vision").queues == ("vision", "training")
    assert found.team("speech").max_gpus == 4 and found.team("vision").max_gpus == 8
    assert found.team("speech").max_claim == "20Gi"
    assert found.parameters["tokenServiceAccounts"] == "pipeline,token-test"
    assert found.images["platform"].startswith("site.invalid/trainyard/platform:")
    assert found.listed("allowedImages") == ("site.invalid/trainyard/",)
    assert found.storage_classes == ("trainyard-shared", "trainyard-workspace")
    assert found.modes["gpu-limits"] == "enforce"


def test_pools_queues_and_what_is_not_said(tmp_path: Path) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(yaml.safe_dump(BARE))
    found = contract.load(file)
    assert found.most_gpus_per_node() == 8 and found.most_gpus_per_node("amd.com/gpu") is None
    assert found.gpu_pools[0].tolerations == [
        {"key": "spot", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}
    ]
    assert [queue.name for queue in found.limits("part")] == ["part", "all"]
    assert found.queues["part"].leaf and not found.queues["all"].leaf
    assert contract.defaults().most_gpus_per_node() is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "contains no contract"),
        ("a: [", ":1: the contract is not YAML"),
        ("apiVersion: v1\nkind: Pod\n", "contains no contract"),
        ("nodePools: 3\n", "contract is malformed"),
        ("nodePools: []\n", "the contract lacks storage"),
        ("global: {contract: {nodePools: [{name: x}]}}\n", "the contract lacks kind"),
        ("kind: ConfigMap\nmetadata: {name: trainyard-contract}\ndata: {a: b}\n", "no contract.yaml that can be read"),
        ("- 1\n- 2\n", "contains no contract"),
        ("!!python/object:os.system {}\n", "the contract is not YAML"),
    ],
)
def test_what_is_no_contract_is_reported(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"values\.yaml") as error:
        contract.load(file)
    assert says in str(error.value)


def test_a_missing_file_and_an_unknown_team(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        contract.load(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="no team sound; its teams: vision, speech"):
        contract.load(TEAMS).team("sound")


def test_the_order_in_which_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "contract.yaml"
    file.write_text(yaml.safe_dump(BARE))
    monkeypatch.delenv(contract.VARIABLE, raising=False)
    live: Any = Cluster({"contract.yaml": yaml.safe_dump(BARE)})
    assert contract.find(TEAMS, live).source == str(TEAMS)
    assert contract.find(None, live).source == "cluster https://cluster"
    assert contract.find().source == contract.find(None, Cluster(None, error=True)).source == "the chart's defaults"  # type: ignore[arg-type]
    monkeypatch.setenv(contract.VARIABLE, str(file))
    assert contract.find(None, live).source == str(file)


def test_a_cluster_without_the_chart_says_what_to_do() -> None:
    with pytest.raises(TrainyardError, match=r"has no ConfigMap trainyard-contract.*--contract FILE"):
        contract.live(Cluster(None))  # type: ignore[arg-type]


def test_a_release_in_another_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_SYSTEM", "platform")
    monkeypatch.setattr(Cluster, "namespace", "platform")
    raw = BARE | {"release": {"name": "trainyard", "namespace": "platform"}, "teams": [{"name": "vision"}]}
    found = contract.live(Cluster({"contract.yaml": yaml.safe_dump(raw)}))  # type: ignore[arg-type]
    assert Settings.of(found, "vision").contract.namespace == "platform"
    with pytest.raises(TrainyardError, match=r"has no ConfigMap trainyard-contract in platform\..*TRAINYARD_SYSTEM"):
        contract.live(Cluster(None))  # type: ignore[arg-type]


def test_values_without_helm_say_what_to_give_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> Path:
        raise TrainyardError(f"{name} is not installed")

    monkeypatch.setattr(render.programs, "find", nowhere)
    file = tmp_path / "values.yaml"
    file.write_text("global: {contract: {teams: [{name: nobody-asked-before}]}}\n")
    with pytest.raises(
        UsageError, match=r"needs Helm: helm is not installed.*kubectl get configmap trainyard-contract"
    ):
        contract.load(file)
    assert contract.defaults().default_queue == "training"  # nothing is run for those


def test_values_that_the_chart_can_not_take(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("global: {contract: {nodePools: 3}}\n")
    with pytest.raises(UsageError, match=r"values\.yaml: the chart can't be rendered with these values: Error: "):
        contract.load(file)
