"""Who may do what, asked of a real API server: members, viewers and job accounts of one team against both teams."""

import itertools
import json

import pytest
from rights import may

from trainyard.kinds import registry
from trainyard_dev.apiserver import ApiServer, Identity
from trainyard_dev.policy.cases import WHO

MEMBER = Identity("ada", ("vision-members",))
VIEWER = Identity("bob", ("vision-viewers",))
JOB = Identity.account("vision", "training")
PIPELINE = Identity.account("vision", "pipeline")
DEFAULT = Identity.account("vision", "default")
NOBODY = Identity("mallory")
SYSTEM = "trainyard-system"

READ, WRITE = ("get", "list", "watch"), ("create", "patch", "delete")
JOBS = tuple(kind.resource for kind in registry.KINDS)
LOOK = (
    *JOBS, "pods", "services", "events", "configmaps", "persistentvolumeclaims", "resourcequotas", "limitranges",
    "podgroups.scheduling.volcano.sh", "workflows.argoproj.io", "workflowtemplates.argoproj.io",
    "cronworkflows.argoproj.io", "events.events.k8s.io",
)  # fmt: skip

# The whole of what each may do in the namespace of team vision, by resource. All else is refused.
SEE: dict[str, set[str]] = {resource: set(READ) for resource in LOOK}
SEE |= {"pods/log": {"get"}, "namespaces": {"get"}, "pods.metrics.k8s.io": {"get", "list"}}
RUN: dict[str, set[str]] = {
    **{resource: {*READ, *WRITE} for resource in (*JOBS, "persistentvolumeclaims")},
    "pods": {*READ, "create", "delete"},
    "configmaps": {*READ, *WRITE, "update"},
    "workflows.argoproj.io": {*READ, *WRITE, "update"},
    "cronworkflows.argoproj.io": {*READ, *WRITE, "update"},
    "cronjobs.batch": {"get", "create"},  # so that a rule answers: it lets none through
    "pods/exec": {"get", "create"},
    "pods/portforward": {"get", "create"},
}
# What serving brings: here it is on. Without it none of this is there, which charts/serving/tests/test_serving.py says.
SITES = ("httproutes.gateway.networking.k8s.io", "scaledobjects.keda.sh", "httpscaledobjects.http.keda.sh",
         "inferenceservices.serving.kserve.io")  # fmt: skip
SERVED = ("deployments.apps", "horizontalpodautoscalers.autoscaling", "poddisruptionbudgets.policy",
          "ingresses.networking.k8s.io", *SITES)  # fmt: skip
SEE |= {resource: set(READ) for resource in (*SERVED, "replicasets.apps")}
RUN |= {resource: {*READ, *WRITE} for resource in (*SERVED, "services")}
# What a step of a pipeline may do.
STEP: dict[str, set[str]] = {
    "workflowtaskresults.argoproj.io": {"create", "patch"},
    **{kind.resource: {*READ, "create", "delete"} for kind in registry.with_gang()},
    "pods": set(READ),
    "events": set(READ),
    "pods/log": {"get"},
    "persistentvolumeclaims": {*READ, "create", "delete"},
    "configmaps": {*READ, "create", "delete"},
    "jobs.batch": {*READ, "create", "delete"},  # global.contract.pipelines.objects, for steps that make any object
    "deployments.apps": {"get", "list", "patch"},  # serving: another version of what is in service
    "replicasets.apps": {"get", "list"},
}
# What everyone on the platform may see of the whole cluster.
SHARED = {
    "queues.scheduling.volcano.sh": set(READ),
    "priorityclasses.scheduling.k8s.io": set(READ),
    "storageclasses.storage.k8s.io": set(READ),
}

ROLES = {
    "member": (MEMBER, SEE | RUN, SHARED),
    "viewer": (VIEWER, SEE, SHARED),
    "job": (JOB, {}, {}),
    "step": (PIPELINE, STEP, {}),
    "default account": (DEFAULT, {}, {}),
}


def listed(server: ApiServer, who: Identity, namespace: str) -> dict[str, set[str]]:
    """The server's list of somebody's rights there: verbs of each resource, but for single objects'."""
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
    answer = server.create(review | {"spec": {"namespace": namespace}}, identity=who)
    assert answer.ok and not answer.body["status"]["incomplete"], answer.message
    found: dict[str, set[str]] = {}
    for rule in answer.body["status"]["resourceRules"]:
        if not rule.get("resourceNames"):
            for group, resource in itertools.product(rule["apiGroups"], rule["resources"]):
                plural, slash, sub = resource.partition("/")
                found.setdefault(f"{plural}.{group}".rstrip(".") + slash + sub, set()).update(rule["verbs"])
    return found


