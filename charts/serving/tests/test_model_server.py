"""charts/model-server: one model's objects, its scaling and access, and the errors about wrong values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import rendering
from trainyard.chart import helm
from trainyard.errors import TrainyardError
from trainyard.serving.render import CHART, KUBERNETES

KEY = "a" * 64
VALUES: dict[str, Any] = {
    "model": {
        "name": "digits",
        "version": "v3",
        "source": {"bucket": "runs/vision/models/digits/v3"},
        "digest": f"sha256:{'b' * 64}",
    },
    "image": {"reference": "site.invalid/trainyard/server-torch:0.4.0"},
    "fetch": {"image": "site.invalid/trainyard/platform:0.4.0"},
}
OUTSIDE = {"access": {"from": "outside", "keys": [KEY]}}
CANARY = {"canary": {"version": "v4", "source": {"bucket": "runs/vision/models/digits/v4"}, "share": 25}}
Objects = list[dict[str, Any]]


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    found = dict(base)
    for key, value in over.items():
        found[key] = merged(found[key], value) if isinstance(value, dict) and key in found else value
    return found


@pytest.fixture
def rendered(tmp_path: Path) -> Any:
    def go(**over: Any) -> Objects:
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump(merged(VALUES, over)))
        words = ("template", "model", CHART, "-n", "vision", "--kube-version", KUBERNETES, "-f", file)
        return helm.parse(helm.call(*words))

    return go


def one(objects: Objects, kind: str, name: str = "model-digits") -> dict[str, Any]:
    return rendering.one(objects, kind, name)


def kinds(objects: Objects) -> list[str]:
    return sorted(obj["kind"] for obj in objects)


def test_a_model_is_a_deployment_a_service_and_a_bound_on_disruption(rendered: Any) -> None:
    objects = rendered()
    assert kinds(objects) == ["Deployment", "PodDisruptionBudget", "Service"]
    assert {obj["metadata"]["namespace"] for obj in objects} == {"vision"}
    deployment = one(objects, "Deployment")
    spec = deployment["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    selector = one(objects, "Service")["spec"]["selector"]
    assert selector.items() <= spec["template"]["metadata"]["labels"].items()


def test_requests_come_to_a_warm_server_alone_and_end_before_it_does(rendered: Any) -> None:
    pod = one(rendered(rollout={"preStopSeconds": 7, "drainSeconds": 40}), "Deployment")["spec"]["template"]["spec"]
    [server] = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in server["ports"]}
    for probe in ("startupProbe", "readinessProbe"):
        ask = server[probe]["httpGet"]
        assert (ask["path"], ports[ask["port"]]) == ("/readyz", 8081)
    env = {entry["name"]: entry.get("value") for entry in server["env"]}
    assert server["lifecycle"]["preStop"] == {"sleep": {"seconds": 7}} and env["GRACE_S"] == "40"
    assert pod["terminationGracePeriodSeconds"] > 7 + int(env["DRAIN_S"]) + 40


def test_the_server_only_reads_its_model_and_has_no_token_and_no_root(rendered: Any) -> None:
    pod = one(rendered(), "Deployment")["spec"]["template"]["spec"]
    [init], [server] = pod["initContainers"], pod["containers"]
    assert f"--digest=sha256:{'b' * 64}" in init["args"] and "--from=s3://runs/vision/models/digits/v3" in init["args"]
    assert {mount["mountPath"]: mount.get("readOnly") for mount in server["volumeMounts"]} == {
        "/model": True,
        "/tmp": None,
    }
    assert not any(entry["name"].startswith("S3_") for entry in server["env"])  # only who brings it reaches the store
    assert pod["automountServiceAccountToken"] is False and pod["securityContext"]["runAsNonRoot"] is True
    for container in (init, server):
        assert container["securityContext"]["readOnlyRootFilesystem"] and "memory" in container["resources"]["limits"]


def test_a_claim_takes_the_place_of_the_store(rendered: Any) -> None:
    source = {"bucket": "", "claim": "workspace", "path": "models/digits"}
    pod = one(rendered(model={"source": source}), "Deployment")["spec"]["template"]["spec"]
    assert "--from=/claim/models/digits" in pod["initContainers"][0]["args"]
    assert not any(entry["name"].startswith("S3_") for entry in pod["initContainers"][0]["env"])
    assert {"name": "claim", "persistentVolumeClaim": {"claimName": "workspace", "readOnly": True}} in pod["volumes"]


@pytest.mark.parametrize(
    ("replicas", "share", "stable", "canary"),
    [(2, 25, 1, 1), (4, 25, 3, 1), (8, 25, 6, 2), (10, 1, 9, 1), (3, 99, 1, 2), (4, 50, 2, 2)],
)
def test_a_canary_has_its_share_of_the_replicas(
    rendered: Any, replicas: int, share: int, stable: int, canary: int
) -> None:
    objects = rendered(replicas=replicas, canary={**CANARY["canary"], "share": share})
    first, second = one(objects, "Deployment"), one(objects, "Deployment", "model-digits-canary")
    assert (first["spec"]["replicas"], second["spec"]["replicas"]) == (stable, canary)
    # One Service finds both, and neither Deployment the other's pods.
    selector = one(objects, "Service")["spec"]["selector"]
    pods = [obj["spec"]["template"]["metadata"]["labels"] for obj in (first, second)]
    assert all(selector.items() <= labels.items() for labels in pods)
    assert [first["spec"]["selector"]["matchLabels"].items() <= labels.items() for labels in pods] == [True, False]
    env = second["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "MODEL_VERSION", "value": "v4"} in env


def test_keys_are_there_as_digests_and_open_a_service_of_their_own(rendered: Any) -> None:
    objects = rendered(**OUTSIDE)
    assert json.loads(one(objects, "ConfigMap", "model-digits-keys")["data"]["keys.json"]) == [KEY]
    template = one(objects, "Deployment")["spec"]["template"]
    env = {entry["name"]: entry.get("value") for entry in template["spec"]["containers"][0]["env"]}
    assert env["KEYS_FILE"] == "/etc/model-server/keys.json"
    outside = one(objects, "Service", "model-digits-outside")["spec"]
    assert outside["type"] == "NodePort" and outside["selector"]["trainyard.io/access"] == "outside"
    assert outside["selector"].items() <= template["metadata"]["labels"].items()
    assert one(objects, "Service")["spec"].get("type", "ClusterIP") == "ClusterIP"


@pytest.mark.parametrize(
    ("by", "kind", "type_"),
    [("nodePort", "", "NodePort"), ("loadBalancer", "", "LoadBalancer"), ("ingress", "Ingress", "ClusterIP"),
     ("gateway", "HTTPRoute", "ClusterIP")],
)  # fmt: skip
def test_every_way_in_leads_to_the_service_behind_keys(rendered: Any, by: str, kind: str, type_: str) -> None:
    access = {
        **OUTSIDE["access"],
        "by": by,
        "host": "digits.example.org",
        "gateway": {"name": "site", "namespace": "g"},
    }
    objects = rendered(access=access)
    assert one(objects, "Service", "model-digits-outside")["spec"]["type"] == type_
    if kind:
        text = json.dumps(one(objects, kind)["spec"])
        assert '"name": "model-digits-outside"' in text and "digits.example.org" in text
    assert {"Ingress", "HTTPRoute"} & set(kinds(objects)) == ({kind} if kind else set())


@pytest.mark.parametrize(("by", "target"), [("requests", "50"), ("concurrency", "4")])
def test_what_counts_requests_has_the_servers_series(rendered: Any, by: str, target: str) -> None:
    hpa = one(rendered(autoscaling={"by": by}), "HorizontalPodAutoscaler")["spec"]
    assert hpa["metrics"][0]["pods"]["target"] == {"type": "AverageValue", "averageValue": target}
    asked = one(rendered(autoscaling={"by": by, "source": "keda", "prometheus": "http://p:9090"}), "ScaledObject")[
        "spec"
    ]
    [trigger] = asked["triggers"]
    query = trigger["metadata"]["query"]
    assert trigger["metadata"]["threshold"] == target and 'namespace="vision",model="digits"' in query
    names = {"requests": "trainyard_model_requests_total", "concurrency": "trainyard_model_requests_in_flight"}
    assert names[by] in query
    assert _has_series(names[by])


def _has_series(name: str) -> bool:
    """Whether the server's own source makes a series of that name."""
    source = (CHART.parents[1] / "scripts" / "model_server" / "metrics.py").read_text()
    short = name.removeprefix("trainyard_model_").removesuffix("_total")
    return f'"trainyard_model_{short}"' in source or f'"{short}"' in source


