"""Teams: values' promises are kept; one upgrade adds, changes or removes a team and keeps its data."""

import io
import re
from typing import Any

from minio.error import S3Error

from trainyard.names import GPU
from trainyard_dev.e2e import releases, store
from trainyard_dev.e2e.context import SETTLE, SYSTEM, Context, member, way
from trainyard_dev.e2e.entry import APART, FIRST, RELEASE_CODE, UPGRADES, VOLUMES, check
from trainyard_dev.e2e.recorder import require
from trainyard_dev.e2e.releases import RELEASE, Layer, helm, layer

NEW: dict[str, Any] = {
    "name": "ranking",
    "description": "Made, changed and removed by a check",
    "gid": 20003,
    "members": {"groups": ["ranking-members"]},
    "viewers": {"groups": ["ranking-viewers"]},
    "quota": {"all": {"pods": 20}, "training-normal": {"gpus": 2}},
    "maxGpusPerJob": 2,
    "storage": {"workspace": "1Gi"},
}
NAME = NEW["name"]
QUEUE = "queues.scheduling.volcano.sh"
POLICIES = {
    "default-deny",
    "allow-dns",
    "allow-within",
    "allow-storage",
    "allow-api",
    "allow-api-launcher",
    "allow-packages",
    "allow-team",
}
NOTE = "the weights of the second epoch"
OBJECT = f"{NAME}/kept/model.bin"


@check("teams.made", main=True, rank=FIRST, shares={VOLUMES}, inputs=RELEASE_CODE)
def made(context: Context) -> None:
    """Every team of the contract has everything that its values promise, and a pod of each sees it."""
    teams = context.contract["teams"]
    title = f"{len(teams)} teams: namespace, queue, quotas, permissions, network, bucket user, volumes"
    with context.recorder.check("teams.made", title) as figures:
        require(teams, "the contract has no team")
        for team in teams:
            _has_all(context, team)
            figures[team["name"]] = _pod_sees(context, team)


@check("teams.add", "teams.change", "teams.remove", needs=("teams.made",), after=("seeing.rightsize",),
       locks={UPGRADES, APART}, shares={VOLUMES}, inputs=RELEASE_CODE)  # fmt: skip
def changed(context: Context) -> None:
    """A third team is added, changed, removed and added again, each by one `helm upgrade`; others notice nothing."""
    with layer(context) as values:
        _changed(context, values, releases.teams())


def _changed(context: Context, values: Layer, others: list[dict[str, Any]]) -> None:
    with context.recorder.check("teams.add", "one helm upgrade adds a team") as figures:
        before = _identity(context, others)
        figures["seconds"] = _upgrade(values, [*others, NEW])
        _has_all(context, _team(context))
        figures["pod"] = _pod_sees(context, _team(context), write=NOTE)
        with store.connect(context.kubectl, SYSTEM, of=NAME) as s3:
            s3.client.put_object("runs", OBJECT, io.BytesIO(NOTE.encode()), len(NOTE))
        require(_identity(context, others) == before, "the upgrade recreated a namespace, claim or key of another team")
    if context.recorder.failed("teams.add"):
        later = {"teams.change": "a team changes", "teams.remove": "a team is removed and comes back"}
        context.recorder.skip_all(later, "no team to change: teams.add failed")
        return
    with context.recorder.check("teams.change", "one helm upgrade changes quota, weight and limits") as figures:
        quota = {"all": {"pods": 20}, "training-low": {"gpus": 4}}
        figures["seconds"] = _upgrade(
            values, [*others, NEW | {"quota": quota, "queue": {"weight": 3}, "maxGpusPerJob": 4}]
        )
        _has_all(context, _team(context))
        spec = context.kubectl.get(QUEUE, NAME)[0]["spec"]
        require(spec["weight"] == 3, f"the queue's weight is {spec['weight']}, not 3 as in the values")
        gone = context.kubectl.find("resourcequota", "team-training-normal", "-n", NAME)
        require(gone is None, "the quota that was removed from the values still exists")
    with context.recorder.check("teams.remove", "a removed team's data is kept for its return") as figures:
        _removed(context, values, others, figures)
        figures["back_seconds"] = _upgrade(values, [*others, NEW])
        _has_all(context, _team(context))
        _finds_its_data(context)
        require(_identity(context, others) == before, "removing a team changed another team")


def _upgrade(values: Layer, teams: list[dict[str, Any]]) -> float:
    """One `helm upgrade` with these teams and otherwise the same values; returns its seconds."""
    return values.set({"global": {"contract": {"teams": teams}}})