def matrix(server: ApiServer, who: Identity, namespace: str) -> dict[str, set[str]]:
    """Every verb that is allowed, for each resource, beside what anybody may."""
    anybody = listed(server, NOBODY, namespace)
    return {name: verbs for name, verbs in listed(server, who, namespace).items() if verbs != anybody.get(name)}


@pytest.mark.parametrize("role", ROLES)
def test_in_its_own_namespace_exactly_this(server: ApiServer, role: str) -> None:
    who, own, everywhere = ROLES[role]
    assert matrix(server, who, "vision") == own | everywhere


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("namespace", ["speech", SYSTEM, "kube-system", "default"])
def test_elsewhere_only_what_everyone_may_see(server: ApiServer, role: str, namespace: str) -> None:
    who, _, everywhere = ROLES[role]
    assert matrix(server, who, namespace) == everywhere


QUEUES = {
    "member": {"vision": True, "training": True, "speech": False, "default": False, "root": False},
    "viewer": dict.fromkeys(("vision", "training", "speech"), False),
    "job": dict.fromkeys(("vision", "training", "speech"), False),
    "step": {"vision": True, "training": True, "speech": False, "default": False},
    "default account": dict.fromkeys(("vision", "training", "speech"), False),
}


@pytest.mark.parametrize(("role", "queue"), [(role, queue) for role, queues in QUEUES.items() for queue in queues])
def test_queues_are_used_by_their_team(server: ApiServer, role: str, queue: str) -> None:
    asked = may(server, ROLES[role][0], "use", "queues.scheduling.volcano.sh", name=queue)
    assert asked is QUEUES[role][queue]


def test_a_queue_that_is_not_named_is_not_the_teams(server: ApiServer) -> None:
    speech = Identity("eve", ("speech-members",))
    assert may(server, speech, "use", "queues.scheduling.volcano.sh", name="speech")
    assert not may(server, speech, "use", "queues.scheduling.volcano.sh", name="training")
    assert not may(server, speech, "use", "queues.scheduling.volcano.sh", name="vision")


@pytest.mark.parametrize("role", ["member", "viewer"])
def test_the_contract_is_read_and_nothing_beside_it(server: ApiServer, role: str) -> None:
    who = ROLES[role][0]
    assert may(server, who, "get", "configmaps", SYSTEM, "trainyard-contract")
    assert not may(server, who, "patch", "configmaps", SYSTEM, "trainyard-contract")
    assert not may(server, who, "get", "configmaps", SYSTEM, "trainyard-setup")
    contract = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": SYSTEM}}
    answer = server.call("GET", f"{server.path(contract)}/trainyard-contract", identity=who)
    teams = json.loads(answer.body["data"]["contract.json"])["teams"]
    assert [team["name"] for team in teams] == ["vision", "speech"]


@pytest.mark.parametrize("name", ["trainyard-s3", "trainyard-minio-root"])
@pytest.mark.parametrize("namespace", ["vision", "speech", SYSTEM])
def test_no_secret_is_read_by_name(server: ApiServer, namespace: str, name: str) -> None:
    for who, *_ in ROLES.values():
        assert not may(server, who, "get", "secrets", namespace, name)


def test_a_refusal_says_who_may_not_do_what(server: ApiServer) -> None:
    for args, words in (
        (["create", "token", "training", "-n", "vision"], 'cannot create resource "serviceaccounts/token"'),
        (["get", "secret", "trainyard-s3", "-n", "speech"], 'cannot get resource "secrets"'),
        (["delete", "networkpolicy", "default-deny", "-n", "vision"], 'cannot delete resource "networkpolicies"'),
        (["patch", "resourcequota", "team", "-n", "vision", "-p", "{}"], 'cannot patch resource "resourcequotas"'),
        (["label", "namespace", "vision", "trainyard.io/team-"], 'cannot patch resource "namespaces"'),
    ):
        answer = server.kubectl(args, as_user=MEMBER.user, as_groups=MEMBER.groups, check=False)
        assert answer.returncode != 0
        assert words in answer.stderr
    answer = server.kubectl(
        ["create", "rolebinding", "x", "--clusterrole=admin", "--user=ada", "-n", "vision"],
        as_user=MEMBER.user, as_groups=MEMBER.groups, check=False,
    )  # fmt: skip
    assert 'cannot create resource "rolebindings"' in answer.stderr


