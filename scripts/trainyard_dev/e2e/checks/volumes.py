"""Volumes of teams: the workspace, the shared volume that they only read, and claims that are deleted and recreated."""

from typing import Any

from trainyard_dev.e2e.checks import storage
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.entry import GPUS, STORAGE_CODE, UPGRADES, VOLUMES, check
from trainyard_dev.e2e.recorder import Figures, require

WORKSPACE, SHARED = "workspace", "shared"
MOUNT = "/v"
BOUND = "jsonpath={.status.phase}=Bound"


@check("storage.workspace", title="a team's workspace: two users on two nodes share one group", shares={GPUS, VOLUMES},
       inputs=STORAGE_CODE)  # fmt: skip
def workspace(context: Context, figures: Figures) -> None:
    """Two users of a team share its workspace on two nodes; the other team's claim is a different directory."""
    first, second = context.cpu_node, context.gpu_nodes[0]
    gid = context.kubectl.get("namespace", NAMESPACE)[0]["metadata"]["annotations"]["trainyard.io/gid"]
    seen = _run(context, "write", f"umask 002; echo one > {MOUNT}/check; stat -c '%g %a' {MOUNT}", node=first)
    require(seen == [gid, "2770"], f"group and mode of the workspace are {seen}, not {gid} and 2770")
    append = f"echo two >> {MOUNT}/check; cat {MOUNT}/check; stat -c %g {MOUNT}/check; id -G"
    seen = _run(context, "append", append, node=second, user=1001, queue=NAMESPACE)
    require(seen[:2] == ["one", "two"], f"the second user on {second} reads {seen[:2]}")
    require(seen[2] == gid, f"the file has the group {seen[2]}, not the team's {gid}")
    require(gid in seen[3:], f"the pod has the groups {seen[3:]}, not the team's {gid}")
    figures |= {"nodes": [first, second], "group": gid}
    theirs = _run(context, "other", f"ls {MOUNT} | grep -c '^check$' || true; id -G", namespace=OTHER)
    require(theirs[0] == "0", f"the workspace of {OTHER} shows the files of {NAMESPACE}")
    require(gid not in theirs[1:], f"a pod of {OTHER} has the group of {NAMESPACE}")
    _run(context, "clean", f"rm {MOUNT}/check")


@check("storage.workspace-returns", title="a recreated claim of the workspace class finds its files",
       shares={VOLUMES}, inputs=STORAGE_CODE)  # fmt: skip
def returning(context: Context, figures: Figures) -> None:
    """A claim of the workspace class that is deleted and recreated finds its files, on a new volume."""
    name = "returning"
    _claim_workspace(context, name)
    _run(context, "keep", f"echo kept > {MOUNT}/file", claim=name)
    before = _volume(context, name)
    context.kubectl("delete", "pvc", name, "-n", NAMESPACE, "--timeout=60s")
    phase = context.kubectl.get("pv", before)[0]["status"]["phase"]
    require(phase in ("Released", "Bound"), f"the volume {before} is {phase}, its files may be gone")
    _claim_workspace(context, name)
    after = _volume(context, name)
    seen = _run(context, "find", f"cat {MOUNT}/file; rm {MOUNT}/file", claim=name)
    require(seen == ["kept"], f"the new claim holds {seen}")
    require(after != before, "the volume is unchanged")
    require(context.kubectl.find("pv", before) is None, f"the released volume {before} still exists")
    figures |= {"first volume": before, "second volume": after}
    context.kubectl("delete", "pvc", name, "-n", NAMESPACE, "--wait=false")
    context.kubectl("delete", "pv", after, "--wait=false")


@check("storage.shared-ro", title="the shared volume: only the platform writes, teams read", shares={VOLUMES},
       inputs=STORAGE_CODE)  # fmt: skip
def shared(context: Context, figures: Figures) -> None:
    """Every team can read what the platform writes to the shared volume, and none can change it."""
    write = f"umask 027; mkdir -p {MOUNT}/check; echo data > {MOUNT}/check/file"
    _run(context, "publish", write, claim=SHARED, namespace=SYSTEM)
    for team in (NAMESPACE, OTHER):
        tried = (
            f"cat {MOUNT}/check/file\n"
            f"for what in 'touch {MOUNT}/new' 'rm {MOUNT}/check/file' 'tee -a {MOUNT}/check/file'; do\n"
            "  $what </dev/null 2>&1 && echo done; done"
        )
        phase, log = _pod(context, "read", tried, claim=SHARED, namespace=team, strict=False)
        lines = log.splitlines()
        require(lines[:1] == ["data"], f"a pod of {team} reads {lines[:1]} ({phase})")
        refused = [line for line in lines[1:] if "Read-only file system" in line]
        require(len(refused) == 3, f"a pod of {team} was not refused three times: {lines[1:]}")
        figures[team] = refused[0]
    _run(context, "clean", f"rm -r {MOUNT}/check", claim=SHARED, namespace=SYSTEM)


@check("storage.static", title="a static volume is bound again after its claim is recreated",
       locks={VOLUMES, UPGRADES}, inputs=STORAGE_CODE)  # fmt: skip
def static(context: Context, figures: Figures) -> None:
    """A static volume whose claim was deleted, as with a team's namespace, is bound again to a new claim."""
    found = context.kubectl.get("pvc", SHARED, "-n", OTHER)[0]
    kept = {key: found["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
    kept["annotations"] = {k: v for k, v in kept["annotations"].items() if not k.startswith("pv.kubernetes.io/")}
    again = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": kept, "spec": found["spec"]}
    context.kubectl("delete", "pvc", SHARED, "-n", OTHER, "--timeout=60s")
    context.kubectl.apply([again], OTHER)
    context.wait(f"pvc/{SHARED}", BOUND, 90, OTHER)
    volume = context.kubectl.get("pv", found["spec"]["volumeName"])[0]
    now = context.kubectl.get("pvc", SHARED, "-n", OTHER)[0]["metadata"]["uid"]
    require(now != found["metadata"]["uid"], "the claim was never deleted")
    require(volume["spec"]["claimRef"]["uid"] == now, "the volume is bound to another claim")
    _run(context, "again", f"ls {MOUNT}", claim=SHARED, namespace=OTHER)
    figures["volume"] = volume["metadata"]["name"]


def _claim_workspace(context: Context, name: str) -> None:
    made = storage.claim(name, context.contract["storage"]["workspaceClass"], "64Mi")
    context.kubectl.apply([made], NAMESPACE)
    context.wait(f"pvc/{name}", BOUND, 90)


def _volume(context: Context, claim: str) -> str:
    return context.kubectl.get("pvc", claim, "-n", NAMESPACE)[0]["spec"]["volumeName"]


def _pod(
    context: Context,
    name: str,
    script: str,
    *,
    claim: str = WORKSPACE,
    namespace: str = NAMESPACE,
    node: str | None = None,
    user: int = 1000,
    queue: str | None = None,
    strict: bool = True,
) -> tuple[str, str]:
    """Runs a script in a pod with the claim at /v; returns its end and its log."""
    said = script if strict else f"set +e\n{script}\ntrue"
    pod = context.pod(f"volume-{name}", said, node=node, claims={claim: MOUNT}, user=user, queue=queue)
    return context.run_pod(pod, namespace=namespace)


def _run(context: Context, name: str, script: str, **where: Any) -> list[str]:
    """The words that a script in a pod prints; the check fails if the script fails."""
    phase, log = _pod(context, name, script, **where)
    require(phase == "Succeeded", f"the pod volume-{name} ended {phase}: {log[-300:]}")
    return log.split()