def _team(context: Context) -> dict[str, Any]:
    """The third team in the contract, with its defaults."""
    return next(team for team in context.contract["teams"] if team["name"] == NAME)


def _identity(context: Context, teams: list[dict[str, Any]]) -> list[str]:
    """Identities that must be the same before and after an upgrade that concerns another team."""
    found = []
    for team in teams:
        name = team["name"]
        found.append(context.kubectl.get("namespace", name)[0]["metadata"]["uid"])
        found.append(context.kubectl.get("pvc", "workspace", "-n", name)[0]["metadata"]["uid"])
        found.append(store.credentials(context.kubectl, name)["secret-key"])
    return found


def _has_all(context: Context, team: dict[str, Any]) -> None:
    """The objects of one team exist and match its values."""
    name, kubectl = team["name"], context.kubectl
    meta = kubectl.get("namespace", name)[0]["metadata"]
    due = {
        "trainyard.io/queues": ",".join([name, *team["queues"]]),
        "trainyard.io/priority-classes": ",".join(team["priorityClasses"]),
        "trainyard.io/max-gpus-per-job": str(team["maxGpusPerJob"]),
        "trainyard.io/gid": str(team["gid"]),
        "trainyard.io/max-claim": team["storage"]["maxClaim"],
    }
    wrong = {key: value for key, value in due.items() if meta["annotations"].get(key) != value}
    require(not wrong, f"namespace {name} lacks the annotations {wrong}")
    level = meta["labels"].get("pod-security.kubernetes.io/enforce")
    require(level == "restricted", f"namespace {name} enforces Pod Security {level}")

    queue = kubectl.get(QUEUE, name)[0]
    state, parent = queue.get("status", {}).get("state"), queue["spec"].get("parent")
    require((state, parent) == ("Open", team["queue"]["parent"]), f"queue {name} is {state} below {parent}")

    quotas = {one["metadata"]["name"]: one["spec"] for one in kubectl.get("resourcequota", "-n", name)}
    for limited, quantities in team["quota"].items():
        if not quantities:
            continue
        held = quotas.get("team" if limited == "all" else f"team-{limited}", {}).get("hard", {})
        for resource, amount in quantities.items():
            counted = f"requests.{GPU}" if resource == "gpus" else resource
            require(held.get(counted) == str(amount), f"quota {limited} of {name} has {counted}={held.get(counted)}")
    limits = kubectl.get("limitrange", "team", "-n", name)[0]["spec"]["limits"]
    require(limits[1]["max"]["storage"] == team["storage"]["maxClaim"], f"the LimitRange of {name} has {limits}")

    accounts = {one["metadata"]["name"]: one for one in kubectl.get("serviceaccount", "-n", name)}
    tokens = [one for one in ("default", "training") if accounts[one].get("automountServiceAccountToken") is not False]
    require(not tokens, f"pods of the accounts {tokens} of {name} get a token")
    lacking = POLICIES - {one["metadata"]["name"] for one in kubectl.get("networkpolicy", "-n", name)}
    require(not lacking, f"namespace {name} lacks the network policies {sorted(lacking)}")

    user = store.credentials(kubectl, name)["access-key"]
    require(re.fullmatch("[A-Z0-9]{20}", user), f"the access key of {name} is not random: {user}")
    claims = {one["metadata"]["name"]: one["status"]["phase"] for one in kubectl.get("pvc", "-n", name)}
    for claim in ("workspace", "shared"):
        require(claims.get(claim) == "Bound", f"claim {name}/{claim} is {claims.get(claim, 'not there')}")
    _rights(context, name)


def _rights(context: Context, team: str) -> None:
    """Its members may train here and use its queue, and nothing elsewhere."""
    job, queues = "pytorchjobs.kubeflow.org", [one["name"] for one in context.contract["teams"]]
    other = next((name for name in queues if name != team), SYSTEM)
    for due, asked in (
        (True, ("create", job, "-n", team)),
        (False, ("create", job, "-n", other)),
        (True, ("use", f"{QUEUE}/{team}")),
        (False, ("use", f"{QUEUE}/{other}")),
        (False, ("list", "secrets", "-n", team)),
        (False, ("patch", "resourcequotas", "-n", team)),
    ):
        answer = "may not" if due else "may"
        said = context.kubectl(*member(team), "auth", "can-i", *asked, check=False, timeout=30).stdout.strip()
        require((said == "yes") is due, f"members of {team} {answer} {' '.join(asked)}")


