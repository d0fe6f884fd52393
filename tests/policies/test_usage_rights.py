"""ConfigMap `trainyard-usage` on a real API server: made with the chart's rights, read by the team alone."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hook_api import SYSTEM, HookApi, Objects, granted
from rights import may

from trainyard import contract
from trainyard.chart import helm
from trainyard.cli import trainyard
from trainyard.paths import ROOT
from trainyard_agent.api import ApiError
from trainyard_agent.usage.jobs import NAME, Usage
from trainyard_dev.apiserver import ApiServer, Identity
from trainyard_dev.apiserver.install import policies_in_force

HERE = Path(__file__).parent
CHARTS = ROOT / "charts"
TEAMS = ["vision", "speech"]
MEMBER, VIEWER = Identity("ada", ("vision-members",)), Identity("bob", ("vision-viewers",))
OTHER = Identity("eve", ("speech-members",))
AGENT = Identity.account(SYSTEM, "trainyard-usage")
VALUES = {
    "prometheus": {"enabled": True, "scrapeEvery": "30s"},
    "operator": {"enabled": False},
    "affinity": {},
    "usage": {"enabled": True, "prometheus": "", "everySeconds": 120, "imagePullPolicy": "Never", "resources": {}},
}


def rendered(folder: Path, **usage: Any) -> Objects:
    """The template alone, with the umbrella's helpers, in a chart of its own."""
    (folder / "templates").mkdir(exist_ok=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: monitoring\nversion: 0.0.1\n")
    own = [CHARTS / "monitoring/templates" / name for name in ("usage.yaml", "usage-policy.yaml")]
    files = [*own, *CHARTS.glob("trainyard/templates/_*.tpl"), *CHARTS.glob("*/umbrella/_*.tpl")]
    for file in files:
        (folder / "templates" / file.name).write_text(file.read_text())
    raw = contract.render.of_values(yaml.safe_load((HERE / "teams.yaml").read_text()), "teams.yaml")
    given = yaml.safe_load((CHARTS / "trainyard/values.yaml").read_text())["global"]
    given["contract"] |= {"teams": [{"name": team["name"], "gid": team["gid"]} for team in raw["teams"]]}
    values = {**VALUES, "usage": {**VALUES["usage"], **usage}, "global": given}  # type: ignore[dict-item]
    (folder / "given.yaml").write_text(yaml.safe_dump(values))
    text = helm.call("template", "trainyard", folder, "--namespace", SYSTEM, "--values", folder / "given.yaml")
    return [obj for obj in helm.parse(text) if obj]


class Played:
    """Figures of one pod, for any pod."""

    scrape = 15.0

    def __init__(self) -> None:
        self.prometheus = self

    def vector(self, query: str, at: float) -> list[tuple[dict[str, str], float]]:
        pod = {"namespace": "vision", "pod": "ddp-worker-0", "team": "vision", "job": "ddp", "kind": "PyTorchJob"}
        return [(pod, at - 300)]

    def parts(self, namespace: str, *_: Any) -> list[dict[str, Any]]:
        used = {"cpu": {"p50": 0.5, "p95": 1.0, "p99": 1.0, "max": 1.0}, "memory": {"p95": 1 << 30, "max": 1 << 30}}
        asked = {"asked": {"cpu": 4.0, "memory": 8 << 30}}
        return [{"role": "worker", "container": "pytorch", "pods": 1, "oom": 0, "samples": 20, **used, **asked}]

    def last(self, *_: Any) -> float:
        return time.time()


@pytest.fixture(scope="module")
def objects(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Objects]:
    """What the templates render, roles, bindings and the policy on the server until the tests end."""
    found = rendered(tmp_path_factory.mktemp("monitoring"))
    made = [obj for obj in found if obj["kind"] in ("Role", "RoleBinding")]
    granted(server, made)
    for obj in found:
        if obj["kind"].startswith("ValidatingAdmissionPolicy"):
            answer = server.create(obj)
            assert answer.ok, answer.message
            made.append(obj)
    policies_in_force(server)
    yield found
    for obj in [*made, *({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": place}}
                         for place in (*TEAMS, SYSTEM))]:  # fmt: skip
        server.call("DELETE", f"{server.path(obj)}/{obj['metadata']['name']}")


def read(server: ApiServer, who: Identity, team: str = "vision") -> Any:
    return server.call("GET", f"/api/v1/namespaces/{team}/configmaps/{NAME}", identity=who)


def look(server: ApiServer) -> None:
    teams = {"teams": [{"name": team} for team in TEAMS]}
    Usage(HookApi(server, "trainyard-usage"), Played()).look(teams, 120)  # type: ignore[arg-type]


def test_the_agent_makes_the_map_and_the_team_reads_it(server: ApiServer, objects: Objects) -> None:
    look(server)
    look(server)
    for who in (MEMBER, VIEWER):
        found = read(server, who)
        assert found.ok, found.message
        assert [job["name"] for job in json.loads(found.body["data"]["usage.json"])["jobs"]] == ["ddp"]
        assert [owner["kind"] for owner in found.body["metadata"]["ownerReferences"]] == ["Role"]
        groups = ["--as-group", who.groups[0]]
        words = ["rightsize", "ddp", "--kubeconfig", str(server.kubeconfig), "-n", "vision", "--as", who.user, *groups]
        done = CliRunner().invoke(trainyard, words)
        assert done.exit_code == 0, done.output
        assert "1150m" in done.stdout
    assert read(server, OTHER).status == 403
    assert read(server, MEMBER, SYSTEM).status == 403, "what the platform uses is for its engineers"


def test_a_member_may_remove_the_map_and_neither_make_nor_change_it(server: ApiServer, objects: Objects) -> None:
    own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": "vision"}}
    path, forged = f"/api/v1/namespaces/vision/configmaps/{NAME}", {"data": {"usage.json": "{}"}}
    look(server)
    changes = (
        ("PATCH", path, forged, "application/merge-patch+json"),
        ("PATCH", path, {"binaryData": {"more": "e30="}}, "application/merge-patch+json"),
        ("PATCH", path, own | forged, "application/apply-patch+yaml"),
        ("PUT", path, own | forged, "application/json"),
    )
    for method, where, body, content in changes:
        query = {"fieldManager": "trainyard-usage", "force": "true"} if "apply" in content else None
        answer = server.call(method, where, body, identity=MEMBER, content=content, query=query)
        assert "ada may not write it" in answer.message, (method, content, answer.message)
    label = [{"op": "add", "path": "/metadata/labels/mine", "value": "yes"}]
    answer = server.call("PATCH", path, label, identity=MEMBER, content="application/json-patch+json")
    assert answer.ok, answer.message  # nobody reads it
    assert server.call("DELETE", path, identity=MEMBER).ok
    for where, body in (("/api/v1/namespaces/vision/configmaps", own), (path, own)):
        method = "PUT" if where == path else "POST"
        answer = server.call(method, where, body | forged, identity=MEMBER)
        assert "ada may not write it" in answer.message or answer.status == 404, answer.message
    other = own | forged | {"metadata": {"name": "trainyard-usage-mine", "namespace": "vision"}}
    assert server.create(other, identity=MEMBER, dry_run=True).ok
    look(server)
    look(server)
    assert "ddp" in read(server, MEMBER).body["data"]["usage.json"]


def test_the_agent_may_nothing_else(server: ApiServer, objects: Objects) -> None:
    for place in (*TEAMS, SYSTEM):
        assert may(server, AGENT, "patch", "configmaps", place, NAME)
        for verb in ("list", "delete", "update"):
            assert not may(server, AGENT, verb, "configmaps", place, NAME)
        for verb in ("get", "create", "patch"):
            assert not may(server, AGENT, verb, "configmaps", place, "trainyard-contract")
            assert not may(server, AGENT, verb, "configmaps", place)
        assert not may(server, AGENT, "get", "secrets", place)
        assert not may(server, AGENT, "list", "pods", place)
    assert not may(server, AGENT, "get", "configmaps", "default", NAME)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": "vision"}}
    with pytest.raises(ApiError, match=r"cannot patch resource|cannot create resource"):
        HookApi(server, "trainyard-usage").apply("/api/v1/namespaces/vision/configmaps/other", body, manager="test")


def test_it_asks_our_server_or_the_site_s_and_else_is_not_there(tmp_path: Path) -> None:
    def args(found: Objects) -> list[str]:
        (pod,) = (obj for obj in found if obj["kind"] == "Deployment")
        spec = pod["spec"]["template"]["spec"]
        assert spec["securityContext"]["runAsNonRoot"]
        return list(spec["containers"][0]["args"])

    assert args(rendered(tmp_path)) == [
        "usage", "--prometheus=http://trainyard-prometheus:9090", "--period=120", "--scrape=30s"]  # fmt: skip
    assert "--prometheus=http://site:9090" in args(rendered(tmp_path, prometheus="http://site:9090"))
    assert rendered(tmp_path, enabled=False) == []
