"""The network access of a team's pods: the store, the API server and MLflow as set in the values, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from found import SYSTEM, one
from team_values import EXTERNAL, SPEECH, VISION, values

from rendering import Objects, Rendering


@pytest.fixture(scope="module")
def objects(with_teams: Objects) -> Objects:
    return with_teams


def test_network_is_closed_but_for_what_jobs_need(objects: Objects) -> None:
    found = {obj["metadata"]["name"]: obj["spec"] for obj in objects
             if obj["kind"] == "NetworkPolicy" and obj["metadata"]["namespace"] == "vision"}  # fmt: skip
    assert found["default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    ports = [(port["protocol"], port["port"]) for port in found["allow-dns"]["egress"][0]["ports"]]
    assert ports == [("UDP", 53), ("TCP", 53)]
    inside = [{"podSelector": {}}]
    assert found["allow-within"]["ingress"] == [{"from": inside}]
    assert found["allow-within"]["egress"] == [{"to": inside}]
    [store] = found["allow-storage"]["egress"]
    assert store["to"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/name"] == "minio"
    assert found["allow-team"]["egress"] == VISION["egress"]
    for name, label in (
        ("allow-api", {"trainyard.io/api-access": "true"}),
        ("allow-api-launcher", {"training.kubeflow.org/replica-type": "launcher"}),
    ):
        assert found[name]["podSelector"]["matchLabels"] == label
        assert found[name]["egress"] == [], "without a cluster nobody knows where the API server is"


def test_each_policy_is_always_rendered(objects: Objects) -> None:
    """Helm keeps them, so one that is left out when a rule is taken from the values would go on allowing it."""
    names: dict[str, set[str]] = {"vision": set(), "speech": set()}
    for obj in objects:
        if obj["kind"] == "NetworkPolicy" and obj["metadata"]["namespace"] in names:
            assert obj["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
            names[obj["metadata"]["namespace"]].add(obj["metadata"]["name"])
    assert names["vision"] == names["speech"]
    assert one(objects, "NetworkPolicy", "allow-team", "speech")["spec"]["egress"] == []


def test_api_server_is_reached_where_the_values_say(render: Rendering) -> None:
    network = {"apiServer": [{"cidr": "10.0.0.5/32", "port": 6443}]}
    objects = render(values(VISION, network=network))
    rule = {"to": [{"ipBlock": {"cidr": "10.0.0.5/32"}}], "ports": [{"protocol": "TCP", "port": 6443}]}
    for name in ("allow-api", "allow-api-launcher"):
        assert one(objects, "NetworkPolicy", name, "vision")["spec"]["egress"] == [rule]


def test_external_store_leaves_secrets_to_the_site(render: Rendering) -> None:
    network = {"s3": [{"cidr": "192.0.2.0/24", "port": 443}]}
    objects = render(values(VISION, storage={"s3": EXTERNAL}, network=network))
    assert not [obj for obj in objects if obj["kind"] == "Secret" and obj["metadata"].get("namespace") == "vision"]
    [rule] = one(objects, "NetworkPolicy", "allow-storage", "vision")["spec"]["egress"]
    assert rule["to"] == [{"ipBlock": {"cidr": "192.0.2.0/24"}}]


@pytest.mark.parametrize(
    ("uri", "addresses", "egress"),
    [
        ("", [], []),
        (
            "http://mlflow.tracking.svc.cluster.local:5000",
            [],
            [{"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "tracking"}}}]}],
        ),
        (
            "https://203.0.113.7",
            [],
            [{"to": [{"ipBlock": {"cidr": "203.0.113.7/32"}}], "ports": [{"protocol": "TCP", "port": 443}]}],
        ),
        (
            "https://mlflow.example.com",
            [{"cidr": "203.0.113.0/24", "port": 8443}],
            [{"to": [{"ipBlock": {"cidr": "203.0.113.0/24"}}], "ports": [{"protocol": "TCP", "port": 8443}]}],
        ),
    ],
)
def test_the_way_to_mlflow_follows_from_its_address(
    uri: str, addresses: list[Any], egress: list[Any], render: Rendering
) -> None:
    more = {"mlflow": {"trackingUri": uri}, "network": {"mlflow": addresses}}
    objects = render(values(VISION, SPEECH, **more))
    for team in ("vision", "speech"):
        assert one(objects, "NetworkPolicy", "allow-mlflow", team)["spec"]["egress"] == egress


@pytest.mark.parametrize("namespace", [SYSTEM, f"{SYSTEM}-webhook", "kube-system"])
def test_mlflow_beside_the_platform_would_open_it_and_is_refused(namespace: str, render: Rendering) -> None:
    uri = f"http://mlflow.{namespace}.svc.cluster.local:5000"
    [said] = render.errors({"global": {"contract": {"mlflow": {"trackingUri": uri}}}})
    assert f"trackingUri is {uri}: pods of all teams would reach every pod of {namespace}" in said
    assert "Run the server in a namespace of its own" in said


def test_an_outside_name_of_mlflow_without_addresses_is_refused(render: Rendering) -> None:
    [said] = render.errors({"global": {"contract": {"mlflow": {"trackingUri": "https://mlflow.example.com"}}}})
    assert "trackingUri is https://mlflow.example.com, but network policies can't match host names" in said
    assert "list its addresses in global.contract.network.mlflow" in said
