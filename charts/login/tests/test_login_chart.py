"""The option `login`: off, it renders nothing; on, a restricted Dex, and the API server's settings for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from found import SYSTEM, named, one, pod_of, published

from rendering import Objects, Rendering
from trainyard.chart import helm
from trainyard.paths import CHART

ISSUER = "https://login.example.org:8443/dex"
PEOPLE = [{"email": "ada@example.org", "groups": ["vision-members"]}, {"email": "bob@example.org", "name": "Bob"}]
HUB = {"redirectURIs": ["https://hub.example.org/hub/oauth_callback"], "namespace": "notebooks"}
KEYS = ("authcodes", "refreshtokens", "signingkeies", "offlinesessionses", "passwords", "devicetokens")


def values(issuer: str = ISSUER, contract: dict[str, Any] | None = None, **login: Any) -> dict[str, Any]:
    said = {"enabled": True, "people": PEOPLE} | login
    return {"global": {"contract": {"login": {"issuer": issuer, **(contract or {})}}}, "login": said}


@pytest.fixture(scope="module")
def on(render: Rendering) -> Objects:
    return render(values(notebooks=HUB))


def configuration(objects: Objects) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(one(objects, "Secret", "trainyard-login")["stringData"]["config.yaml"])
    return found


def authentication(objects: Objects) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(one(objects, "ConfigMap", "trainyard-login")["data"]["authentication.yaml"])
    return found


def test_off_it_is_nothing(rendered: dict[str, Objects]) -> None:
    for objects in rendered.values():
        assert not [key for key in named(objects) if "login" in key[2] or "dex.coreos.com" in key[2]]
        assert "login" not in published(objects)


def test_on_it_adds_these_objects_and_changes_no_other(on: Objects, rendered: dict[str, Objects]) -> None:
    added = set(named(on)) - set(named(rendered["kind"]))
    kinds = sorted(kind for kind, _, _ in added if kind != "CustomResourceDefinition")
    assert kinds == ["ConfigMap", "Deployment", "NetworkPolicy", "Role", "RoleBinding", *["Secret"] * 5, "Service",
                     "ServiceAccount"]  # fmt: skip
    assert {f"{one}.dex.coreos.com" for one in KEYS} < {name for kind, _, name in added if kind.startswith("Custom")}
    assert set(named(rendered["kind"])) <= set(named(on))


def test_a_site_with_an_issuer_runs_none_and_is_told_the_same(render: Rendering, rendered: Any) -> None:
    objects = render({"global": {"contract": {"login": {"issuer": ISSUER}}}})
    assert set(named(objects)) - set(named(rendered["kind"])) == {("ConfigMap", SYSTEM, "trainyard-login")}
    (jwt,) = authentication(objects)["jwt"]
    assert jwt["issuer"]["url"] == ISSUER and "certificateAuthority" not in jwt["issuer"]
    assert published(objects)["login"]["issuer"] == ISSUER


def test_the_pod_is_restricted_and_may_keep_its_own_objects_and_nothing_else(on: Objects) -> None:
    pod = pod_of(on, "Deployment", "trainyard-login")
    (made,) = pod["containers"]
    assert (
        pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    )
    assert made["securityContext"]["readOnlyRootFilesystem"] and not made["securityContext"]["allowPrivilegeEscalation"]
    assert made["securityContext"]["capabilities"] == {"drop": ["ALL"]} and made["resources"]["limits"]["memory"]
    (rule,) = one(on, "Role", "trainyard-login")["rules"]
    assert rule["apiGroups"] == ["dex.coreos.com"] and set(KEYS) < set(rule["resources"]) and "*" not in rule["verbs"]
    bound = [obj for obj in on if obj["kind"].endswith("RoleBinding")
             and any(one["name"] == "trainyard-login" for one in obj["subjects"] or [])]  # fmt: skip
    assert [obj["kind"] for obj in bound] == ["RoleBinding"]
    rights = {f"{one['metadata']['name']}" for one in on if one["kind"] == "CustomResourceDefinition"}
    assert {f"{one}.dex.coreos.com" for one in rule["resources"]} <= rights


def test_in_memory_it_has_no_right_and_no_token(render: Rendering) -> None:
    objects = render(values(storage="memory"))
    assert ("Role", SYSTEM, "trainyard-login") not in named(objects)
    spec = one(objects, "Deployment", "trainyard-login")["spec"]
    assert spec["template"]["spec"]["automountServiceAccountToken"] is False and spec["strategy"]["type"] == "Recreate"
    assert configuration(objects)["storage"] == {"type": "memory"}
    reached = one(objects, "NetworkPolicy", "trainyard-login")["spec"]["egress"]
    assert len(reached) == 1 and {port["port"] for port in reached[0]["ports"]} == {53}


def test_dex_gives_codes_to_programs_of_this_machine_and_to_the_hub(on: Objects) -> None:
    made = configuration(on)
    assert made["oauth2"]["responseTypes"] == ["code"]
    assert not {"password", "implicit"} & set(made["oauth2"]["grantTypes"])
    laptop, hub = made["staticClients"]
    assert laptop == {"id": "trainyard", "name": "trainyard", "public": True}
    assert hub["redirectURIs"] == HUB["redirectURIs"] and "public" not in hub
    (dex,) = pod_of(on, "Deployment", "trainyard-login")["containers"]
    reference = {"secretKeyRef": {"name": "trainyard-notebooks-oidc", "key": "client-secret"}}
    assert dex["env"] == [{"name": hub["secretEnv"], "valueFrom": reference}]
    assert made["expiry"]["idTokens"] == "15m"
    copies = [obj for obj in on if obj["metadata"]["name"] == "trainyard-notebooks-oidc"]
    assert {obj["metadata"]["namespace"] for obj in copies} == {"trainyard-system", "notebooks"}
    (secret,) = {obj["stringData"]["client-secret"] for obj in copies}
    assert len(secret) == 40


def test_each_person_has_a_password_of_their_own_and_none_is_in_plain_where_dex_reads(on: Objects) -> None:
    held = json.loads(one(on, "Secret", "trainyard-login-people")["stringData"]["people.json"])
    assert len({one["password"] for one in held.values()} | {one["id"] for one in held.values()}) == 4
    text = one(on, "Secret", "trainyard-login")["stringData"]["config.yaml"]
    assert not [one for one in held.values() if one["password"] in text]
    ada, bob = configuration(on)["staticPasswords"]
    assert ada["hash"] == held["ada@example.org"]["hash"] and ada["username"] == "ada" and bob["username"] == "Bob"
    assert (ada["groups"], bob["groups"]) == (["vision-members"], [])


def test_a_hash_of_the_sites_is_taken_and_no_password_made(render: Rendering) -> None:
    mine = "$2a$10$" + "a" * 53
    said = values(people=[{"email": "ada@example.org", "hash": mine}])
    objects = render(said)
    held = json.loads(one(objects, "Secret", "trainyard-login-people")["stringData"]["people.json"])
    assert set(held["ada@example.org"]) == {"hash", "id"} and held["ada@example.org"]["hash"] == mine
    assert configuration(render(said, again=True)) == configuration(objects)  # GitOps renders it again and again


def test_the_api_server_is_told_the_same_issuer_and_its_authority(on: Objects) -> None:
    made = authentication(on)
    assert made["apiVersion"] == "apiserver.config.k8s.io/v1" and made["kind"] == "AuthenticationConfiguration"
    (jwt,) = made["jwt"]
    assert jwt["issuer"]["url"] == ISSUER == configuration(on)["issuer"]
    assert jwt["issuer"]["audiences"] == ["trainyard", "trainyard-notebooks"]
    assert jwt["issuer"]["certificateAuthority"] == one(on, "Secret", "trainyard-login-tls")["stringData"]["ca.crt"]
    assert jwt["claimMappings"] == {"username": {"claim": "email", "prefix": "oidc:"},
                                    "groups": {"claim": "groups", "prefix": "oidc:"}}  # fmt: skip
    assert "secret" not in json.dumps(one(on, "ConfigMap", "trainyard-login")).lower()


def test_an_older_kubernetes_gets_the_file_of_its_api(render: Rendering) -> None:
    [file] = render.files(values())
    text = helm.call("template", "x", render.chart, "--namespace", "x", "--values", CHART / "profiles" / "kind.yaml",
                     "--values", file, "--kube-version", "1.33.1",
                     "--show-only", "charts/login/templates/login.yaml")  # fmt: skip
    assert "apiVersion: apiserver.config.k8s.io/v1beta1" in text


def test_blocked_names_are_in_the_file_with_their_prefix(render: Rendering) -> None:
    objects = render(values(contract={"blocked": ["eve@example.org"]}))
    rules = [one["expression"] for one in authentication(objects)["jwt"][0]["userValidationRules"]]
    assert '![user.username, user.username.lowerAscii()].exists(name, name in ["oidc:eve@example.org"])' in rules


def test_a_changed_list_of_people_restarts_dex(render: Rendering) -> None:
    """Left out, a person must be gone from the process, not only from the Secret."""
    mine = [{"email": f"{name}@example.org", "hash": "$2a$10$" + "a" * 53} for name in ("ada", "bob")]

    def digest(people: Any) -> str:
        pod = one(render(values(people=people)), "Deployment", "trainyard-login")["spec"]["template"]
        return str(pod["metadata"]["annotations"]["trainyard.io/configuration"])

    assert digest(mine) != digest(mine[:1])


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (values(issuer=""), "login.enabled is true and global.contract.login.issuer is empty: set the https address"),
        (values(people=[]), "login.enabled is true, but nobody could log in: set login.people or login.connectors."),
        (values(people=[PEOPLE[0], PEOPLE[0]]), "login.people names ada@example.org twice: write each once."),
        (values(service={"nodePort": 30556}), "login.service.nodePort is 30556 and login.service.type ClusterIP"),
        (values(contract={"notebooksClientId": "trainyard"}), "clientId and notebooksClientId are both trainyard"),
        (
            {"global": {"contract": {"login": {"blocked": ["eve"]}}}},
            "global.contract.login.blocked names eve, but no issuer is set: set the issuer, or empty the list.",
        ),
        (
            values(contract={"blocked": ["oidc:eve@example.org"]}),
            "blocked names oidc:eve@example.org with the prefix, which would block nobody: write eve@example.org.",
        ),
    ],
)
def test_values_that_do_not_fit_are_refused(render: Rendering, said: dict[str, Any], error: str) -> None:
    found = render.errors(said)
    assert any(error in line for line in found), found


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ({"issuer": "http://login.example.org"}, "issuer"),
        ({"issuer": "https://ada@login.example.org"}, "issuer"),
        ({"prefix": ""}, "prefix"),
        ({"prefix": "system:"}, "prefix"),
        ({"blocked": ['"] || true || ["']}, "blocked"),
    ],
)
def test_the_schema_refuses(render: Rendering, said: dict[str, Any], where: str) -> None:
    refusal = render.refusal({"global": {"contract": {"login": {"issuer": ISSUER} | said}}})
    assert f"login/{where}" in refusal or f"login.{where}" in refusal, refusal
