"""The option `notebooks`: off, nothing; on, a hub in its own namespace with rights where a team has notebooks."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from found import named, one, pod_of

from rendering import Objects, Rendering
from trainyard.paths import ROOT

TEAMS = ROOT / "tests" / "policies" / "teams.yaml"  # vision and speech
HUB, SPACE = "trainyard-notebook-hub", "trainyard-system-notebooks"
ON: dict[str, Any] = {
    "enabled": True,
    "teams": ["vision"],
    "url": "https://notebooks.example.org",
    "oidc": {"issuer": "https://issuer.example.org"},
}


def sets(values: dict[str, Any], path: str = "notebooks") -> list[str]:
    """Values as `helm --set-json` would have them, one key each."""
    found: list[str] = []
    for key, value in values.items():
        here = f"{path}.{key}"
        if isinstance(value, dict):
            found += sets(value, here)
        elif isinstance(value, list):
            found += [f"{here}[{i}]={one}" for i, one in enumerate(value)]
        else:
            found.append(f"{here}={json.dumps(value) if isinstance(value, bool) else value}")
    return found


@pytest.fixture(scope="module")
def off(render: Rendering) -> Objects:
    return render(TEAMS)


@pytest.fixture(scope="module")
def on(render: Rendering) -> Objects:
    return render(TEAMS, sets=sets(ON))


def settings(objects: Objects) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(one(objects, "ConfigMap", HUB, SPACE)["data"]["settings.json"])
    return found


def test_off_it_is_nothing_and_on_it_touches_only_teams_that_have_it(off: Objects, on: Objects) -> None:
    assert not [key for key in named(off) if "notebook" in key[2]]
    added = set(named(on)) - set(named(off))
    assert {space for _, space, _ in added} == {"", SPACE, "vision"}
    assert {key for key in added if key[1] == "vision"} == {
        ("Role", "vision", HUB), ("RoleBinding", "vision", HUB), ("NetworkPolicy", "vision", "allow-notebooks"),
    }  # fmt: skip
    assert {key for key in added if key[1] == ""} == {
        ("Namespace", "", SPACE),
        *((f"ValidatingAdmissionPolicy{end}", "", f"trainyard-notebook-{rule}")
          for end in ("", "Binding") for rule in ("hub", "names")),
    }  # fmt: skip


def test_the_hub_sees_and_ends_pods_and_makes_secrets_there_and_has_no_right_elsewhere(on: Objects) -> None:
    bound = [
        obj
        for obj in on
        if obj["kind"].endswith("RoleBinding")
        if any(one["kind"] == "ServiceAccount" and one["name"] == HUB for one in obj["subjects"] or [])
    ]
    assert [(obj["kind"], obj["metadata"]["namespace"]) for obj in bound] == [("RoleBinding", "vision")]
    assert one(on, "Role", HUB, "vision")["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "delete"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    ]
    assert bound[0]["subjects"][0]["namespace"] == SPACE


def test_the_rules_know_the_hub_and_the_prefix_of_names(render: Rendering) -> None:
    objects = render(TEAMS, sets=[*sets(ON), "notebooks.oidc.usernamePrefix=oidc:"])
    policies = {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == "ValidatingAdmissionPolicy"}

    def params(rule: str) -> dict[str, str]:
        variables = policies[f"trainyard-{rule}"]["spec"]["variables"]
        found: dict[str, str] = json.loads(next(one["expression"] for one in variables if one["name"] == "params"))
        return found

    assert params("notebook-hub") == {"notebookHub": f"system:serviceaccount:{SPACE}:{HUB}"}
    assert params("notebook-names") == {"notebookUserPrefix": "oidc:"}
    # Its pods are of the platform's class, which is refused in other namespaces.
    assert params("class-namespace")["platformNamespaces"] == f"trainyard-system,{SPACE}"


def test_the_hub_is_told_who_is_in_which_team_and_which_nodes_are_meant(on: Objects) -> None:
    found = settings(on)
    assert [(one["name"], one["groups"], one["users"]) for one in found["teams"]] == [
        ("vision", ["vision-members"], [])
    ]
    [team] = found["teams"]
    assert team["cpu_labels"] == {"trainyard.io/pool": "cpu"} and team["gpu_labels"] == {"trainyard.io/pool": "gpu"}
    [toleration] = team["gpu_tolerations"]
    assert toleration == {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    assert team["queue"] == "vision" and team["priority"] == "training-low"
    gpu = next(one for one in found["profiles"] if one.get("gpus"))
    assert gpu["deadline"] == 14400
    assert found["oidc"]["callback"] == "https://notebooks.example.org/hub/oauth_callback"


def test_every_team_with_a_star(render: Rendering) -> None:
    found = settings(render(TEAMS, sets=sets({**ON, "teams": ["*"]})))
    assert [one["name"] for one in found["teams"]] == ["vision", "speech"]


def test_viewers_have_no_notebook(render: Rendering) -> None:
    assert "vision-viewers" not in json.dumps(settings(render(TEAMS, sets=sets(ON))))


def test_pods_of_the_namespace_reach_what_they_need_and_notebooks_are_reached_from_there_alone(on: Objects) -> None:
    inner = one(on, "NetworkPolicy", "allow-notebooks", "vision")["spec"]
    assert inner["podSelector"] == {"matchLabels": {"trainyard.io/notebook": "true"}}
    [entry] = inner["ingress"]
    assert entry["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}}]
    hub = one(on, "NetworkPolicy", HUB, SPACE)["spec"]["ingress"]
    assert len(hub) == 1 and {port["port"] for port in hub[0]["ports"]} == {8081}
    proxy = one(on, "NetworkPolicy", "trainyard-notebook-proxy", SPACE)["spec"]["ingress"]
    assert [[port["port"] for port in rule["ports"]] for rule in proxy] == [[8000], [8001]]
    assert "from" not in proxy[0] and proxy[1]["from"] == [{"podSelector": {}}]


def test_the_hub_reaches_the_charts_own_issuer_by_its_pods(on: Objects) -> None:
    """Behind a Service of port 443 they listen at another, which is what a policy is held against."""
    rules = one(on, "NetworkPolicy", HUB, SPACE)["spec"]["egress"]
    place = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "trainyard-system"}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "login", "app.kubernetes.io/instance": "trainyard"}},
    }
    assert {"to": [place], "ports": [{"protocol": "TCP", "port": 5556}]} in rules


def test_the_proxy_has_no_token_and_keys_come_from_secrets(on: Objects) -> None:
    proxy = pod_of(on, "Deployment", "trainyard-notebook-proxy", SPACE)
    assert proxy["automountServiceAccountToken"] is False
    hub = pod_of(on, "StatefulSet", HUB, SPACE)["containers"][0]
    told = {one["name"]: one for one in hub["env"]}
    secret = {name: one["valueFrom"]["secretKeyRef"]["name"] for name, one in told.items() if "valueFrom" in one}
    assert secret == {
        "JUPYTERHUB_CRYPT_KEY": HUB,
        "CONFIGPROXY_AUTH_TOKEN": HUB,
        "OIDC_CLIENT_SECRET": "trainyard-notebooks-oidc",
    }


def _issuer_files(objects: Objects) -> tuple[str, dict[str, Any]]:
    """Where the hub looks for the issuer's authority, and the volumes of its pod by the places that they have."""
    pod = pod_of(objects, "StatefulSet", HUB, SPACE)
    volumes = {one["name"]: one for one in pod["volumes"]}
    mounts = {one["mountPath"]: volumes.get(one["name"]) for one in pod["containers"][0]["volumeMounts"]}
    return settings(objects)["oidc"]["ca_file"], mounts