SETUP = Identity.account(SYSTEM, "trainyard-setup")


@pytest.fixture(scope="module")
def spaces(server: ApiServer) -> None:
    """Namespaces that setup may not delete: unlabelled, of another release, and one whose label names another team."""
    labels: dict[str, dict[str, str]] = {
        "plain": {},
        "foreign": {"trainyard.io/team": "foreign", "trainyard.io/applied-by": "other"},
        "forged": {"trainyard.io/team": "vision", "trainyard.io/applied-by": "trainyard"},
    }
    for name, given in labels.items():
        answer = server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": given}})
        assert answer.ok, answer.message


@pytest.mark.usefixtures("spaces")
@pytest.mark.parametrize("name", ["plain", "foreign", "forged", SYSTEM])
def test_setup_deletes_no_other_namespace(server: ApiServer, name: str) -> None:
    answer = server.call("DELETE", f"/api/v1/namespaces/{name}", identity=SETUP, query={"dryRun": "All"})
    assert answer.status in (403, 422)
    assert "only namespaces of teams that this release made" in answer.message


def test_setup_deletes_the_namespace_of_a_team(server: ApiServer) -> None:
    answer = server.call("DELETE", "/api/v1/namespaces/speech", identity=SETUP, query={"dryRun": "All"})
    assert answer.ok, answer.message


def test_setup_reads_only_the_bucket_user_of_teams(server: ApiServer) -> None:
    for team in ("vision", "speech"):
        assert may(server, SETUP, "get", "secrets", team, "trainyard-s3")
        assert may(server, SETUP, "patch", "serviceaccounts", team, "default")
        assert not may(server, SETUP, "get", "secrets", team, "other")
        assert not may(server, SETUP, "list", "secrets", team)
        assert not may(server, SETUP, "patch", "serviceaccounts", team, "training")
    assert not may(server, SETUP, "get", "secrets", SYSTEM, "trainyard-minio-root")


CERTIFICATES = f"{SYSTEM}-webhook"
# What the platform's own accounts read of Secrets, beside teams' (see test_setup_reads_only_the_bucket_user_of_teams).
READERS = {
    ("trainyard-training-operator", CERTIFICATES, ""): set(READ),
    ("trainyard-admission-init", SYSTEM, "volcano-admission-secret"): {"get"},
}


def test_no_account_reads_the_platforms_keys(server: ApiServer) -> None:
    """Nor Helm's releases, in which root's key lies: neither by name nor by list, in no account's name."""
    accounts = [
        one["metadata"]["name"]
        for one in server.call("GET", f"/api/v1/namespaces/{SYSTEM}/serviceaccounts").body["items"]
    ]
    assert {"trainyard-training-operator", "trainyard-controllers", "trainyard-workflow-controller-vision"} <= set(
        accounts
    )
    names = ("", "trainyard-minio-root", "trainyard-s3", "sh.helm.release.v1.trainyard.v1", "volcano-admission-secret")
    found = {
        (account, namespace, name): allowed
        for account in accounts
        for namespace in ("", SYSTEM, CERTIFICATES, "kube-system")
        for name in names
        if (
            allowed := {
                verb
                for verb in READ
                if may(server, Identity.account(SYSTEM, account), verb, "secrets", namespace, name)
            }
        )
    }
    every = {("trainyard-training-operator", CERTIFICATES, name): set(READ) for name in names}
    assert found == READERS | every


def test_training_operators_namespace_holds_its_certificate_and_nothing_else(server: ApiServer) -> None:
    """Who steals its account reads what lies there."""
    found = server.call("GET", f"/api/v1/namespaces/{CERTIFICATES}/secrets", identity=WHO["training-operator"])
    assert [one["metadata"]["name"] for one in found.body["items"]] == ["training-operator-webhook-cert"]
    refused = server.call(
        "GET", f"/api/v1/namespaces/{SYSTEM}/secrets/trainyard-minio-root", identity=WHO["training-operator"]
    )
    assert refused.status == 403 and 'cannot get resource "secrets"' in refused.message


