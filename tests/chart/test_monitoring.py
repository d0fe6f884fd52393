"""Monitoring: off it is not there, on it asks everybody who has series, by least rights; wrong values are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard import components
from trainyard.chart import helm
from trainyard.components import MONITORING
from trainyard.paths import ROOT
from trainyard.rightsize import values as sizes
from trainyard.shell import run
from trainyard_dev import tools
from trainyard_dev.chart import images, package, parts
from trainyard_dev.monitoring import rules
from trainyard_dev.tools import build
from trainyard_dev.versions import load

Objects = list[dict[str, Any]]
TEAMS = [{"name": "vision", "gid": 20001}, {"name": "speech", "gid": 20002}]
S3 = {"network": {"s3": [{"cidr": "192.0.2.0/24", "port": 443}]}}
SERVICES = {
    "trainyard-prometheus": 9090,
    "trainyard-alertmanager": 9093,
    "trainyard-kube-state-metrics": 8080,
    "trainyard-node-exporter": 9100,
    "trainyard-exporter": 9400,
}
OURS = tuple(SERVICES)
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")
OPTIONS = ["logs.enabled=true", "metrics-server.enabled=true", "login.enabled=true", "global.contract.login.issuer=https://login.example.org",
           "login.people[0].email=ada@example.org"]  # fmt: skip


def on(**values: Any) -> dict[str, Any]:
    return {"global": {"contract": {"teams": TEAMS, **S3}}, MONITORING: {"enabled": True, **values}}


@pytest.fixture(scope="module")
def switched(chart: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Objects]:
    """Every profile with monitoring on and two teams."""
    file = tmp_path_factory.mktemp("values") / "values.yaml"
    file.write_text(yaml.safe_dump(on()))
    return {profile: package.render(profile, chart, values=[file]) for profile in parts.profiles()}


@pytest.fixture(scope="module")
def objects(switched: dict[str, Objects]) -> Objects:
    return switched["kind"]


def one(objects: Objects, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    [found] = [
        obj for obj in objects
        if (obj["kind"], obj["metadata"]["name"]) == (kind, name)
        and (not namespace or obj["metadata"]["namespace"] == namespace)
    ]  # fmt: skip
    return found


def config_of(objects: Objects) -> dict[str, Any]:
    return dict(yaml.safe_load(one(objects, "ConfigMap", "trainyard-prometheus")["data"]["prometheus.yml"]))


def named(objects: Objects) -> set[tuple[str, str, str]]:
    return {(o["kind"], o["metadata"]["name"], o["metadata"].get("namespace", "")) for o in objects}


def test_off_nothing_of_it_is_there(
    rendered: dict[str, Objects], chart: Path, tmp_path: Path, switched: dict[str, Objects]
) -> None:
    for profile, found in rendered.items():
        assert not [name for name in named(found) if any(ours in name[1] for ours in OURS)], profile
    # On, it adds objects; those that were there stay, but for the network policy of the platform and the setup job.
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(on() | {MONITORING: {"enabled": False}}))
    before = {key: obj for obj in package.render("kind", chart, values=[file]) for key in named([obj])}
    after = {key: obj for obj in switched["kind"] for key in named([obj])}
    assert before.keys() <= after.keys()
    same = {
        key: obj for key, obj in before.items() if "BEGIN CERTIFICATE" not in json.dumps(obj) and key[0] != "Secret"
    }
    changed = {key[:2] for key, obj in same.items() if after[key] != obj}
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
    """What discovery says of a pod of this workload."""
    labels = obj["spec"]["template"]["metadata"]["labels"]
    said = {f"__meta_kubernetes_pod_label_{re.sub('[^a-zA-Z0-9_]', '_', key)}": value for key, value in labels.items()}
    return said | {
        "__address__": address, "__meta_kubernetes_pod_ip": address, "__meta_kubernetes_pod_phase": phase,
        "__meta_kubernetes_pod_name": obj["metadata"]["name"] + "-0", "__meta_kubernetes_pod_node_name": "n1",
        "__meta_kubernetes_namespace": "trainyard-system",
    }  # fmt: skip


@pytest.fixture(scope="module")
def everything(chart: Path, tmp_path_factory: pytest.TempPathFactory) -> Objects:
    """With logs and metrics-server, too."""
    file = tmp_path_factory.mktemp("values") / "values.yaml"
    file.write_text(yaml.safe_dump(on()))
    return package.render("kind", chart, OPTIONS, values=[file])


def test_what_runs_all_the_time_can_be_sized_by_a_value(everything: Objects) -> None:
    """`trainyard rightsize --components` proposes it; of these alone nobody may choose."""
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
        "volcano-scheduler": {"trainyard-scheduler"},
        "volcano-controllers": {"trainyard-controllers"},
        "training-operator": {"trainyard-training-operator"},
        "workflow-controller": {f"trainyard-workflow-controller-{team['name']}" for team in TEAMS},
        "nfs-provisioner": {"trainyard-nfs-provisioner"},
        "dcgm": {"trainyard-mock-dcgm"},
        "logs": {"trainyard-logs"},
        "metrics-server": {"trainyard-metrics-server"},
        "login": {"trainyard-login"},
        **{name.removeprefix("trainyard-"): {name} for name in SERVICES},
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


def test_kubelets_are_asked_without_the_right_to_run_commands(switched: dict[str, Objects]) -> None:
    for profile, found in switched.items():
        role = one(found, "ClusterRole", "trainyard-prometheus")
        rights = {resource for rule in role["rules"] for resource in rule.get("resources", [])}
        assert rights == {"nodes", "nodes/metrics"}, profile
        jobs = {job["job_name"]: job for job in config_of(found)["scrape_configs"]}
        assert jobs["cadvisor"]["kubernetes_sd_configs"] == [{"role": "node"}]
        insecure = jobs["cadvisor"]["tls_config"].get("insecure_skip_verify", False)
        assert insecure == (profile == "kind")


def test_kube_state_metrics_asks_for_no_more_than_it_may_read(objects: Objects) -> None:
    role = one(objects, "ClusterRole", "trainyard-kube-state-metrics")
    readable = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert not readable & {"secrets", "configmaps"}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list", "watch"}
    [container] = helm.pod_specs(one(objects, "Deployment", "trainyard-kube-state-metrics"))[0]["containers"]
    [asked] = [arg.partition("=")[2].split(",") for arg in container["args"] if arg.startswith("--resources=")]
    assert set(asked) == readable


def test_node_exporter_sees_the_host_read_only(objects: Objects) -> None:
    [spec] = helm.pod_specs(one(objects, "DaemonSet", "trainyard-node-exporter"))
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    host = {volume["name"] for volume in spec["volumes"] if "hostPath" in volume}
    mounts = {mount["name"]: mount for container in spec["containers"] for mount in container["volumeMounts"]}
    assert all(mounts[name]["readOnly"] for name in host)
    assert spec["automountServiceAccountToken"] is False


def test_images_are_pinned_and_come_by_the_mirror(chart: Path) -> None:
    sets = ["monitoring.enabled=true", "global.imageRegistry=registry.example.org/mirror"]
    refs = {image.ref: image for image in images.listed("kind", chart=chart, sets=sets)}
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


def test_every_endpoint_is_closed_to_teams_and_open_to_the_site_s_prometheus(chart: Path, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(on(operator={"enabled": True})))
    objects = package.render("kind", chart, ["logs.enabled=true"], values=[file])
    policies = [o["spec"] for o in objects if o["kind"] == "NetworkPolicy"
                and o["metadata"]["namespace"] == "trainyard-system"]  # fmt: skip
    for endpoint in components.endpoints():
        for obj in (obj for obj in objects if obj["kind"] in WORKLOADS):
            if endpoint["pods"].items() <= obj["spec"]["template"]["metadata"]["labels"].items():
                assert lets_in(policies, obj, {"kubernetes.io/metadata.name": "monitoring"}), obj["metadata"]["name"]
                assert not lets_in(policies, obj, {"trainyard.io/team": "vision"}), obj["metadata"]["name"]


def test_the_key_of_the_store_stays_out_of_prometheus(switched: dict[str, Objects]) -> None:
    for profile, found in switched.items():
        [spec] = helm.pod_specs(one(found, "StatefulSet", "trainyard-prometheus"))
        held = [c["name"] for c in spec["containers"] if "METRICS_SECRET_KEY" in json.dumps(c.get("env", []))]
        assert held == []
        asked = ("Secret", "trainyard-prometheus-store", "trainyard-system") in named(found)
        assert asked == bool(spec.get("initContainers")) == (profile in ("kind", "services")), profile


def test_rules_thresholds_and_dashboards_are_taken_up(chart: Path, tmp_path: Path) -> None:
    import shutil

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


def test_with_the_operator_the_site_s_prometheus_asks(render: Callable[..., Objects]) -> None:
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
def test_dcgm_is_asked_where_the_site_has_it(render: Callable[..., Objects], labels: dict[str, str]) -> None:
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


@pytest.mark.parametrize(
    ("every", "timeout"), [("5s", "5s"), ("7s", "5s"), ("10s", "10s"), ("55s", "10s"), ("2m", "10s")]
)
def test_an_answer_is_not_awaited_longer_than_until_the_next_question(
    render: Callable[..., Objects], every: str, timeout: str
) -> None:
    said = config_of(render(on(prometheus={"scrapeEvery": every})))["global"]
    assert (said["scrape_interval"], said["scrape_timeout"]) == (every, timeout)


def test_alerts_without_a_threshold_are_those_that_the_rules_have() -> None:
    """Of all others a threshold is taken up."""
    said = {str(rule["labels"]["alert"]) for rule in rules.all_rules() if rule.get("record") == rules.THRESHOLD}
    refusing = (ROOT / "charts" / "trainyard" / "templates" / "_validate-monitoring.tpl").read_text()
    assert set(re.findall(r'"(Trainyard\w+)"', refusing)) == set(rules.names()) - said


ROUTE = {"receiver": "ops", "routes": [{"receiver": "night", "matchers": ['team="vision"']}]}
REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"prometheus": {"retentionSize": "20Gi", "storage": {"size": "20Gi", "class": ""}}},
        "monitoring.prometheus.retentionSize is 20Gi, of a volume of 20Gi: the volume would be full first; "
        "make storage.size larger, or leave retentionSize empty.",
    ),
    (
        {"prometheus": {"enabled": False}},
        "monitoring.alertmanager.enabled is true and monitoring.prometheus.enabled is false: "
        "nobody would send it alerts; set alertmanager.enabled to false, too.",
    ),
    (
        {"kubeStateMetrics": {"enabled": False}},
        "monitoring.kubeStateMetrics.enabled is false: our Prometheus asks no other, so that alerts on nodes, "
        "controllers and backups could not fire; leave it true.",
    ),
    (
        {"alerts": {"rules": {"TrainyardNodeLost": {"threshold": 600}}}},
        "monitoring.alerts.rules.TrainyardNodeLost.threshold is 600, and this alert compares with none: "
        "leave it out, or set `for`.",
    ),
    (
        {"mockGpus": {"enabled": True}, "dcgm": {"namespace": "gpu-operator"}},
        "monitoring.mockGpus.enabled is true and monitoring.dcgm.namespace is gpu-operator: "
        "mock GPUs have no DCGM exporter; switch mockGpus off where GPUs are real.",
    ),
    (
        {"alertmanager": {"config": {"route": ROUTE, "receivers": [{"name": "ops"}]}}},
        "monitoring.alertmanager.config has a route to night, which is none of its receivers (ops): "
        "add it, or name one of these.",
    ),
    (
        {"alertmanager": {"config": {"route": {"receiver": None}, "receivers": [{"name": "ops"}]}}},
        "monitoring.alertmanager.config.route has no receiver: name one of receivers for what no other route takes.",
    ),
    (
        {"alertmanager": {"config": {"receivers": [{"slack_configs": []}], "route": {"receiver": "ops"}}}},
        "monitoring.alertmanager.config.receivers[0] has no name: a receiver has one, by which routes mean it.",
    ),
]


@pytest.mark.parametrize(("values", "said"), REFUSED)
def test_values_that_can_t_work_are_refused_by_a_sentence(
    validation_errors: Callable[..., list[str]], values: dict[str, Any], said: str
) -> None:
    assert said in validation_errors({MONITORING: {"enabled": True, **values}})
    assert not [line for line in validation_errors({MONITORING: {**values, "enabled": False}}) if "monitoring" in line]


def test_a_receiver_of_the_site_s_own_secret_is_not_looked_into(render: Callable[..., Objects]) -> None:
    found = render(on(alertmanager={"secret": "receivers", "config": {"route": {"receiver": "elsewhere"}}}))
    assert ("Secret", "trainyard-alertmanager", "trainyard-system") not in named(found)
    [spec] = helm.pod_specs(one(found, "StatefulSet", "trainyard-alertmanager"))
    assert spec["volumes"][0]["secret"]["secretName"] == "receivers"


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


def test_a_team_gives_no_series_of_gpus(validation_errors: Callable[..., list[str]]) -> None:
    teams = {"contract": {"teams": [{"name": "vision", "gid": 20001}]}}
    said = validation_errors({"global": teams, MONITORING: {"enabled": True, "dcgm": {"namespace": "vision"}}})
    assert any(line.startswith("monitoring.dcgm.namespace is vision, a team's") for line in said)


def test_the_release_holds_it(chart: Path, tmp_path: Path) -> None:
    """With all its rules and dashboards the release still fits its Secret."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(on()))
    assert package.release_secret_size("kind", chart, [file]) < package.RELEASE_LIMIT


# What the programs themselves say of it: where they are built, which nothing here does for it.


def built(name: str) -> Path:
    if not build.is_built(build.builder(name)):
        pytest.skip(f"{name} is not built; `bin/trainyard tools path {name}` builds it")
    return tools.binary(name)


@pytest.mark.parametrize("profile", parts.profiles())
def test_prometheus_takes_its_configuration(switched: dict[str, Objects], profile: str, tmp_path: Path) -> None:
    account = tmp_path / "account"
    account.mkdir()
    for name in ("token", "ca.crt"):
        (account / name).write_text("")
    text = one(switched[profile], "ConfigMap", "trainyard-prometheus")["data"]["prometheus.yml"]
    rules = tmp_path / "rules"
    rules.mkdir()
    for name, rule in one(switched[profile], "ConfigMap", "trainyard-prometheus-rules")["data"].items():
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
