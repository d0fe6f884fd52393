"""Monitoring: off, it renders nothing; on, its parts have least rights, and its programs accept their configuration."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from found import named, one, pod_of
from monitored import SERVICES, TEAMS, WORKLOADS, on

from rendering import Objects, Rendering
from trainyard import components
from trainyard.chart import helm
from trainyard.components import MONITORING
from trainyard.kinds import registry
from trainyard.shell import run
from trainyard_agent.exporter import certificates, looking
from trainyard_dev import tools
from trainyard_dev.chart import package, parts
from trainyard_dev.tools import build
from trainyard_dev.versions import load

OURS = tuple(SERVICES)


@pytest.fixture(scope="module")
def objects(with_monitoring: dict[str, Objects]) -> Objects:
    return with_monitoring["kind"]


def test_off_nothing_of_it_is_there(
    rendered: dict[str, Objects], render: Rendering, with_monitoring: dict[str, Objects]
) -> None:
    for profile, found in rendered.items():
        assert not [name for _, _, name in named(found) if any(ours in name for ours in OURS)], profile
    # On, it adds objects; those that were there stay, but for the network policy of the platform and the setup job.
    before, after = named(render(on() | {MONITORING: {"enabled": False}})), named(with_monitoring["kind"])
    assert before.keys() <= after.keys()
    same = {
        key: obj for key, obj in before.items() if "BEGIN CERTIFICATE" not in json.dumps(obj) and key[0] != "Secret"
    }
    changed = {(kind, name) for (kind, space, name), obj in same.items() if after[kind, space, name] != obj}
    authority = {("StatefulSet", "trainyard-minio")}  # a new one with each rendering that has no cluster
    assert changed - authority == {("NetworkPolicy", "trainyard-not-from-teams"), ("Job", "trainyard-setup")}


def test_services_have_the_names_and_ports_that_others_know(objects: Objects) -> None:
    for name, port in SERVICES.items():
        service = one(objects, "Service", name)
        assert [p["port"] for p in service["spec"]["ports"]] == [port]
        selector = service["spec"]["selector"]
        assert selector["app.kubernetes.io/name"] == name.removeprefix("trainyard-")
        pods = [obj for obj in objects if obj["kind"] in WORKLOADS
                and selector.items() <= obj["spec"]["template"]["metadata"].get("labels", {}).items()]  # fmt: skip
        assert [obj["metadata"]["name"] for obj in pods] == [name]
        [spec] = helm.pod_specs(pods[0])
        assert port in {p["containerPort"] for c in spec["containers"] for p in c["ports"]}


def test_kube_state_metrics_asks_for_no_more_than_it_may_read(objects: Objects) -> None:
    role = one(objects, "ClusterRole", "trainyard-kube-state-metrics")
    readable = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert not readable & {"secrets", "configmaps"}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list", "watch"}
    [container] = pod_of(objects, "Deployment", "trainyard-kube-state-metrics")["containers"]
    [asked] = [arg.partition("=")[2].split(",") for arg in container["args"] if arg.startswith("--resources=")]
    assert set(asked) == readable


def test_the_exporter_may_list_and_watch_exactly_what_it_reads(objects: Objects) -> None:
    given = {
        (group, resource): sorted(rule["verbs"])
        for rule in one(objects, "ClusterRole", "trainyard-exporter")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    jobs = [f"{kind.api_version}/{kind.plural}" for kind in registry.KINDS]
    watched = {}
    for source in looking.sources([], (), jobs):
        parts = source.path.strip("/").split("/")
        watched["" if parts[0] == "api" else parts[1], parts[-1]] = ["list", "watch"]
    assert given == watched | {("admissionregistration.k8s.io", kind): ["list"] for kind in certificates.KINDS}


def test_the_exporter_may_read_two_objects_by_their_names_and_no_secret(objects: Objects) -> None:
    rules = one(objects, "Role", "trainyard-exporter")["rules"]
    assert [(rule["resources"], rule["resourceNames"], rule["verbs"]) for rule in rules] == [
        (["cronjobs"], ["trainyard-backup"], ["get"]),
        (["configmaps"], ["trainyard-keys"], ["get"]),
    ]


def test_node_exporter_sees_the_host_read_only(objects: Objects) -> None:
    spec = pod_of(objects, "DaemonSet", "trainyard-node-exporter")
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    host = {volume["name"] for volume in spec["volumes"] if "hostPath" in volume}
    mounts = {mount["name"]: mount for container in spec["containers"] for mount in container["volumeMounts"]}
    assert all(mounts[name]["readOnly"] for name in host)
    assert spec["automountServiceAccountToken"] is False


def test_images_are_pinned_and_come_by_the_mirror(render: Rendering) -> None:
    sets = ["monitoring.enabled=true", "global.imageRegistry=registry.example.org/mirror"]
    refs = {image.ref: image for image in render.images(*sets)}
    for name in components.find(MONITORING).images:
        assert refs[load().image(name)].pulled.startswith("registry.example.org/mirror/")


def test_teams_reach_none_of_it(objects: Objects) -> None:
    policies = {o["metadata"]["name"]: o["spec"] for o in objects if o["kind"] == "NetworkPolicy"}
    for name in SERVICES:
        sources = [source for rule in policies[name]["ingress"] for source in rule["from"]]
        assert all(set(source) == {"podSelector"} for source in sources), f"{name}: of this namespace alone"
        assert set(policies[name]["policyTypes"]) == {"Ingress", "Egress"}
    [left_out] = policies["trainyard-not-from-teams"]["podSelector"]["matchExpressions"]
    assert {name.removeprefix("trainyard-") for name in SERVICES} <= set(left_out["values"]), (
        "they would be opened there"
    )
    for team in TEAMS:
        words = json.dumps([o["spec"] for o in objects if o["kind"] == "NetworkPolicy"
                            and o["metadata"]["namespace"] == team["name"]])  # fmt: skip
        assert not any(name.removeprefix("trainyard-") in words for name in SERVICES)


def test_the_key_of_the_store_stays_out_of_prometheus(with_monitoring: dict[str, Objects]) -> None:
    for profile, found in with_monitoring.items():
        spec = pod_of(found, "StatefulSet", "trainyard-prometheus")
        held = [c["name"] for c in spec["containers"] if "METRICS_SECRET_KEY" in json.dumps(c.get("env", []))]
        assert held == []
        asked = ("Secret", "trainyard-system", "trainyard-prometheus-store") in named(found)
        assert asked == bool(spec.get("initContainers")) == (profile in ("kind", "services")), profile


def test_rules_thresholds_and_dashboards_are_taken_up(chart: Path, tmp_path: Path) -> None:
    copy = tmp_path / "chart"
    shutil.copytree(chart, copy)
    files = copy / "charts" / MONITORING / "files"
    for folder in ("rules", "dashboards"):
        shutil.rmtree(files / folder, ignore_errors=True)
        (files / folder).mkdir()
    words = {"summary": "{{ $labels.job }} is down", "runbook_url": "docs/runbooks/x.md"}
    alert = {"alert": "X", "expr": "up == 0", "labels": {"severity": "warning"}, "annotations": words}
    (files / "rules" / "x.yaml").write_text(yaml.safe_dump({"groups": [{"name": "x", "rules": [alert]}]}))
    (files / "dashboards" / "x.json").write_text('{"title": "X {{ job }}"}')
    found = package.render("kind", copy, ["monitoring.enabled=true"])
    rules = one(found, "ConfigMap", "trainyard-prometheus-rules")["data"]
    assert yaml.safe_load(rules["x.yaml"])["groups"][0]["rules"] == [alert]
    dashboard = one(found, "ConfigMap", "trainyard-dashboard-x")
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(dashboard["data"]["trainyard-x.json"]) == {"title": "X {{ job }}"}
    sets = ["monitoring.enabled=true", "monitoring.operator.enabled=true", "monitoring.dashboards.enabled=false"]
    found = package.render("kind", copy, sets)
    assert one(found, "PrometheusRule", "trainyard-x")["spec"]["groups"][0]["rules"] == [alert]
    assert not [obj for obj in found if "grafana_dashboard" in obj["metadata"].get("labels", {})]


def test_the_release_holds_it(render: Rendering) -> None:
    """With all its rules and dashboards the release still fits its Secret."""
    assert package.release_secret_size("kind", render.chart, render.files(on())) < package.RELEASE_LIMIT


# What the programs themselves say of it: where they are built, which nothing here does for it.


def built(name: str) -> Path:
    if not build.is_built(build.builder(name)):
        pytest.skip(f"{name} is not built; `bin/trainyard tools path {name}` builds it")
    return tools.binary(name)


@pytest.mark.parametrize("profile", parts.profiles())
def test_prometheus_takes_its_configuration(with_monitoring: dict[str, Objects], profile: str, tmp_path: Path) -> None:
    account = tmp_path / "account"
    account.mkdir()
    for name in ("token", "ca.crt"):
        (account / name).write_text("")
    text = one(with_monitoring[profile], "ConfigMap", "trainyard-prometheus")["data"]["prometheus.yml"]
    rules = tmp_path / "rules"
    rules.mkdir()
    for name, rule in one(with_monitoring[profile], "ConfigMap", "trainyard-prometheus-rules")["data"].items():
        (rules / name).write_text(rule)
    text = text.replace("/var/run/secrets/kubernetes.io/serviceaccount", str(account))
    text = text.replace("/etc/prometheus/rules", str(rules))
    file = tmp_path / "prometheus.yml"
    file.write_text(text)
    run([built("promtool"), "check", "config", file])


def test_alertmanager_takes_its_configuration(objects: Objects, tmp_path: Path) -> None:
    file = tmp_path / "alertmanager.yaml"
    file.write_text(one(objects, "Secret", "trainyard-alertmanager")["stringData"]["alertmanager.yaml"])
    run([built("amtool"), "check-config", file])
