"""Prometheus' targets: every endpoint of every component and no other pod, for ours and a site's by its operator."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from found import one
from monitored import SERVICES, TEAMS, WORKLOADS, config_of, on

from rendering import Objects, Rendering
from trainyard import components
from trainyard.chart import helm
from trainyard.rightsize import values as sizes
from trainyard_dev.chart import options

OPTIONS = options.switched(*options.OPTIONS)


@pytest.fixture(scope="module")
def objects(with_monitoring: dict[str, Objects]) -> Objects:
    return with_monitoring["kind"]


def test_every_endpoint_of_every_component_is_asked(objects: Objects) -> None:
    jobs = {job["job_name"]: job for job in config_of(objects)["scrape_configs"]}
    assert set(jobs) == {str(e["name"]) for e in components.endpoints()} | {"apiserver", "kubelet", "cadvisor"}
    for endpoint in components.endpoints():
        job = jobs[endpoint["name"]]
        assert (job["metrics_path"], job["scheme"]) == (endpoint["path"], endpoint["scheme"])
        assert job.get("honor_labels", False) == endpoint["honor"]
        assert "authorization" not in job
        assert ("tls_config" in job) == (endpoint["scheme"] == "https")
        assert f"$1:{endpoint['port']}" in [rule.get("replacement") for rule in job["relabel_configs"]]


def relabelled(rules: list[dict[str, Any]], labels: dict[str, str]) -> dict[str, str] | None:
    """The labels of a target as Prometheus makes them, without those of two underscores; None when it is dropped."""
    labels = dict(labels)
    for rule in rules:
        value = ";".join(labels.get(source, "") for source in rule.get("source_labels", []))
        match = re.fullmatch(rule.get("regex", "(.*)"), value, re.S)
        action = rule.get("action", "replace")
        if (action == "keep" and not match) or (action == "drop" and match):
            return None
        if action == "replace" and match:
            text = re.sub(r"\$(\d)", lambda found, match=match: match[int(found[1])], rule.get("replacement", "$1"))
            labels[rule["target_label"]] = text
    address = labels["__address__"]
    return {key: value for key, value in labels.items() if not key.startswith("__") and value} | {"address": address}


def meta_of(obj: dict[str, Any], address: str, phase: str = "Running") -> dict[str, str]:
    """The meta labels that discovery gives a pod of this workload."""
    labels = obj["spec"]["template"]["metadata"]["labels"]
    said = {f"__meta_kubernetes_pod_label_{re.sub('[^a-zA-Z0-9_]', '_', key)}": value for key, value in labels.items()}
    return said | {
        "__address__": address, "__meta_kubernetes_pod_ip": address, "__meta_kubernetes_pod_phase": phase,
        "__meta_kubernetes_pod_name": obj["metadata"]["name"] + "-0", "__meta_kubernetes_pod_node_name": "n1",
        "__meta_kubernetes_namespace": "trainyard-system",
    }  # fmt: skip


@pytest.fixture(scope="module")
def everything(render: Rendering) -> Objects:
    """The objects with every option that has its own series."""
    return render(on(), sets=OPTIONS)


def test_what_runs_all_the_time_can_be_sized_by_a_value(everything: Objects) -> None:
    """`trainyard rightsize --components` proposes it; only these have no such value."""
    pods = [spec for obj in everything if obj["kind"] in WORKLOADS for spec in helm.pod_specs(obj)]
    names = {container["name"] for spec in pods for container in spec["containers"]}
    assert {name for name in names if not sizes.place(name)} == {"launcher-webhook", "mock-dcgm"}


def test_each_endpoint_means_pods_that_are_there_and_no_others(everything: Objects) -> None:
    objects = everything
    workloads = [obj for obj in objects if obj["kind"] in WORKLOADS]
    jobs = {job["job_name"]: job for job in config_of(objects)["scrape_configs"]}
    taken: dict[str, set[str]] = {}
    for endpoint in components.endpoints():
        rules = jobs[endpoint["name"]]["relabel_configs"]
        found = {obj["metadata"]["name"]: relabelled(rules, meta_of(obj, "10.0.0.7")) for obj in workloads}
        taken[endpoint["name"]] = {name for name, target in found.items() if target}
        for target in found.values():
            assert not target or target["address"] == f"10.0.0.7:{endpoint['port']}"
            assert not target or target["job"] == endpoint["name"]
            assert not target or ("pod" in target) == (not endpoint["honor"])
        [some] = [obj for obj in workloads if obj["metadata"]["name"] == min(taken[endpoint["name"]])]
        six = relabelled(rules, meta_of(some, "fd00::7"))
        assert six and six["address"] == f"[fd00::7]:{endpoint['port']}"
        assert relabelled(rules, meta_of(some, "10.0.0.7", "Succeeded")) is None
        assert relabelled(rules, meta_of(some, "")) is None, "it has no address yet"
    assert taken == {
        **{endpoint["name"]: {f"trainyard-{endpoint['name']}"} for endpoint in components.endpoints()},
        "training-operator": {"trainyard-training-operator"},
        "nfs-provisioner": {"trainyard-nfs-provisioner"},
        "logs": {"trainyard-logs"},
        "metrics-server": {"trainyard-metrics-server"},
        "login": {"trainyard-login"},
        **{name.removeprefix("trainyard-"): {name} for name in SERVICES},
        "volcano-scheduler": {"trainyard-scheduler"},
        "volcano-controllers": {"trainyard-controllers"},
        "workflow-controller": {f"trainyard-workflow-controller-{team['name']}" for team in TEAMS},
        "dcgm": {"trainyard-mock-dcgm"},
    }
    argo = one(objects, "Deployment", "trainyard-workflow-controller-speech")
    target = relabelled(jobs["workflow-controller"]["relabel_configs"], meta_of(argo, "10.0.0.7"))
    assert target and target["team"] == "speech"


def test_ports_that_are_asked_are_those_that_pods_declare(objects: Objects) -> None:
    """Where they declare any; Volcano's pods declare none."""
    workloads = [obj for obj in objects if obj["kind"] in WORKLOADS]
    for endpoint in components.endpoints():
        for obj in workloads:
            if endpoint["pods"].items() <= obj["spec"]["template"]["metadata"]["labels"].items():
                containers = [c for spec in helm.pod_specs(obj) for c in spec["containers"]]
                declared = {p["containerPort"] for c in containers for p in c.get("ports", [])}
                assert not declared or endpoint["port"] in declared, obj["metadata"]["name"]


