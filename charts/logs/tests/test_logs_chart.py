"""The option `logs`: off, it renders nothing; on, a collector without API rights that writes to the given place."""

from __future__ import annotations

import json
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml
from found import SYSTEM, container, named, one, pod_of, published

from rendering import Objects, Rendering
from trainyard.paths import ROOT

ON = ["logs.enabled=true"]
TEAMS = ROOT / "tests" / "policies" / "teams.yaml"  # vision and speech
EXTERNAL = [
    "minio.enabled=false",
    "global.contract.storage.s3.mode=external",
    "global.contract.storage.s3.endpoint=https://s3.example.org",
    "global.contract.network.s3[0].cidr=203.0.113.0/24",
    "global.contract.network.s3[0].port=443",
]


@pytest.fixture(scope="module")
def on(render: Rendering) -> Objects:
    return render(sets=ON)


def configuration(objects: Objects) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(one(objects, "ConfigMap", "trainyard-logs")["data"]["collector.yaml"])
    return found


def test_off_it_is_nothing(rendered: dict[str, Objects]) -> None:
    for objects in rendered.values():
        assert "logs" not in published(objects)
        assert not [key for key in named(objects) if "logs" in key[2]]
        assert "LOGS_" not in json.dumps(one(objects, "Job", "trainyard-setup"))


def test_on_it_adds_five_objects_and_changes_the_contract_and_the_setup_job(
    on: Objects, rendered: dict[str, Objects]
) -> None:
    added = sorted(set(named(on)) - set(named(rendered["kind"])))
    assert [kind for kind, _, _ in added] == ["ConfigMap", "DaemonSet", "NetworkPolicy", "Secret", "ServiceAccount"]
    assert published(on)["logs"] == {"bucket": "logs", "retentionDays": 30}
    names = {env["name"] for env in container(on, "Job", "trainyard-setup")["env"]}
    assert {"LOGS_ENDPOINT", "LOGS_ACCESS_KEY", "LOGS_SECRET_KEY", "LOGS_REGION", "LOGS_CA"} <= names