def _pod_sees(context: Context, team: dict[str, Any], write: str = "") -> dict[str, str]:
    """A pod of the team writes to its workspace as its group, reads shared data, and has no token."""
    script = f"""
echo "{write or "x"}" > /workspace/note-{NAME}; echo group $(stat -c %g /workspace/note-{NAME})
touch /shared/x 2>/dev/null && echo shared writable || echo shared read-only
{SETTLE}; echo api $({way("$KUBERNETES_SERVICE_HOST", 443)})
ls -d /var/run/secrets/kubernetes.io 2>/dev/null && echo token there || echo token none"""
    if not write:
        script += f"; rm /workspace/note-{NAME}"
    claims = {"workspace": "/workspace", "shared": "/shared"}
    pod = context.pod("team-sees", script, claims=claims)
    phase, log = context.run_pod(pod, timeout=150, namespace=team["name"])
    require(phase == "Succeeded", f"a pod of {team['name']} ended {phase}: {log[-200:]}")
    seen = dict(line.split(" ", 1) for line in log.splitlines() if " " in line)
    require(seen.get("group") == str(team["gid"]), f"a file of {team['name']} has group {seen.get('group')}")
    require(seen.get("shared") == "read-only", f"the shared volume is {seen.get('shared')} to {team['name']}")
    require(seen.get("token") == "none", f"a pod of {team['name']} has a token")
    require(seen.get("api") == "closed", f"a pod of {team['name']} reaches the API server without the label")
    return seen


def _removed(context: Context, values: Layer, others: list[dict[str, Any]], figures: dict[str, Any]) -> None:
    """One upgrade without the team ends its jobs and removes everything except its data, which the upgrade lists."""
    kubectl = context.kubectl
    keys = store.credentials(kubectl, NAME)
    volume = kubectl.get("pvc", "workspace", "-n", NAME)[0]["spec"]["volumeName"]
    running = context.pod("still-running", "sleep 600", claims={"workspace": "/workspace"})
    kubectl.apply([running], NAME)
    context.wait("pod/still-running", "condition=Ready", 90, NAME)
    figures["seconds"] = _upgrade(values, others)
    said = kubectl("logs", "-n", SYSTEM, f"job/{RELEASE}-setup").stdout
    kept = [line.split("kept: ", 1)[1] for line in said.splitlines() if " kept: " in line]
    figures["kept"] = kept
    require(any(volume in line for line in kept), f"setup does not list the workspace {volume} as kept: {kept}")
    require(f"s3://runs/{NAME}/" in kept, f"setup does not list the prefix in bucket runs as kept: {kept}")

    notes = helm(kubectl, "get", "notes", RELEASE, "-n", SYSTEM)
    require(volume in notes and f"s3://runs/{NAME}/" in notes, "NOTES do not list what the team leaves behind")
    for kind, name in (("namespace", NAME), (QUEUE, NAME), ("clusterrole", f"trainyard-team-{NAME}")):
        require(kubectl.find(kind, name) is None, f"{kind} {name} still exists")
    phase = kubectl.get("pv", volume)[0]["status"]["phase"]
    require(phase == "Released", f"the workspace's volume is {phase}")
    with store.connect(kubectl, SYSTEM) as s3:
        require(s3.read("runs", OBJECT).decode() == NOTE, "the team's object is gone from the bucket")
    require(_key_is_dead(context, keys), "the bucket user of the removed team still works")


def _key_is_dead(context: Context, keys: dict[str, str]) -> bool:
    """Whether the store no longer accepts the user."""
    with store.connect(context.kubectl, SYSTEM, keys=(keys["access-key"], keys["secret-key"])) as s3:
        try:
            s3.client.get_object("runs", OBJECT).close()
        except S3Error as error:
            return error.code == "InvalidAccessKeyId"
    return False


def _finds_its_data(context: Context) -> None:
    """The team that was added again reads its file and its object, with its new key."""
    with store.connect(context.kubectl, SYSTEM, of=NAME) as s3:
        require(s3.read("runs", OBJECT).decode() == NOTE, "the returned team's object differs")
    pod = context.pod("team-finds", f"cat /workspace/note-{NAME}", claims={"workspace": "/workspace"})
    phase, log = context.run_pod(pod, timeout=150, namespace=NAME)
    require((phase, log) == ("Succeeded", NOTE), f"the returned team's workspace: {phase}, {log[-200:]}")
