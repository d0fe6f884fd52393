"""The option `kfpApi`: off, it renders nothing; on, pods without rights that teams reach, and a key that only reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from found import SYSTEM, container, named, one, pod_of, published

from rendering import Objects, Rendering

NAME, URL = "trainyard-kfp-api", "https://runs.example.org"
TEAMS = [{"name": "vision", "gid": 20001}, {"name": "speech", "gid": 20002}]


def values(**option: Any) -> dict[str, Any]:
    return {"global": {"contract": {"teams": TEAMS}}, "kfpApi": {"enabled": True, **option}}


@pytest.fixture(scope="module")
def on(render: Rendering) -> Objects:
    return render(values())


def peers(objects: Objects, way: str) -> list[Any]:
    found: list[Any] = one(objects, "NetworkPolicy", NAME)["spec"][way]
    return found


def test_off_it_is_nothing(rendered: dict[str, Objects]) -> None:
    for objects in rendered.values():
        assert "kfpApi" not in published(objects)
        assert not [key for key in named(objects) if "kfp" in key[2]]
        assert "KFP_" not in json.dumps(one(objects, "Job", "trainyard-setup"))


def test_on_it_adds_these_objects_and_the_contract_says_where_it_is(on: Objects, render: Rendering) -> None:
    off = render({"global": {"contract": {"teams": TEAMS}}})
    added = sorted((kind, space) for kind, space, _ in set(named(on)) - set(named(off)))
    assert added == [("Deployment", SYSTEM), ("NetworkPolicy", "speech"), ("NetworkPolicy", SYSTEM),
                     ("NetworkPolicy", "vision"), ("PodDisruptionBudget", SYSTEM), ("Secret", SYSTEM),
                     ("Service", SYSTEM)]  # fmt: skip
    assert published(on)["kfpApi"] == {"url": "", "service": f"http://{NAME}.{SYSTEM}.svc:8888"}
    setup = {env["name"] for env in container(on, "Job", "trainyard-setup")["env"]}
    assert {"KFP_ENDPOINT", "KFP_ACCESS_KEY", "KFP_SECRET_KEY", "KFP_REGION", "KFP_CA"} <= setup


def test_its_pods_have_no_rights_and_read_the_store_with_a_key_of_their_own(on: Objects) -> None:
    pod = pod_of(on, "Deployment", NAME)
    assert pod["automountServiceAccountToken"] is False and "serviceAccountName" not in pod
    assert pod["securityContext"]["runAsNonRoot"]
    made = container(on, "Deployment", NAME)
    assert made["securityContext"]["readOnlyRootFilesystem"]
    assert [mount["name"] for mount in made["volumeMounts"] if not mount.get("readOnly")] == ["tmp"]
    maps = {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume}
    assert maps == {"trainyard-contract", "kube-root-ca.crt"}
    secrets = {env["valueFrom"]["secretKeyRef"]["name"] for env in made["env"] if "valueFrom" in env}
    assert secrets == {"trainyard-kfp-s3"}
    assert one(on, "Deployment", NAME)["spec"]["replicas"] == 2


def test_pods_of_teams_reach_it_and_without_a_url_nobody_else(on: Objects) -> None:
    [rule] = peers(on, "ingress")
    assert rule["ports"] == [{"protocol": "TCP", "port": 8888}]
    [peer] = rule["from"]
    assert peer == {"namespaceSelector": {"matchExpressions": [{"key": "trainyard.io/team", "operator": "Exists"}]}}
    out = one(on, "NetworkPolicy", "allow-kfp-api", "vision")["spec"]
    [to] = out["egress"]
    labels = one(on, "Deployment", NAME)["spec"]["template"]["metadata"]["labels"]
    assert to["to"][0]["podSelector"]["matchLabels"].items() <= labels.items()
    ports = [rule["ports"] for rule in peers(on, "egress") if "to" not in rule]
    assert ports == [[{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 6443}]]  # the API server's


def test_with_a_url_anyone_may_come_or_whom_the_values_name(render: Rendering) -> None:
    assert peers(render(values(url=URL)), "ingress") == [{"ports": [{"protocol": "TCP", "port": 8888}]}]
    near = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}
    ingress = {"enabled": True, "tlsSecret": "runs-tls"}
    objects = render(values(url=URL, reachedFrom=[near], ingress=ingress, replicas=1))
    assert peers(objects, "ingress")[0]["from"][1:] == [near]
    spec = one(objects, "Ingress", NAME)["spec"]
    assert spec["rules"][0]["host"] == "runs.example.org" and spec["tls"][0]["hosts"] == ["runs.example.org"]
    assert ("PodDisruptionBudget", SYSTEM, NAME) not in named(objects)


def test_the_hub_learns_where_it_is(render: Rendering) -> None:
    hub = {"enabled": True, "teams": ["*"], "url": "https://notebooks.example.org",
           "oidc": {"issuer": "https://issuer.example.org"}}  # fmt: skip
    objects = render({**values(url=URL), "notebooks": hub})
    space = f"{SYSTEM}-notebooks"
    assert one(objects, "ConfigMap", NAME, space)["data"] == published(objects)["kfpApi"]
    volumes = pod_of(objects, "StatefulSet", "trainyard-notebook-hub", space)["volumes"]
    assert {"name": "kfp-api", "configMap": {"name": NAME}} in volumes
    assert one(render({"notebooks": hub}), "ConfigMap", NAME, space)["data"] == {}


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (values(service={"nodePort": 30558}), "kfpApi.service.nodePort is 30558 and kfpApi.service.type ClusterIP"),
        (values(ingress={"enabled": True}), "kfpApi.ingress.enabled is true and kfpApi.url is empty: write the URL"),
        (
            {
                "global": {"contract": {"storage": {"s3": {"mode": "external", "endpoint": "https://s3.example.org"}}}},
                "minio": {"enabled": False},
                "kfpApi": {"enabled": True},
            },
            "kfpApi.enabled is true and the store is external: name its addresses in global.contract.network.s3",
        ),
    ],
)
def test_values_that_do_not_fit_are_refused(render: Rendering, said: dict[str, Any], error: str) -> None:
    found = render.errors(said)
    assert any(error in line for line in found), found


@pytest.mark.parametrize("said", [{"url": "runs.example.org"}, {"url": f"{URL}/page"}, {"replicas": 0}])
def test_the_schema_refuses(render: Rendering, said: dict[str, Any]) -> None:
    assert next(iter(said)) in render.refusal(values(**said))
