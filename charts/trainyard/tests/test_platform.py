"""Programs in the cluster: decisions of node preparation, certificates, the launcher webhook, bucket rights."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard_agent.install import gpus, node_prep, webhook_cert
from trainyard_agent.install.gpus import Gpus
from trainyard_agent.runs import launcher
from trainyard_dev.chart import parts

CONTRACT = yaml.safe_load((parts.UMBRELLA / "values.yaml").read_text())["global"]["contract"]
POOLS = CONTRACT["nodePools"]
A100 = Gpus(4, "NVIDIA A100-SXM4-40GB", 40960)
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def node(labels: dict[str, str] | None = None, taints: list[dict[str, str]] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": "n", "resourceVersion": "7", "labels": labels or {}}, "spec": {"taints": taints or []}}


def patched(before: dict[str, Any], found: Gpus) -> dict[str, Any]:
    """The node after one round."""
    pool = node_prep.choose_pool(POOLS, before["metadata"]["labels"], found)
    assert pool
    patch = node_prep.patch_for(before, pool, found)
    after = json.loads(json.dumps(before))
    after["metadata"]["labels"] |= patch.get("metadata", {}).get("labels", {})
    after["spec"]["taints"] = patch.get("spec", {}).get("taints", after["spec"]["taints"])
    return after


def test_gpu_node_gets_labels_and_taint() -> None:
    after = patched(node(), A100)
    assert after["metadata"]["labels"] == {
        "trainyard.io/pool": "gpu",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
        "nvidia.com/gpu.count": "4",
        "nvidia.com/gpu.memory": "40960",
    }
    assert after["spec"]["taints"] == [TAINT]


def test_cpu_node_gets_its_pool_and_no_taint() -> None:
    after = patched(node(), Gpus(0))
    assert after["metadata"]["labels"] == {"trainyard.io/pool": "cpu"}
    assert after["spec"]["taints"] == []


def test_second_round_changes_nothing() -> None:
    after = patched(node(), A100)
    pool = node_prep.choose_pool(POOLS, after["metadata"]["labels"], A100)
    assert pool and node_prep.patch_for(after, pool, A100) == {}


def test_vanished_gpus_keep_the_taint_and_update_the_count() -> None:
    after = patched(patched(node(), A100), Gpus(0))
    assert after["metadata"]["labels"]["nvidia.com/gpu.count"] == "0"
    assert after["metadata"]["labels"]["trainyard.io/pool"] == "gpu"
    assert after["spec"]["taints"] == [TAINT]


def test_node_labelled_before_its_driver_is_up_is_a_gpu_node() -> None:
    after = patched(node({"trainyard.io/pool": "gpu"}), Gpus(0))
    assert after["spec"]["taints"] == [TAINT]
    assert "nvidia.com/gpu.present" not in after["metadata"]["labels"]


def test_other_taints_stay_and_a_wrong_value_is_corrected() -> None:
    other = {"key": "team", "value": "a", "effect": "NoSchedule"}
    after = patched(node(taints=[dict(TAINT, value="true"), other]), A100)
    assert after["spec"]["taints"] == [other, TAINT]


def test_selector_wins_over_what_is_found() -> None:
    pools = [{"name": "a100", "kind": "gpu", "selector": {"cloud/pool": "a100"}, "gpu": {"resource": "x/y"}}, *POOLS]
    chosen = node_prep.choose_pool(pools, {"cloud/pool": "a100"}, Gpus(0))
    assert chosen and chosen["name"] == "a100"


def test_difference_from_the_contract_is_noted() -> None:
    pool = POOLS[0] | {"gpu": {"resource": "nvidia.com/gpu", "count": 8}}
    patch = node_prep.patch_for(node(), pool, A100)
    assert patch["metadata"]["annotations"] == {node_prep.MISMATCH: "4 GPUs found, 8 expected"}


def test_change_by_someone_else_is_not_overwritten() -> None:
    assert node_prep.patch_for(node(), POOLS[0], A100)["metadata"]["resourceVersion"] == "7"


def test_gpus_are_read_from_the_drivers_files(tmp_path: Path) -> None:
    for address in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / address).mkdir()
        (tmp_path / address / "information").write_text("Model: \t\t NVIDIA H200\nIRQ:   \t\t 77\n")
    assert gpus.find(str(tmp_path), tmp_path) == Gpus(2, "NVIDIA H200", 0)
    assert gpus.find(str(tmp_path), tmp_path / "none") == Gpus(0)


def test_broken_library_counts_as_no_gpu(tmp_path: Path) -> None:
    library = tmp_path / gpus.LIBRARY
    library.parent.mkdir(parents=True)
    library.write_text("not a library")
    assert gpus.by_nvml(str(tmp_path)) == Gpus(0)


def test_label_values_are_allowed_ones() -> None:
    assert node_prep.label_value("NVIDIA H100 80GB HBM3") == "NVIDIA-H100-80GB-HBM3"
    assert node_prep.label_value("(x) " + "y" * 80).startswith("x-y")
    assert len(node_prep.label_value("y" * 80)) == 63


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_certificate_is_good_for_its_names_only(tmp_path: Path) -> None:
    names = ["op.ns.svc", "op.ns-webhook.svc"]
    made = webhook_cert.make(tmp_path, names, "training-operator-ca")
    assert webhook_cert.good(made, names)
    assert not webhook_cert.good(made, [*names, "other.ns.svc"])
    assert not webhook_cert.good(made | {"ca.key": b"-----BEGIN PRIVATE KEY-----"}, names)
    assert not webhook_cert.good({}, names)


def review_of(pod: dict[str, Any]) -> dict[str, Any]:
    request = {"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u", "object": pod}}
    return launcher.review(request)["response"]


def test_launcher_is_closed_and_others_are_left_alone() -> None:
    pod = {"spec": {"initContainers": [{"name": "mine"}, {"name": "kubectl-delivery"}]}}
    answer = review_of(pod)
    assert answer["allowed"] is True
    changes = json.loads(base64.b64decode(answer["patch"]))
    hidden = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    paths = ["/spec/initContainers/1/securityContext", "/spec/initContainers/1/env"]
    assert [change["path"] for change in changes] == paths
    assert changes[1]["value"] == hidden
    assert changes[0]["value"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    pod["spec"]["initContainers"][1] |= {"securityContext": changes[0]["value"], "env": hidden}  # type: ignore[dict-item]
    assert "patch" not in review_of(pod)
    assert "patch" not in review_of({"spec": {"containers": []}})


def test_a_launcher_that_runs_as_root_keeps_its_user() -> None:
    pod = {"spec": {"securityContext": {"runAsUser": 0}, "initContainers": [{"name": "kubectl-delivery"}]}}
    change, _ = json.loads(base64.b64decode(review_of(pod)["patch"]))
    assert "runAsNonRoot" not in change["value"]
