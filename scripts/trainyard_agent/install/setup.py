"""The last phase of an installation: applies and prunes what needs the operators, once they answer."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from trainyard_agent.api import Api, ApiError
from trainyard_agent.clock import Clock
from trainyard_agent.install import queues, quotas, teams
from trainyard_agent.say import say
from trainyard_agent.store import buckets, logs, s3_users, store_metrics


def established(api: Api, name: str) -> str:
    """The reason why the CRD is not served yet; "" once it is."""
    try:
        crd = api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
    except ApiError as error:
        return error.message
    # Right after the CRD's creation, its conditions are null.
    conditions = {c["type"]: c for c in crd.get("status", {}).get("conditions") or []}
    if conditions.get("Established", {}).get("status") == "True":
        return ""
    return str(conditions.get("NamesAccepted", {}).get("message") or "not Established yet")


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
    """The reason why training-operator's admission does not accept a dry-run job yet; "" once it does."""
    path = f"/apis/kubeflow.org/v1/namespaces/{api.namespace}/pytorchjobs"
    try:
        api.call("POST", path, probe_job(api.namespace), query={"dryRun": "All"})
    except ApiError as error:
        return "" if error.status == 409 else error.message
    return ""


def run(plan_file: str, contract_file: str, timeout: float) -> int:
    """Run all steps in order, within `timeout` seconds. Raises PlatformError with the reason."""
    plan = json.loads(Path(plan_file).read_text())
    contract = json.loads(Path(contract_file).read_text())
    clock, api = Clock(timeout), Api()
    for name in plan["crds"]:
        clock.wait(f"CRD {name}", partial(established, api, name))
    teams.close_accounts(api, plan["teams"], clock)
    removed = teams.remove(api, plan, logs.all_buckets(contract))
    refused = queues.apply_all(api, plan["objects"], clock)
    buckets.ensure(contract, clock)
    s3_users.ensure_teams(contract, api, timedelta(seconds=plan["keepKeysSeconds"]))
    if store_metrics.wanted():
        store_metrics.ensure()
    if plan["probeTrainingOperator"]:
        clock.wait("training-operator's admission", lambda: operator_answers(api))
    teams.await_removed(api, removed, clock)
    if plan["pruneQueues"]:
        queues.prune(api, plan["label"], {obj["metadata"]["name"] for obj in plan["objects"]}, clock)
    queues.must_apply(api, refused, clock)
    quotas.apply_all(api, plan["quotas"], clock)
    say("everything is applied")
    return 0
