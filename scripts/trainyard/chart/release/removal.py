"""Removes a release: by default all data remain, with a purge nothing does."""

import json
from collections.abc import Callable

from trainyard.chart.release import node_folders
from trainyard.chart.release.installed import Installed
from trainyard.chart.release.inventory import Claim, Inventory, goes, remains
from trainyard.components import all_components
from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard_agent.install.teardown import ended, owner

Say = Callable[[str], None]
UNINSTALL_S = 420
WAIT_S = 180
# All objects of our CRDs; a purge deletes the jobs before their operators. Those of components come first, since
# a running workflow would submit its job again.
JOBS = (
    *(resource for one in all_components() for resource in one.removal.get("purges") or ()),
    *(kind.resource for kind in registry.with_gang()),
)
# Annotation of a provisioned volume on what to do with its files; see charts/nfs/tools/nfs-provisioner.
ON_DELETE = "trainyard.io/nfs-on-delete"


def exists(installed: Installed) -> bool:
    """Whether the release exists. After an interrupted purge it may be gone while much remains to be removed."""
    found = json.loads(installed.helm("list", "--all", "--filter", f"^{installed.name}$", "-o", "json"))
    return bool(found)


def uninstall(installed: Installed, say: Say, *, hooks: bool = True) -> None:
    """`helm uninstall`: the hook stops what would hang, Helm removes the rest; data remain. Raises TrainyardError."""
    flags = [] if hooks else ["--no-hooks"]
    try:
        text = installed.helm(
            "uninstall", installed.name, "--wait", "--timeout", f"{UNINSTALL_S}s", *flags, timeout=UNINSTALL_S + 30
        )
    except TrainyardError as error:
        raise TrainyardError(
            error.what,
            where=error.where,
            hint=f"see `kubectl logs -n {installed.namespace} job/{installed.name}-teardown`; where its image can't be "
            "had any more, stop the jobs and the pods that mount the NFS server, then use --no-hooks",
        ) from None
    for line in text.splitlines():
        say(line)


def purge(installed: Installed, say: Say, *, hooks: bool = True) -> None:
    """Removes a release and everything that it or its teams ever stored. Raises TrainyardError.

    Namespaces and claims are removed first, while the provisioner can still remove their files; then the release; then
    objects that only the release used.
    """
    there = exists(installed)
    found = remains(installed)
    folders = node_folders.found(installed) if there else node_folders.Folders()
    _open_gates(installed, say)
    _stop_jobs(installed, found, say)
    if there:
        _mark_files(installed, found, say)
    for team in found.teams:
        _delete(installed, say, "namespace", team)
    _wait(installed, "namespace", found.teams)
    made = {one.name for one in found.volumes if one.provisioned}
    outside = [one for one in found.claims if one.volume in made and one.namespace not in found.teams]
    _free(installed, outside, say)
    for claim in outside:
        _delete(installed, say, "pvc", claim.name, claim.namespace)
    if there:
        for claim in outside:
            _wait(installed, "pvc", [claim.name], claim.namespace)
        _wait(installed, "pv", sorted(made & {claim.volume for claim in found.claims}))
        uninstall(installed, say, hooks=hooks)
    node_folders.empty(installed, folders, say)  # after the collectors that write there are gone
    left = remains(installed)
    for claim in left.claims:
        _delete(installed, say, "pvc", claim.name, claim.namespace)
    for volume in left.volumes:
        _delete(installed, say, "pv", volume.name)
    for secret in left.secrets:
        _delete(installed, say, "secret", secret, installed.namespace)
    for cache in left.caches:
        _delete(installed, say, "configmap", cache, installed.namespace)
    for crd in left.crds:
        _delete(installed, say, "crd", crd)
    for kind, names in (("pv", [v.name for v in left.volumes]), ("crd", left.crds)):
        _wait(installed, kind, names)


def _open_gates(installed: Installed, say: Say) -> None:
    """Unbinds the release's admission policies: one that can't be evaluated any more would block every finalizer."""
    for item in installed.kubectl.get("validatingadmissionpolicybindings"):
        if goes(item, installed.name):
            _delete(installed, say, "validatingadmissionpolicybinding", item["metadata"]["name"])


def _stop_jobs(installed: Installed, found: Inventory, say: Say) -> None:
    """Deletes every training job in the cluster, since the kinds themselves are about to be removed."""
    for resource in JOBS:
        if resource not in found.crds:
            continue
        for job in installed.kubectl.get(resource, "-A"):
            meta = job["metadata"]
            note = "" if ended(job) else " (it ran)"
            installed.kubectl("delete", resource, meta["name"], "-n", meta["namespace"], "--ignore-not-found")
            say(f"deleted {resource.partition('.')[0]} {meta['namespace']}/{meta['name']}{note}")


def _free(installed: Installed, claims: list[Claim], say: Say) -> None:
    """Removes pods that use claims, such as a backup's, through their Job if they have one."""
    for space in sorted({claim.namespace for claim in claims}):
        names = {claim.name for claim in claims if claim.namespace == space}
        for pod in installed.kubectl.get("pods", "-n", space):
            used = {(v.get("persistentVolumeClaim") or {}).get("claimName") for v in pod["spec"].get("volumes") or []}
            if used & names:  # a finished pod blocks its claims, too
                _, kind, name = owner(pod)
                job = kind == "Job"
                _delete(installed, say, "job.batch" if job else "pod", name if job else pod["metadata"]["name"], space)


def _mark_files(installed: Installed, found: Inventory, say: Say) -> None:
    """Tells the provisioner to remove the files of its volumes: kept and archived files would outlive their owner."""
    patch = {"metadata": {"annotations": {ON_DELETE: "delete"}}, "spec": {"persistentVolumeReclaimPolicy": "Delete"}}
    for volume in found.volumes:
        if volume.provisioned:
            installed.kubectl("patch", "pv", volume.name, "--type", "merge", "-p", json.dumps(patch))
            say(f"files of volume {volume.name} go with it ({volume.nfs})")


def _delete(installed: Installed, say: Say, kind: str, name: str, namespace: str = "") -> None:
    place = ["-n", namespace] if namespace else []
    installed.kubectl("delete", kind, name, *place, "--wait=false", "--ignore-not-found")
    say(f"deleted {kind} {namespace + '/' if namespace else ''}{name}")


def _wait(installed: Installed, kind: str, names: list[str], namespace: str = "") -> None:
    """Waits until the objects are gone. Raises TrainyardError, which names the first that is not."""
    place = ["-n", namespace] if namespace else []
    gone = ["--for=delete", f"--timeout={WAIT_S}s"]
    for name in names:
        installed.kubectl("wait", f"{kind}/{name}", *place, *gone, check=False, timeout=WAIT_S + 30)
        left = installed.kubectl.find(kind, name, *place)
        if left:
            conditions = (left.get("status") or {}).get("conditions") or []
            said = [c["message"] for c in conditions if c["status"] == "True" and c.get("message")]
            raise TrainyardError(
                f"{kind} {name} still exists after {WAIT_S} s: {'; '.join(said) or left['metadata'].get('finalizers')}",
                hint="remove what blocks the deletion, then run the command again",
            )
