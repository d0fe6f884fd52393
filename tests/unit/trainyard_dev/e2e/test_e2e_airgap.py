"""The rules that isolate nodes, and how the run reads refusals and images."""

import json
import subprocess
from types import SimpleNamespace
from typing import Any, cast

import pytest

from trainyard_dev.e2e.checks import airgap, rights
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.recorder import Recorder, require
from trainyard_dev.e2e.sites import egress
from trainyard_dev.engine import Engine

LISTED = """\
Chain TRAINYARD-AIRGAP (2 references)
    pkts      bytes target     prot opt in     out     source               destination
       9      540 RETURN     all  --  *      *       0.0.0.0/0            10.244.0.0/16
       2      120 DROP       tcp  --  *      *       0.0.0.0/0            0.0.0.0/0            multiport dports 80,443
       5      300 DROP       all  --  *      *       0.0.0.0/0            0.0.0.0/0
"""


class FakeEngine:
    """Nodes with addresses of their own; remembers what ran in them."""

    def __init__(self, network: dict[str, Any] | None = None) -> None:
        self.network, self.scripts = network or {}, {}

    def __call__(self, *argv: str, **_: object) -> subprocess.CompletedProcess[str]:
        if argv[:2] == ("network", "inspect"):
            return subprocess.CompletedProcess(argv, 0, json.dumps([self.network]), "")
        last = sum(map(ord, argv[-1])) % 200
        found = {"kind": {"IPAddress": f"10.89.0.{last}", "GlobalIPv6Address": f"fc00::{last}"}}
        return subprocess.CompletedProcess(argv, 0, json.dumps(found), "")

    def exec(self, node: str, argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.scripts[node] = argv[-1]
        return subprocess.CompletedProcess(argv, 0, LISTED if argv[0] == "iptables" else "", "")


def test_every_node_lets_the_cluster_through_and_nothing_after_it() -> None:
    engine = FakeEngine()
    egress.cut(cast(Engine, engine), ["a", "b"])
    assert set(engine.scripts) == {"a", "b"}
    rules = [line for line in engine.scripts["a"].splitlines() if line.startswith("iptables") and " -A " in line]
    targets = [rule.split(" -j ")[1] for rule in rules]
    assert targets == ["RETURN"] * (len(rules) - 2) + ["DROP", "DROP"]
    ours = egress.addresses(cast(Engine, engine), ["a", "b", "trainyard-registry"])
    for address in ["10.244.0.0/16", "10.96.0.0/16", *(found[0] for found in ours.values())]:
        assert any(f"-d {address} " in rule for rule in rules), address
    assert not [rule for rule in rules if "-d" not in rule and "RETURN" in rule and "--ctdir REPLY" not in rule]
    assert any(f"-d {found[1]} " in engine.scripts["a"] for found in ours.values())


def test_names_are_known_without_a_name_server() -> None:
    engine = FakeEngine()
    egress.cut(cast(Engine, engine), ["a"])
    for name in ("a", "trainyard-registry"):
        assert f" {name} {egress.MARK}" in engine.scripts["a"]
    egress.rejoin(cast(Engine, engine), ["a"])
    assert f"grep -v '{egress.MARK}'" in engine.scripts["a"]


def test_dropped_packets_are_counted_by_port() -> None:
    assert egress.dropped(cast(Engine, FakeEngine()), ["a", "b"]) == {"web": 4, "other": 10}


@pytest.mark.parametrize(
    "network",
    [
        {
            "subnets": [
                {"subnet": "fc00::/64", "gateway": "fc00::1"},
                {"subnet": "10.89.0.0/24", "gateway": "10.89.0.1"},
            ]
        },
        {"IPAM": {"Config": [{"Subnet": "10.89.0.0/24", "Gateway": "10.89.0.1"}]}},
    ],
    ids=["podman", "docker"],
)
def test_this_machines_address_on_the_clusters_network(network: dict[str, Any]) -> None:
    assert egress.gateway(cast(Engine, FakeEngine(network))) == "10.89.0.1"


def test_nothing_counts_as_air_gapped_when_the_nodes_were_not_cut_off() -> None:
    recorder = Recorder()
    with recorder.check("airgap.denied", "denied"):
        require(False, "nodes or pods still reach outside")
    context = SimpleNamespace(recorder=recorder, nodes=[])
    airgap.installed(cast(Context, context))
    assert {check.id: check.status for check in recorder.checks[1:]} == {
        "airgap.install": "skipped",
        "airgap.train": "skipped",
    }


def test_images_of_all_containers() -> None:
    pod = {"spec": {"initContainers": [{"image": "a"}], "containers": [{"image": "b"}, {"image": "c"}]}}
    assert airgap.images_of(pod) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        (
            'E1 secrets is forbidden: User "system:serviceaccount:s:a" cannot list resource "secrets" in API group ""',
            True,
        ),
        (r'{"error":"jobs is forbidden: User \"system:serviceaccount:s:a\" cannot get resource \"jobs\""}', True),
        ('Pod not-for-steps-a was refused: User "system:serviceaccount:v:p" cannot create resource "pods"', False),
        ('roles "x" is forbidden: user "system:serviceaccount:s:a" (groups=[]) is attempting to grant RBAC', True),
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true', False),
        ('pods "x" is forbidden: exceeded quota: team, requested: pods=1', False),
        ("ValidatingAdmissionPolicy 'trainyard-pod-queue' denied request: not this queue", False),
    ],
)
def test_refusals_by_rights_are_told_from_others(line: str, refused: bool) -> None:
    assert bool(rights.refusals("pod/main", f"before\n{line}\nafter")) is refused