def test_kubelets_are_asked_without_the_right_to_run_commands(with_monitoring: dict[str, Objects]) -> None:
    for profile, found in with_monitoring.items():
        role = one(found, "ClusterRole", "trainyard-prometheus")
        rights = {resource for rule in role["rules"] for resource in rule.get("resources", [])}
        assert rights == {"nodes", "nodes/metrics"}, profile
        jobs = {job["job_name"]: job for job in config_of(found)["scrape_configs"]}
        assert jobs["cadvisor"]["kubernetes_sd_configs"] == [{"role": "node"}]
        insecure = jobs["cadvisor"]["tls_config"].get("insecure_skip_verify", False)
        assert insecure == (profile == "kind")


def lets_in(policies: list[dict[str, Any]], obj: dict[str, Any], source: dict[str, str]) -> bool:
    """Whether policies let pods of a namespace with these labels reach a workload's; without any policy all may."""
    labels = obj["spec"]["template"]["metadata"]["labels"]
    own = [policy for policy in policies if fits(policy["podSelector"], labels) and "Ingress" in policy["policyTypes"]]
    asking = [peer for policy in own for rule in policy.get("ingress", []) for peer in rule.get("from", [])]
    return not own or any("namespaceSelector" in peer and fits(peer["namespaceSelector"], source) for peer in asking)