def test_volcano_removes_network_policies_of_its_jobs_only(server: ApiServer) -> None:
    """The plugin svc deletes by the job's name, which a member chooses."""
    volcano = Identity.account(SYSTEM, "trainyard-controllers")
    path = "/apis/networking.k8s.io/v1/namespaces/vision/networkpolicies"
    names = [obj["metadata"]["name"] for obj in server.call("GET", path).body["items"]]
    assert "default-deny" in names and "allow-within" in names
    for name in names:
        answer = server.call("DELETE", f"{path}/{name}", identity=volcano, query={"dryRun": "All"})
        assert "only network policies that belong to its jobs" in answer.message
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "case", "uid": "1"}
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"podSelector": {}},
              "metadata": {"name": "case", "namespace": "vision", "ownerReferences": [owner]}}  # fmt: skip
    assert server.create(policy, identity=volcano).ok
    answer = server.call("DELETE", f"{path}/case", identity=volcano)
    assert answer.ok, answer.message


ARGO = Identity.account(SYSTEM, "trainyard-workflow-controller-vision")


def test_a_teams_argo_acts_in_its_namespace_only(server: ApiServer) -> None:
    assert may(server, ARGO, "create", "pods", "vision")
    assert may(server, ARGO, "update", "workflows.argoproj.io", "vision")
    assert not may(server, ARGO, "create", "configmaps", "vision")
    assert matrix(server, ARGO, SYSTEM) == {"configmaps": {"get", "create", "update"}}
    for namespace in ("speech", "kube-system", "default"):
        assert matrix(server, ARGO, namespace) == {}
    for namespace in ("", "vision", "speech", SYSTEM):
        assert not may(server, ARGO, "get", "secrets", namespace)
        assert not may(server, ARGO, "create", "serviceaccounts/token", namespace)


def test_another_teams_namespace_refuses_it_by_name(server: ApiServer) -> None:
    answer = server.call("GET", "/apis/argoproj.io/v1alpha1/namespaces/speech/workflows", identity=ARGO)
    assert answer.status == 403
    assert f'User "{ARGO.user}" cannot list resource "workflows"' in answer.message
    assert 'in the namespace "speech"' in answer.message


CACHES = {"vision.mnist": True, "speech.x": False, "visions.mnist": False, "vision": False}


@pytest.mark.parametrize(("name", "allowed"), CACHES.items())
def test_argo_writes_its_own_teams_caches_and_nothing_beside(server: ApiServer, name: str, allowed: bool) -> None:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": SYSTEM}}
    answer = server.create(made, identity=ARGO, dry_run=True)
    assert answer.ok is allowed, answer.message
    if not allowed:
        assert "Argo may change only caches of its own team, ConfigMaps named vision.<pipeline>" in answer.message


def test_argo_leaves_the_contract_alone(server: ApiServer) -> None:
    contract = {"apiVersion": "v1", "kind": "ConfigMap"}
    contract["metadata"] = {"name": "trainyard-contract", "namespace": SYSTEM}  # type: ignore[assignment]
    held = server.call("GET", f"{server.path(contract)}/trainyard-contract").body
    changed = server.replace(held | {"data": {}}, identity=ARGO, dry_run=True)
    assert "Argo may change only caches of its own team" in changed.message
    gone = server.call("DELETE", f"{server.path(contract)}/trainyard-contract", identity=ARGO, query={"dryRun": "All"})
    assert gone.status == 403


@pytest.mark.parametrize("name", ["vision.mnist", "trainyard-contract"])
def test_the_janitor_removes_caches_and_nothing_beside(server: ApiServer, name: str) -> None:
    janitor = Identity.account(SYSTEM, "trainyard-janitor")
    cache = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vision.mnist", "namespace": SYSTEM}}
    cache["metadata"]["labels"] = {"workflows.argoproj.io/configmap-type": "Cache"}  # type: ignore[index]
    made = server.create(cache)
    assert made.ok, made.message
    path = f"{server.path(cache)}/{name}"
    try:
        changed = server.replace(server.call("GET", path).body | {"data": {}}, identity=janitor, dry_run=True)
        gone = server.call("DELETE", path, identity=janitor, query={"dryRun": "All"})
    finally:
        server.call("DELETE", f"{server.path(cache)}/vision.mnist")
    for answer in (changed, gone):
        assert answer.ok is (name == "vision.mnist"), answer.message
        if not answer.ok:
            assert "the janitor may change only caches of Argo" in answer.message
