"""Runs every attempt against this tree on a real API server."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard.policy.rules import PREFIX, advice
from trainyard_dev import recorded, tools
from trainyard_dev.apiserver import Answer, ApiServer, running
from trainyard_dev.apiserver.install import await_force, complete_namespace, install
from trainyard_dev.attacks.attempts import Attempt, ask
from trainyard_dev.attacks.guards import LIMITS, NOT_BEGUN, POD_SECURITY, QUOTA, RBAC, Verdict, verdict
from trainyard_dev.attacks.results import Outcome, Report
from trainyard_dev.chart import options, package
from trainyard_dev.policy.cases import bases, changed

PROFILE, TEAM, NODE = "kind", "vision", "gpu-1"
VALUES = tuple(ROOT / "tests" / "policies" / name for name in ("teams.yaml", "options.yaml"))
BESIDE = ROOT / "tests" / "policies" / "extra.yaml"
OTHERS = (RBAC, POD_SECURITY, QUOTA, LIMITS)  # guards that are no policies
# Kubernetes before 1.35 drops image volumes from requests unless this feature is enabled.
FEATURES = ("ImageVolume",)


def attack(wanted: list[Attempt], say: Callable[[str], None]) -> Report:
    """Installs this tree with all options, then runs the attempts against it.

    Raises:
        TrainyardError: the chart can't be rendered, or the API server doesn't start.
    """
    os.environ["KUBECONFIG"] = "/dev/null"  # helm must not find the user's own cluster
    began = time.monotonic()
    objects = package.render(PROFILE, sets=options.switched(*options.OPTIONS), values=VALUES)
    policies = {obj["metadata"]["name"] for obj in objects if obj["kind"] == "ValidatingAdmissionPolicy"}
    guards = [*sorted({name.removeprefix(PREFIX) for name in policies} - advice()), *OTHERS]
    with running(audit=False, features=FEATURES) as server:
        prepare(server, objects)
        say(f"{len(wanted)} attempts")
        found = judged(server, wanted)
    outcomes = [Outcome(one.id, one.who, one.tried, one.guard, one.says, found[one.id]) for one in wanted]
    return Report(recorded.commit(ROOT, ()), tools.tested_kubernetes().number, round(time.monotonic() - began),
                  guards, outcomes)  # fmt: skip


def prepare(server: ApiServer, objects: list[dict[str, Any]]) -> None:
    """Installs the platform with two teams, the tests' own objects, and one node that is only an object."""
    install(server, [*objects, *yaml.safe_load_all(BESIDE.read_text())])
    _must(server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}))
    for namespace in ("kube-system", "trainyard-system"):
        complete_namespace(server, namespace)


def judged(server: ApiServer, wanted: list[Attempt]) -> dict[str, Verdict]:
    """The verdict of each attempt, by id; last those of a team that has used up its quotas."""
    found = {one.id: _put(server, one) for one in wanted if not one.full}
    with full(server):
        return found | {one.id: _put(server, one) for one in wanted if one.full}


def _put(server: ApiServer, attempt: Attempt) -> Verdict:
    try:
        return verdict(ask(server, attempt))
    except TrainyardError as error:
        return Verdict(NOT_BEGUN, words=error.what)


@contextmanager
def full(server: ApiServer, namespace: str = TEAM) -> Iterator[None]:
    """Makes the team's quotas used up while the body runs; unused afterwards."""
    _use(server, namespace, lambda hard: hard)
    await_force("the full quota", lambda: not _pod(server, namespace).ok)
    try:
        yield
    finally:
        _use(server, namespace, lambda hard: dict.fromkeys(hard, "0"))
        await_force("the empty quota", lambda: _pod(server, namespace).ok)


def _use(server: ApiServer, namespace: str, used: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """Writes quotas' usage as their controller would; pods last, since their figure shows that all are in effect."""
    named = {"apiVersion": "v1", "kind": "ResourceQuota"}
    answer = server.call("GET", server.path(named | {"metadata": {"namespace": namespace}}))
    _must(answer)
    for quota in sorted(answer.body["items"], key=lambda quota: "pods" in quota["spec"]["hard"]):
        hard = quota["spec"]["hard"]
        _must(server.replace(named | quota | {"status": {"hard": hard, "used": used(hard)}}, sub="status"))


def _pod(server: ApiServer, namespace: str) -> Answer:
    return server.create(changed(bases()["cpu-pod"], {"/metadata/namespace": namespace}), dry_run=True)


def _must(answer: Answer) -> None:
    if not answer.ok:
        raise TrainyardError(f"the API server could not be prepared: {answer.message}", hint="run the command again")
