"""The last phase of an installation: what needs the operators is applied once their admission answers, and pruned."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainyard.platform import buckets
from trainyard.platform.api import Api, ApiError
from trainyard.platform.say import PlatformError, say

MANAGER = "trainyard-setup"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


class Clock:
    """One deadline for all waits together."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def wait(self, what: str, ready: Callable[[], str]) -> None:
        """Call `ready` until it returns ""; otherwise it returns why not yet. Raises PlatformError at the deadline."""
        start, said, pause = time.monotonic(), "", 0.3
        while True:
            reason = ready()
            if not reason:
                say(f"{what}: ready after {time.monotonic() - start:.1f} s")
                return
            if reason != said:
                say(f"{what}: {reason}")
                said = reason
            if time.monotonic() > self.end:
                raise PlatformError(f"gave up waiting for {what}: {reason}")
            time.sleep(pause)
            pause = min(pause * 1.5, 2.0)


def established(api: Api, name: str) -> str:
    """ "" once the CRD serves, else the reason."""
    try:
        crd = api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
    except ApiError as error:
        return error.message
    conditions = {c["type"]: c for c in crd.get("status", {}).get("conditions", [])}
    if conditions.get("Established", {}).get("status") == "True":
        return ""
    return str(conditions.get("NamesAccepted", {}).get("message") or "not Established yet")


def admitted(api: Api, path: str, obj: dict[str, Any]) -> str:
    """ "" once the API server takes `obj` in a dry run, webhooks included. A refusal on the merits ends the wait."""
    try:
        api.apply(f"{path}/{obj['metadata']['name']}", obj, manager=MANAGER, dry_run=True)
    except ApiError as error:
        # 403 from a policy or 422 will not mend itself; an absent webhook answers 500 (or 503, 404, 0).
        if error.status in (400, 422) or (error.status == 403 and "denied the request" in error.message):
            raise PlatformError(f"{obj['kind']} {obj['metadata']['name']} is refused: {error.message}") from error
        return error.message
    return ""


def probe_job(namespace: str) -> dict[str, Any]:
    """A PyTorchJob that is only ever sent as a dry run."""
    container = {"name": "pytorch", "image": "trainyard.io/probe:0"}
    master = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "trainyard-probe", "namespace": namespace},
        "spec": {"pytorchReplicaSpecs": {"Master": master}},
    }


def operator_answers(api: Api) -> str:
    """ "" once training-operator's admission takes a dry-run job."""
    path = f"/apis/kubeflow.org/v1/namespaces/{api.namespace}/pytorchjobs"
    try:
        api.call("POST", path, probe_job(api.namespace), query={"dryRun": "All"})
    except ApiError as error:
        return "" if error.status == 409 else error.message
    return ""


def apply_all(api: Api, objects: list[dict[str, Any]]) -> None:
    """Server-side apply of every object (all are queues today)."""
    for obj in objects:
        name = obj["metadata"]["name"]
        try:
            api.apply(f"{QUEUES}/{name}", obj, manager=MANAGER)
        except ApiError as error:
            raise PlatformError(f"{obj['kind']} {name} was not applied: {error.message}") from error
        say(f"{obj['kind']} {name} applied")


def prune(api: Api, kinds: list[str], label: str, keep: set[str]) -> None:
    """Delete what carries our label and is not wanted any more. One that is still in use stays, and that is said."""
    for kind in kinds:
        path = f"/apis/{kind}"
        try:
            items = api.get(path, {"labelSelector": label}).get("items", [])
        except ApiError as error:
            raise PlatformError(f"{kind} can't be listed: {error.message}") from error
        for name in (item["metadata"]["name"] for item in items):
            if name in keep:
                continue
            try:
                api.call("DELETE", f"{path}/{name}", {"apiVersion": "v1", "kind": "DeleteOptions"})
                say(f"{kind.rsplit('/', 1)[1]} {name} removed: it is gone from the values")
            except ApiError as error:
                say(f"{kind.rsplit('/', 1)[1]} {name} stays for now: {error.message}")


def run(plan_file: str, contract_file: str, timeout: float) -> int:
    """Everything in order, within `timeout` seconds. Raises PlatformError with the reason."""
    plan = json.loads(Path(plan_file).read_text())
    contract = json.loads(Path(contract_file).read_text())
    clock, api = Clock(timeout), Api()
    for name in plan["crds"]:
        clock.wait(f"CRD {name}", lambda name=name: established(api, name))
    for obj in plan["objects"]:
        clock.wait(
            f"Volcano's admission of queue {obj['metadata']['name']}", lambda obj=obj: admitted(api, QUEUES, obj)
        )
    apply_all(api, plan["objects"])
    prune(api, plan["prune"], plan["label"], {obj["metadata"]["name"] for obj in plan["objects"]})
    buckets.ensure(contract, clock)
    if plan["probeTrainingOperator"]:
        clock.wait("training-operator's admission", lambda: operator_answers(api))
    say("everything is applied")
    return 0