def test_the_collector_has_no_right_on_the_api_and_reads_the_host_only(on: Objects) -> None:
    pod = pod_of(on, "DaemonSet", "trainyard-logs")
    assert pod["automountServiceAccountToken"] is False and "hostNetwork" not in pod
    roles = [obj for obj in on if obj["kind"].endswith("RoleBinding")]
    assert not [obj for obj in roles if any(s["name"] == "trainyard-logs" for s in obj["subjects"] or [])]
    made = container(on, "DaemonSet", "trainyard-logs")
    assert made["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert made["securityContext"]["readOnlyRootFilesystem"] and not made["securityContext"]["allowPrivilegeEscalation"]
    writable = [mount["name"] for mount in made["volumeMounts"] if not mount.get("readOnly")]
    assert writable == ["state"]
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    assert paths == {"pods": "/var/log/pods", "state": "/var/lib/trainyard-logs"}
    assert made["resources"]["limits"]["memory"] == "256Mi"


def test_a_line_is_dropped_nowhere(on: Objects) -> None:
    made = configuration(on)
    for end in (*made["exporters"].values(), *made["receivers"].values()):
        assert end["retry_on_failure"]["enabled"] and end["retry_on_failure"]["max_elapsed_time"] == "0s"
    for receiver in made["receivers"].values():
        assert receiver["storage"] == "file_storage" and receiver["start_at"] == "beginning"
        assert receiver["include_file_record_offset"]
    for exporter in made["exporters"].values():
        queue = exporter["sending_queue"]
        assert queue["storage"] == "file_storage" and queue["block_on_overflow"]
        assert queue["batch"]["flush_timeout"] == "10s"
    # Whatever gathers lines in memory before the queue would lose them when it is killed.
    for name, pipeline in made["service"]["pipelines"].items():
        team = name.removeprefix("logs")
        assert pipeline == {"receivers": [f"file_log{team}"], "exporters": [f"pod_store{team}"]}
    assert "--feature-gates=stanza.synchronousLogEmitter" in container(on, "DaemonSet", "trainyard-logs")["args"]


def test_each_team_has_a_receiver_and_a_queue_of_its_own_and_each_file_is_read_once(render: Rendering) -> None:
    objects = render(TEAMS, sets=ON)
    made = configuration(objects)
    assert list(made["service"]["pipelines"]) == ["logs/vision", "logs/speech", "logs"]
    assert {one["sending_queue"]["queue_size"] for one in made["exporters"].values()} == {(512 << 20) // 3}
    others = made["receivers"]["file_log"]
    uid = "6f1c7d1e-2b0a-4c7e-9d1f-0a1b2c3d4e5f"
    for namespace, reader in (("vision", "/vision"), ("speech", "/speech"), ("vision-2", ""), ("trainyard-system", "")):
        for file in ("0.log", "0.log.20261124-160000"):
            path = f"/pods/{namespace}_digits-worker-0_{uid}/pytorch/{file}"
            readers = [
                name
                for name, one in made["receivers"].items()
                if any(fnmatch(path, glob) for glob in one["include"])
                and not any(fnmatch(path, glob) for glob in one.get("exclude", []))
            ]
            assert readers == [f"file_log{reader}"], path
    assert others["exclude"] == ["/pods/vision_*/*/*", "/pods/speech_*/*/*"]


def test_values_reach_the_collector(render: Rendering) -> None:
    more = ["logs.bucket=kept", "logs.retentionDays=7", "logs.flushEvery=2s", "logs.queue.sizeMiB=64"]
    more += ["logs.excludeNamespaces={kube-system,vision}", "global.imageRegistry=registry.example.org/mirror"]
    objects = render(sets=ON + more)
    assert published(objects)["logs"] == {"bucket": "kept", "retentionDays": 7}
    made = configuration(objects)
    assert made["exporters"]["pod_store"]["bucket"] == "kept"
    assert made["exporters"]["pod_store"]["sending_queue"]["queue_size"] == 64 << 20
    assert made["receivers"]["file_log"]["exclude"] == ["/pods/kube-system_*/*/*", "/pods/vision_*/*/*"]
    image = container(objects, "DaemonSet", "trainyard-logs")["image"]
    assert image.startswith("registry.example.org/mirror/trainyard/otel-collector:")


def test_its_network_is_names_and_the_store(on: Objects, render: Rendering) -> None:
    egress = one(on, "NetworkPolicy", "trainyard-logs")["spec"]["egress"]
    assert len(egress) == 2 and egress[1]["to"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/name"] == "minio"
    outside = render(sets=ON + EXTERNAL)
    egress = one(outside, "NetworkPolicy", "trainyard-logs")["spec"]["egress"]
    assert egress[1]["to"] == [{"ipBlock": {"cidr": "203.0.113.0/24"}}] and egress[1]["ports"][0]["port"] == 443


def test_a_site_s_own_collector_gets_bucket_key_and_nothing_of_ours(
    render: Rendering, rendered: dict[str, Objects]
) -> None:
    objects = render(sets=[*ON, "logs.collector=site"])
    added = sorted(set(named(objects)) - set(named(rendered["kind"])))
    assert added == [("Secret", SYSTEM, "trainyard-logs-s3")]
    assert published(objects)["logs"]["bucket"] == "logs"


def test_a_store_whose_users_are_the_site_s_gets_no_key(render: Rendering) -> None:
    objects = render(sets=ON + EXTERNAL)
    assert ("Secret", SYSTEM, "trainyard-logs-s3") not in named(objects)
    assert "LOGS_" not in json.dumps(one(objects, "Job", "trainyard-setup"))


def test_values_that_do_not_fit(render: Rendering) -> None:
    assert render.errors({"logs": {"enabled": True, "bucket": "runs"}}) == [
        'logs.bucket is "runs", which global.contract.storage.buckets uses for something else: give the logs their '
        "own bucket."
    ]
    unlimited = {"logs": {"enabled": True, "resources": {"limits": {"memory": None}}}}
    assert [one.partition(":")[0] for one in render.errors(unlimited)] == ["logs.resources has no limits.memory"]
    external = {"global": {"contract": {"storage": {"s3": {"mode": "external", "endpoint": "https://s3.example.org"}}}}}
    said = render.errors({"logs": {"enabled": True}, "minio": {"enabled": False}, **external})
    assert len(said) == 1 and said[0].startswith("logs.enabled is true and the store is external: name its addresses")


@pytest.mark.parametrize(
    "value",
    ["retentionDays=0", "flushEvery=2m", "queue.sizeMiB=1", "queue.path=/", "collector=fluentd", "bucket=A", "odd=1"],
)
def test_a_wrong_value_is_refused_by_name(render: Rendering, value: str) -> None:
    assert value.partition("=")[0].rpartition(".")[2] in render.refusal(sets=[*ON, f"logs.{value}"])