def test_cpu_is_counted_by_kubernetes_itself(rendered: Any) -> None:
    spec = one(rendered(autoscaling={"by": "cpu", "min": 1, "max": 4}), "HorizontalPodAutoscaler")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 4)
    assert spec["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
    ]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "model-digits"}


def test_to_no_pod_and_back_goes_by_an_interceptor(rendered: Any) -> None:
    scaling = {"by": "concurrency", "source": "keda-http", "min": 0, "target": 8}
    spec = one(rendered(autoscaling=scaling, access={"host": "digits.example.org"}), "HTTPScaledObject")["spec"]
    assert spec["replicas"] == {"min": 0, "max": 4} and spec["scalingMetric"] == {"concurrency": {"targetValue": 8}}
    assert spec["scaleTargetRef"]["service"] == "model-digits"


def test_kserve_gets_the_same_pod_and_nothing_beside_it(rendered: Any) -> None:
    objects = rendered(inferenceService={"enabled": True}, autoscaling={"by": "requests", "min": 1, "max": 3})
    assert kinds(objects) == ["InferenceService"]
    predictor = objects[0]["spec"]["predictor"]
    assert (predictor["minReplicas"], predictor["maxReplicas"]) == (1, 3)
    assert (predictor["scaleMetric"], predictor["scaleTarget"]) == ("rps", 50)
    pod = one(rendered(), "Deployment")["spec"]["template"]["spec"]
    assert {key: predictor[key] for key in pod} == pod


