"""No component has more rights than it uses: far-reaching rights, privileged pods and tokens, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rendering import Objects, Rendering
from trainyard.chart import helm
from trainyard.components import all_components
from trainyard_dev.chart import options, parts

Grant = tuple[str, str]  # (role, "verb resource")
PERMISSIONS = [entry for one in all_components() for entry in one.permissions]
UNRESTRICTED = [entry for one in all_components() for entry in one.unrestricted]
TEAMS = [
    f"global.contract.teams[{i}].{key}={value}"
    for i, (team, gid) in enumerate((("vision", 20001), ("speech", 20002)))
    for key, value in (("name", team), ("gid", gid), ("members.groups[0]", f"{team}-members"))
]
CACHE = [f"global.contract.storage.caches[0].{one}" for one in ("name=a", "bucket=datasets", "prefix=shared/a")]
OPTIONS = options.switched()
EXTRA = {"cloud": [f"global.contract.network.s3[0].{one}" for one in ("cidr=203.0.113.0/24", "port=443")]}
WRITES = {
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "bind",
    "escalate",
    "impersonate",
    "approve",
    "sign",
}
# Within a namespace these matter as well: they read what others keep secret, act in another's name, or hand on rights.
TELLING = {"secrets", "pods/exec", "pods/attach", "pods/portforward", "serviceaccounts/token", "roles", "rolebindings"}
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


@pytest.fixture(scope="module")
def installed(render: Rendering) -> dict[str, Objects]:
    """Every profile with two teams and all that is optional."""
    return {name: render(profile=name, sets=TEAMS + OPTIONS + CACHE + EXTRA.get(name, [])) for name in parts.profiles()}


def bindings(objects: Objects) -> dict[tuple[str, str], set[str]]:
    """(kind, name) of a role -> where it is held: `*`, or namespaces."""
    found: dict[tuple[str, str], set[str]] = {}
    for obj in objects:
        if obj["kind"] in ("ClusterRoleBinding", "RoleBinding"):
            where = "*" if obj["kind"] == "ClusterRoleBinding" else obj["metadata"]["namespace"]
            found.setdefault((obj["roleRef"]["kind"], obj["roleRef"]["name"]), set()).add(where)
    return found


def broad(role: dict[str, Any], *, everywhere: bool) -> Iterator[str]:
    """The rights of a role that need a reason, as `verb resource`, with its group where it isn't the core's."""
    for rule in role.get("rules") or []:
        for group in rule.get("apiGroups") or [""]:
            for resource in rule.get("resources") or []:
                own = bool(rule.get("resourceNames"))
                for verb in rule["verbs"]:
                    if resource == "events" or resource.endswith("/finalizers") or _is_status_of_a_job(group, resource):
                        continue
                    if everywhere:
                        far = verb in WRITES or resource == "secrets"
                    else:
                        far = resource in TELLING and (verb in WRITES or resource == "secrets")
                    if far or "*" in (group, resource, verb):
                        yield f"{verb} {resource}{'.' + group if group else ''}{' (own)' if own else ''}"


def _is_status_of_a_job(group: str, resource: str) -> bool:
    return resource.endswith("/status") and group.endswith(("volcano.sh", "kubeflow.org"))


def held(objects: Objects) -> set[Grant]:
    """Every broad right that someone holds."""
    bound = bindings(objects)
    return {
        (f"{role['kind']} {role['metadata']['name']}", right)
        for role in objects
        if role["kind"] in ("ClusterRole", "Role") and (places := bound.get((role["kind"], role["metadata"]["name"])))
        for right in broad(role, everywhere="*" in places)
    }


def listed() -> set[Grant]:
    return {(entry["role"], right) for entry in PERMISSIONS for right in entry["grants"]}


def test_every_broad_right_is_listed_with_its_reason(installed: dict[str, Objects]) -> None:
    found = set().union(*(held(objects) for objects in installed.values()))
    assert sorted(found - listed()) == [], "give a reason in the component's entry, or take the right away"
    assert sorted(listed() - found) == [], "nobody holds these any more: remove them from the component's entry"


def test_no_cluster_role_reaches_secrets_or_has_a_wildcard(installed: dict[str, Objects]) -> None:
    """Bound or not: who binds it later gets it."""
    bound = {name: bindings(objects) for name, objects in installed.items()}
    for profile, objects in installed.items():
        for role in objects:
            if role["kind"] not in ("ClusterRole", "Role"):
                continue
            name = role["metadata"]["name"]
            for rule in role.get("rules") or []:
                words = [*rule.get("verbs", []), *rule.get("resources", []), *rule.get("apiGroups", [])]
                assert "*" not in words, f"{profile}: {name}"
                if role["kind"] == "ClusterRole" and bound[profile].get(("ClusterRole", name), {"*"}) & {"*"}:
                    assert "secrets" not in rule.get("resources", []), f"{profile}: {name}"


def test_a_broad_right_that_is_put_in_is_found(installed: dict[str, Objects]) -> None:
    role = {"kind": "ClusterRole", "metadata": {"name": "x"}, "rules": [
        {"apiGroups": [""], "resources": ["secrets", "pods"], "verbs": ["list"]},
        {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]},
    ]}  # fmt: skip
    binding = {"kind": "ClusterRoleBinding", "metadata": {}, "roleRef": {"kind": "ClusterRole", "name": "x"}}
    new = held([*installed["kind"], role, binding]) - held(installed["kind"])
    assert {right for _, right in new} == {"list secrets", "get *.apps", "patch nodes"}


def test_volcano_writes_secrets_only_where_teams_work(installed: dict[str, Objects], render: Rendering) -> None:
    def roles(objects: Objects) -> set[str]:
        return {o["metadata"]["namespace"] for o in objects if o["metadata"]["name"] == "trainyard-volcano-ssh"}

    assert roles(installed["kind"]) == {"vision", "speech"}
    assert roles(render(sets=[*TEAMS, "platform.sshPlugin=false"])) == set()


# pods


def pods(objects: Objects) -> Iterator[tuple[str, dict[str, Any]]]:
    for obj in objects:
        for spec in helm.pod_specs(obj):
            yield f"{obj['kind']} {obj['metadata']['name']}", spec


def violations(spec: dict[str, Any]) -> set[str]:
    """The violations of Pod Security's level "restricted" by a pod."""
    found = {key for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)}
    pod = spec.get("securityContext") or {}
    found |= {f"volume {kind}" for volume in spec.get("volumes") or [] for kind in set(volume) - VOLUMES - {"name"}}
    for container in helm.containers(spec):
        own = container.get("securityContext") or {}
        capabilities = own.get("capabilities") or {}
        profile = own.get("seccompProfile") or pod.get("seccompProfile") or {}
        checks = {
            "privileged": own.get("privileged"),
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is not False,
            "runAsNonRoot": own.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True,
            "runAsUser 0": own.get("runAsUser", pod.get("runAsUser")) == 0,
            "seccompProfile": profile.get("type") not in ("RuntimeDefault", "Localhost"),
            "capabilities": "ALL" not in capabilities.get("drop", [])
            or bool(set(capabilities.get("add") or []) - {"NET_BIND_SERVICE"}),
            "hostPort": any(port.get("hostPort") for port in container.get("ports") or []),
            "procMount": own.get("procMount", "Default") != "Default",
        }
        found |= {name for name, wrong in checks.items() if wrong}
    return found