def test_the_issuer_s_authority_is_the_secret_s_where_no_value_says_it(render: Rendering) -> None:
    """The chart's own issuer makes its authority when it is installed: no value knows it."""
    own = {key: one for key, one in ON.items() if key != "oidc"}
    values = [
        *sets(own), "login.enabled=true", "login.people[0].email=ada@example.org",
        "login.notebooks.redirectURIs[0]=https://notebooks.example.org/hub/oauth_callback",
        f"login.notebooks.namespace={SPACE}", "global.contract.login.issuer=https://login.example.org/dex",
    ]  # fmt: skip
    objects = render(TEAMS, sets=values)
    file, mounts = _issuer_files(objects)
    assert file == "/etc/notebook-issuer/ca.crt"
    secret = mounts["/etc/notebook-issuer"]["secret"]
    assert secret == {
        "secretName": "trainyard-notebooks-oidc", "items": [{"key": "ca.crt", "path": "ca.crt"}], "optional": True,
    }  # fmt: skip
    made = one(objects, "Secret", secret["secretName"], SPACE)["stringData"]
    assert made["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    assert settings(objects)["oidc"]["issuer"] == made["issuer"]


def test_the_issuer_s_authority_of_a_value_goes_first(render: Rendering) -> None:
    file, mounts = _issuer_files(render(TEAMS, sets=[*sets(ON), "notebooks.oidc.ca=PEM"]))
    assert file == "/etc/notebook-hub/issuer.crt" and "/etc/notebook-issuer" not in mounts


def test_an_ingress_has_the_host_of_the_url_and_with_subdomains_those_below_it(render: Rendering) -> None:
    more = sets({**ON, "subdomains": True, "ingress": {"enabled": True, "tlsSecret": "cert"}})
    [found] = [obj for obj in render(TEAMS, sets=more) if obj["kind"] == "Ingress"]
    hosts = ["notebooks.example.org", "*.notebooks.example.org"]
    assert [rule["host"] for rule in found["spec"]["rules"]] == hosts
    assert found["spec"]["tls"] == [{"secretName": "cert", "hosts": hosts}]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"url": ""}, "notebooks.enabled is true and notebooks.url is empty: write the hub's URL"),
        ({"oidc": {"issuer": ""}}, "notebooks.enabled is true and notebooks.oidc.issuer is empty: write the issuer"),
        (
            {"teams": ["audio"]},
            'notebooks.teams has "audio", which is not among global.contract.teams (vision, speech)',
        ),
        (
            {"priorityClass": "urgent"},
            'notebooks.priorityClass is "urgent", which is not among global.contract.priority',
        ),
        (
            {"priorityClass": "training-high"},
            'notebooks.priorityClass is "training-high", which team "vision" may not use',
        ),
        ({"teams": []}, "notebooks.enabled is true and notebooks.teams is empty, so nobody could have a notebook"),
        ({"service": {"nodePort": 30800}}, "notebooks.service.nodePort is 30800 and notebooks.service.type ClusterIP"),
        ({"home": {"size": "1Ti"}}, 'notebooks.home.size is 1Ti, more than team "vision" may claim'),
        ({"profiles": [{"name": "g", "title": "G", "cpu": 1, "memory": "1Gi", "gpus": 1}]}, "but no deadlineSeconds"),
        (
            {
                "profiles": [
                    {"name": "g", "title": "G", "cpu": 1, "memory": "1Gi", "gpus": 1, "deadlineSeconds": 9999999}
                ]
            },
            "more than policies.maxDeadlineSeconds, 604800; lower it",
        ),
        (
            {"profiles": [{"name": "a", "title": "A", "cpu": 1, "memory": "1Gi"}] * 2},
            'notebooks.profiles has "a" twice',
        ),
    ],
)
def test_values_that_do_not_fit(render: Rendering, change: dict[str, Any], said: str) -> None:
    values = yaml.safe_load(TEAMS.read_text())
    values["notebooks"] = {**ON, **change}
    found = render.errors(values)
    assert any(said in one for one in found), found