@pytest.mark.parametrize(("runtime", "path"), [("triton", "/v2/health/ready"), ("vllm", "/health")])
def test_upstreams_servers_take_gpus_of_the_queue(rendered: Any, runtime: str, path: str) -> None:
    gpus = {
        "requests": {"cpu": "1", "memory": "8Gi", "nvidia.com/gpu": 1},
        "limits": {"memory": "8Gi", "nvidia.com/gpu": 1},
    }
    objects = rendered(runtime=runtime, resources=gpus, schedulerName="volcano", queue="vision")
    template = one(objects, "Deployment")["spec"]["template"]
    [server] = template["spec"]["containers"]
    assert server["readinessProbe"]["httpGet"] == {"path": path, "port": "http"}
    assert template["spec"]["schedulerName"] == "volcano"
    assert template["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "vision"
    assert not any(entry["name"] == "NVIDIA_VISIBLE_DEVICES" for entry in server["env"])
    into = next(word for word in template["spec"]["initContainers"][0]["args"] if word.startswith("--into="))
    assert into == ("--into=/model/digits" if runtime == "triton" else "--into=/model")


@pytest.mark.parametrize(
    ("over", "says"),
    [
        ({"model": {"version": ""}}, "model.version is empty: set the version to serve"),
        ({"model": {"source": {"bucket": ""}}}, "model.source has neither bucket nor claim: set one of them"),
        ({"model": {"source": {"claim": "workspace"}}}, "model.source has a bucket and a claim: remove one of them"),
        ({"image": {"reference": ""}}, "image.reference is empty: set the server's image"),
        ({"resources": {"limits": {"memory": None}}}, "resources has no limits.memory: set it, e.g. to 1Gi"),
        ({"runtime": "vllm"}, "runtime is vllm, which needs GPUs, but resources.limits has none"),
        ({"resources": {"limits": {"nvidia.com/gpu": 1}}}, "set schedulerName and queue, since queues allocate GPUs"),
        ({"server": {"args": ["--x"]}}, "server.args is for triton and vllm"),
        ({"server": {"env": {"KEYS_FILE": "/x"}}}, "server.env sets KEYS_FILE, which the platform sets"),
        ({"access": {"from": "outside"}}, "access.keys is empty: anyone who finds the address could use it"),
        ({"access": {**OUTSIDE["access"], "by": "ingress"}}, "access.by is ingress: set access.host"),
        ({"access": {**OUTSIDE["access"], "by": "gateway", "host": "a.b"}}, "set access.gateway.name to the Gateway"),
        (
            {"access": {**OUTSIDE["access"], "by": "loadBalancer", "nodePort": 30000}},
            "remove the port, or set access.by",
        ),
        ({"autoscaling": {"by": "cpu", "min": 5}}, "autoscaling.min is 5 and autoscaling.max 4"),
        ({"autoscaling": {"by": "requests", "min": 0}}, "nothing would hold a request until a pod is ready"),
        (
            {"autoscaling": {"by": "requests", "source": "keda"}},
            "set autoscaling.prometheus to the Prometheus to query",
        ),
        (
            {"autoscaling": {"by": "requests", "source": "keda-http"}},
            "set access.host to the host name of requests",
        ),
        ({"replicas": 0}, "replicas is 0 and autoscaling is off"),
        ({"canary": {**CANARY["canary"], "version": "v3"}}, "canary.version is v3, which is already served"),
        ({"replicas": 1, **CANARY}, "set replicas to 2 or more, so that both versions have one"),
        ({"inferenceService": {"enabled": True}, **CANARY}, "KServe shifts traffic by itself, so remove the canary"),
        ({"model": {"name": "Digits"}}, "does not match pattern"),
        ({"modle": {}}, "additional properties 'modle' not allowed"),
    ],
)
def test_wrong_values_are_refused_by_a_sentence(rendered: Any, over: dict[str, Any], says: str) -> None:
    with pytest.raises(TrainyardError) as caught:
        rendered(**over)
    assert says in str(caught.value)


def test_several_faults_come_in_one_message(rendered: Any) -> None:
    with pytest.raises(TrainyardError) as caught:
        rendered(replicas=0, image={"reference": ""}, access={"from": "outside"})
    assert str(caught.value).count(" - ") == 3


def test_every_value_is_described() -> None:
    def undescribed(schema: dict[str, Any], at: str) -> list[str]:
        found = [] if schema.get("description") or not at else [at]
        for key, below in (schema.get("properties") or {}).items():
            if key != "global":
                found += undescribed(below, f"{at}.{key}")
        return found

    schema = json.loads((CHART / "values.schema.json").read_text())
    assert undescribed(schema, "") == []
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values) == set(schema["properties"]) - {"global"}