def test_every_pod_is_restricted_or_listed_with_its_reason(installed: dict[str, Objects]) -> None:
    seen: dict[str, set[str]] = {}
    for objects in installed.values():
        for name, spec in pods(objects):
            seen.setdefault(name, set()).update(violations(spec))
    wanted = {entry["pod"]: set(entry["violations"]) for entry in UNRESTRICTED}
    assert {name: found for name, found in seen.items() if found} == wanted


@pytest.mark.parametrize(
    ("change", "violation"),
    [
        ({"hostNetwork": True}, "hostNetwork"),
        ({"volumes": [{"name": "x", "hostPath": {"path": "/"}}]}, "volume hostPath"),
        ({"volumes": [{"name": "x", "nfs": {"server": "a", "path": "/"}}]}, "volume nfs"),
        ({"securityContext": {}}, "seccompProfile"),
        ({"initContainers": [{"name": "x"}]}, "allowPrivilegeEscalation"),
    ],
)
def test_a_pod_that_is_open_is_found(installed: dict[str, Objects], change: dict[str, Any], violation: str) -> None:
    spec = dict(next(spec for name, spec in pods(installed["kind"]) if name == "Job trainyard-setup"))
    assert violations(spec) == set()
    assert violation in violations(spec | change)


def test_tokens_are_mounted_only_where_the_account_has_rights(installed: dict[str, Objects]) -> None:
    for objects in installed.values():
        accounts = {o["metadata"]["name"]: o for o in objects if o["kind"] == "ServiceAccount"}
        entitled = {
            subject["name"]
            for obj in objects
            if obj["kind"] in ("ClusterRoleBinding", "RoleBinding")
            for subject in obj["subjects"]
            if subject["kind"] == "ServiceAccount"
        }
        for name, spec in pods(objects):
            account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
            default = accounts.get(account, {}).get("automountServiceAccountToken", True)
            mounted = spec.get("automountServiceAccountToken", default)
            assert not mounted or account in entitled, f"{name} mounts a token of {account}, which may do nothing"


def test_every_reason_is_a_sentence() -> None:
    for entry in [*PERMISSIONS, *UNRESTRICTED]:
        assert len(entry["reason"].split()) > 4, entry