@pytest.mark.parametrize(
    ("hub", "said"),
    [
        (
            {"redirectURIs": ["https://hub.example.org/hub/oauth_callback"]},
            "login.notebooks.redirectURIs has no https://notebooks.example.org/hub/oauth_callback, so the issuer",
        ),
        (
            {"namespace": "notebooks"},
            f'namespace is "notebooks", but the hub expects its secret in {SPACE}: write {SPACE}',
        ),
        ({"namespace": ""}, f'login.notebooks.namespace is "", but the hub expects its secret in {SPACE}: write'),
        ({}, ""),
    ],
)
def test_the_charts_own_issuer_knows_the_hub(render: Rendering, hub: dict[str, Any], said: str) -> None:
    values = yaml.safe_load(TEAMS.read_text())
    values["global"]["contract"]["login"] = {"issuer": "https://login.example.org"}
    known = {"redirectURIs": ["https://notebooks.example.org/hub/oauth_callback"], "namespace": SPACE}
    values["login"] = {"enabled": True, "people": [{"email": "ada@example.org"}], "notebooks": {**known, **hub}}
    values["notebooks"] = {**ON, "oidc": {}}
    found = [one for one in render.errors(values) if "notebooks" in one]
    assert any(said in one for one in found) if said else not found, found


def test_one_issuer_has_one_prefix(render: Rendering) -> None:
    """Following charts/login/README.md and then the example for a site without it would leave the hub without teams."""
    values = yaml.safe_load(TEAMS.read_text()) | {"notebooks": ON}
    values["global"]["contract"]["login"] = {"issuer": ON["oidc"]["issuer"]}
    found = [one for one in render.errors(values) if "notebooks." in one]
    assert len(found) == 1 and "with other claims or prefixes than the API server's" in found[0], found
    same = {**ON["oidc"], "usernamePrefix": "oidc:", "groupsPrefix": "oidc:"}
    for oidc in (same, {}):
        values["notebooks"] = {**ON, "oidc": oidc}
        assert not [one for one in render.errors(values) if "notebooks." in one]


def test_without_nfs_claims_are_the_site_s(render: Rendering) -> None:
    values = yaml.safe_load(TEAMS.read_text()) | {"nfs": {"enabled": False}}
    found = render.errors({**values, "notebooks": ON})
    assert [one.partition(",")[0] for one in found if "notebooks." in one] == ["nfs.enabled is false"] * 3
    own = {**ON, "workspace": "files", "shared": "", "home": {"size": "1Gi", "class": "cephfs"}}
    assert not [one for one in render.errors({**values, "notebooks": own}) if "notebooks." in one]


@pytest.mark.parametrize(
    "value", ["url=notebooks", "oidc.issuer=http://a", "teams[0]=A", "culling.everySeconds=1", "odd=1"]
)
def test_a_wrong_value_is_refused_by_name(render: Rendering, value: str) -> None:
    assert value.partition("=")[0].rpartition(".")[2].partition("[")[0] in render.refusal(
        TEAMS, sets=[*sets(ON), f"notebooks.{value}"]
    )
