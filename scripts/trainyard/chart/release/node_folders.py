"""Node folders that a release's log collectors write: listed while the release exists, emptied by a purge."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainyard.chart.helm import parse
from trainyard.chart.release.installed import Installed
from trainyard.errors import TrainyardError

WAIT_S = 120
# The folder itself remains: only the folder is mounted, so its parent is out of reach.
EMPTY = """
import pathlib, shutil, sys
for one in (one for folder in sys.argv[1:] for one in pathlib.Path(folder).iterdir()):
    shutil.rmtree(one) if one.is_dir() and not one.is_symlink() else one.unlink()
"""
CLOSED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True)
class Folders:
    """Paths on nodes, and the settings that a pod needs to run on the same nodes as the collectors."""

    paths: list[str] = field(default_factory=list)
    image: str = ""
    pod: dict[str, Any] = field(default_factory=dict)  # tolerations, pull secrets, node selectors


def written(installed: Installed) -> list[str]:
    """Folders that the release's collectors write on each node; empty if logs are off or the site's own are used."""
    spec = _collectors(installed)
    return _writable(spec) if spec else []


def found(installed: Installed) -> Folders:
    """The folders, with the settings needed to empty them after the release is gone."""
    spec = _collectors(installed)
    if not spec:
        return Folders()
    hooks = parse(installed.helm("get", "hooks", installed.name))
    jobs = [obj for obj in hooks if (obj["kind"], obj["metadata"]["name"]) == ("Job", f"{installed.name}-teardown")]
    image = jobs[0]["spec"]["template"]["spec"]["containers"][0]["image"] if jobs else ""
    kept = ("tolerations", "imagePullSecrets", "nodeSelector", "affinity")
    return Folders(_writable(spec), image, {key: spec[key] for key in kept if key in spec})


def empty(installed: Installed, folders: Folders, say: Callable[[str], None]) -> None:
    """Empties the folders on every node with a temporary DaemonSet; reports a failure and continues."""
    if not folders.paths:
        return
    where, name = f"{', '.join(folders.paths)} of each node", f"{installed.name}-node-folders"
    try:
        if not folders.image:
            raise TrainyardError("the release has no image for it")
        installed.kubectl.apply([_daemons(name, folders)], installed.namespace)
        status = ["rollout", "status", f"daemonset/{name}", f"--timeout={WAIT_S}s"]
        installed.kubectl(*status, "-n", installed.namespace, timeout=WAIT_S + 10)
        say(f"emptied {where}")
    except TrainyardError as error:
        say(f"not emptied: {where}: {error}")
    finally:
        argv = ["delete", "daemonset", name, "--ignore-not-found", "--cascade=foreground", f"--timeout={WAIT_S}s"]
        installed.kubectl(*argv, "-n", installed.namespace, check=False, timeout=WAIT_S + 10)


def _collectors(installed: Installed) -> dict[str, Any] | None:
    """Pod spec of the collectors; None if there are none."""
    made = installed.kubectl.find("daemonset", f"{installed.name}-logs", "-n", installed.namespace)
    return made["spec"]["template"]["spec"] if made else None


def _writable(spec: dict[str, Any]) -> list[str]:
    on_node = {one["name"]: one["hostPath"]["path"] for one in spec["volumes"] if "hostPath" in one}
    mounts = [mount for container in spec["containers"] for mount in container.get("volumeMounts") or []]
    return sorted({on_node[one["name"]] for one in mounts if one["name"] in on_node and not one.get("readOnly")})


def _daemons(name: str, folders: Folders) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "node-folders", "app.kubernetes.io/part-of": "trainyard"}
    volumes = [{"name": f"folder-{at}", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
               for at, path in enumerate(folders.paths)]  # fmt: skip
    mounts = [{"name": one["name"], "mountPath": f"/{one['name']}"} for one in volumes]
    quantities = {"requests": {"cpu": "5m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}}
    first = {
        "name": "empty",
        "image": folders.image,
        "command": ["python3", "-c", EMPTY, *(mount["mountPath"] for mount in mounts)],
        "securityContext": {**CLOSED, "runAsUser": 0, "runAsGroup": 0},  # owner of the files
        "resources": quantities,
        "volumeMounts": mounts,
    }
    rest = {
        "name": "done",
        "image": folders.image,
        "command": ["sleep", "3600"],
        "securityContext": {**CLOSED, "runAsNonRoot": True},
        "resources": quantities,
    }
    spec = {
        **json.loads(json.dumps(folders.pod)),
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "initContainers": [first],
        "containers": [rest],
        "volumes": volumes,
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {"selector": {"matchLabels": labels}, "updateStrategy": {"type": "RollingUpdate"}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "labels": labels}, "spec": body}
