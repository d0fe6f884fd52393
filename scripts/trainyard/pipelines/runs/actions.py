"""Actions on a run: stop it, retry it, delete it."""

import re
from collections.abc import Callable

from trainyard import programs
from trainyard.errors import TrainyardError
from trainyard.kube import Access, Kube, KubeError
from trainyard.pipelines.runs import model, nodes, snapshot
from trainyard.shell import CommandError, run


class NoPipelinesError(TrainyardError):
    """The cluster has no Argo Workflows."""


def stop(kube: Kube, name: str) -> bool:
    """Stops a run: its pods get SIGTERM, only a workflow's `onExit` still runs. False if it had ended."""
    if nodes.run(snapshot.fetch(kube, name)).ended:
        return False
    kube.patch(_path(kube, name), {"spec": {"shutdown": "Stop"}})
    return True


def retry(access: Access, kube: Kube, name: str, say: Callable[[str], None]) -> None:
    """Runs the failed steps of a run again, and the steps after them; successful steps stay as they are.

    Argo's own program computes the new state of the nodes.
    """
    found = nodes.run(snapshot.fetch(kube, name))
    if not found.ended:
        raise TrainyardError(f"run {name} is still {found.state}", hint=f"first `trainyard runs stop {name}`")
    if found.succeeded:
        raise TrainyardError(f"run {name} succeeded", hint="submit the pipeline again; its cache serves what is equal")
    who = ["--as", access.user] if access.user else []
    who += [word for group in access.groups for word in ("--as-group", group)]
    who += ["--kubeconfig", access.kubeconfig] if access.kubeconfig else []
    who += ["--context", access.context] if access.context else []
    if found.stopping:
        # a run that was stopped would stop again at once
        kube.patch(_path(kube, name), {"spec": {"shutdown": None}})
    try:
        run([programs.find("argo"), "retry", name, "-n", kube.namespace, *who, "-o", "name"], timeout=120)
    except CommandError as error:
        reason = re.sub(r"^.*?msg=|^rpc error: code = \S+ desc = ", "", error.output.strip().splitlines()[-1])
        raise TrainyardError(f"run {name} can't be retried: {reason}") from None


def delete(kube: Kube, name: str) -> bool:
    """Deletes a run and its pods; artifacts and logs in the store stay. False if there was none."""
    return kube.delete(_path(kube, name))


def listed(kube: Kube, *, experiment: str = "", pipeline: str = "") -> list[model.Run]:
    """All runs of the namespace, newest first."""
    labels = {model.EXPERIMENT: experiment, model.PIPELINE: pipeline}
    chosen = ",".join(f"{key}={value}" for key, value in labels.items() if value)
    query = {"labelSelector": chosen} if chosen else {}
    try:
        found = kube.list(kube.path(model.VERSION, model.RESOURCE), **query, limit="50")
    except KubeError as error:
        if error.status == 404:
            raise NoPipelinesError(
                "this cluster has no Argo Workflows", where=kube.host, hint="ask your platform engineer for pipelines"
            ) from None
        raise
    return sorted(map(nodes.run, found), key=lambda run: str(run.created), reverse=True)


def _path(kube: Kube, name: str) -> str:
    return kube.path(model.VERSION, model.RESOURCE, name)