def fits(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether labels are what a selector means."""
    means = {"NotIn": lambda one: labels.get(one["key"]) not in one["values"],
             "DoesNotExist": lambda one: one["key"] not in labels}  # fmt: skip
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        means[one["operator"]](one) for one in selector.get("matchExpressions", [])
    )


def test_every_endpoint_is_closed_to_teams_and_open_to_the_site_s_prometheus(render: Rendering) -> None:
    objects = render(on(operator={"enabled": True}), sets=["logs.enabled=true"])
    policies = [o["spec"] for o in objects if o["kind"] == "NetworkPolicy"
                and o["metadata"]["namespace"] == "trainyard-system"]  # fmt: skip
    for endpoint in components.endpoints():
        for obj in (obj for obj in objects if obj["kind"] in WORKLOADS):
            if endpoint["pods"].items() <= obj["spec"]["template"]["metadata"]["labels"].items():
                assert lets_in(policies, obj, {"kubernetes.io/metadata.name": "monitoring"}), obj["metadata"]["name"]
                assert not lets_in(policies, obj, {"trainyard.io/team": "vision"}), obj["metadata"]["name"]


def test_with_the_operator_the_site_s_prometheus_asks(render: Rendering) -> None:
    found = render(on(operator={"enabled": True, "labels": {"release": "site"}}))
    assert not [obj for obj in found if obj["kind"] == "StatefulSet" and obj["metadata"]["name"] in SERVICES]
    monitors = {obj["metadata"]["name"]: obj for obj in found if obj["kind"] == "PodMonitor"}
    asked = {str(e["name"]) for e in components.endpoints()} - {"prometheus", "alertmanager"}
    assert set(monitors) == {f"trainyard-{name}" for name in asked}
    for obj in monitors.values():
        assert obj["metadata"]["labels"]["release"] == "site"
        [endpoint] = obj["spec"]["podMetricsEndpoints"]
        assert not {"source_labels", "target_label"} & {key for rule in endpoint["relabelings"] for key in rule}
        assert any(rule.get("targetLabel") == "__address__" for rule in endpoint["relabelings"])
    policies = {o["metadata"]["name"]: o["spec"] for o in found if o["kind"] == "NetworkPolicy"}
    [source] = policies["trainyard-exporter"]["ingress"][0]["from"]
    assert "namespaceSelector" in source


@pytest.mark.parametrize("labels", [{"app": "nvidia-dcgm-exporter"}, {"app.kubernetes.io/name": "dcgm-exporter"}])
def test_dcgm_is_asked_where_the_site_has_it(render: Rendering, labels: dict[str, str]) -> None:
    site = {"namespace": "gpu-operator"} | ({} if "app" in labels else {"podLabels": labels})
    found = render(on(dcgm=site, mockGpus={"enabled": False}))
    [job] = [job for job in config_of(found)["scrape_configs"] if job["job_name"] == "dcgm"]
    assert job["honor_labels"] and job["kubernetes_sd_configs"][0]["namespaces"] == {"names": ["gpu-operator"]}
    pod = {"spec": {"template": {"metadata": {"labels": labels}}}, "metadata": {"name": "dcgm"}}
    assert relabelled(job["relabel_configs"], meta_of(pod, "10.0.0.7")) == {
        "job": "dcgm", "instance": "dcgm-0", "address": "10.0.0.7:9400",
    }  # fmt: skip
    assert {"action": "keep", "source_labels": ["__name__"], "regex": "DCGM_FI_.*"} in job["metric_relabel_configs"]
    role = one(found, "Role", "trainyard-prometheus", "gpu-operator")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
    # The GPU operator's own monitor would say of each GPU that it is DCGM's pod's.
    found = render(on(dcgm=site, mockGpus={"enabled": False}, operator={"enabled": True}))
    spec = one(found, "PodMonitor", "trainyard-dcgm")["spec"]
    assert spec["namespaceSelector"] == {"matchNames": ["gpu-operator"]}
    assert spec["selector"] == {"matchLabels": labels}
    assert spec["podMetricsEndpoints"][0]["honorLabels"]


def test_nobody_s_pod_is_asked_because_it_says_so(objects: Objects) -> None:
    """By labels in the release's namespace alone, where members make nothing; annotations count nowhere."""
    for job in config_of(objects)["scrape_configs"]:
        for found in job["kubernetes_sd_configs"]:
            places = {"pod": ["trainyard-system"], "endpointslice": ["default"]}.get(found["role"])
            assert found["role"] == "node" or found["namespaces"] == {"names": places}, job["job_name"]
        assert "annotation" not in json.dumps(job), job["job_name"]
    bound = [obj for obj in objects if obj["kind"] == "RoleBinding"
             and any(subject["name"] == "trainyard-prometheus" for subject in obj["subjects"])]  # fmt: skip
    assert {obj["metadata"]["namespace"] for obj in bound} == {"trainyard-system", "default"}
