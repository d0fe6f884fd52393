"""Every attempt: the refused cases beside the rules, and those of assets/requests.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.policy import rules
from trainyard_dev.apiserver import Answer, ApiServer
from trainyard_dev.apiserver.client import PATCH
from trainyard_dev.policy import cases
from trainyard_dev.policy.cases import WHO, Case

ASSETS = Path(__file__).with_name("assets")
PEOPLE = {
    "admin": "an administrator",
    "member": "a member of team vision",
    "speech-member": "a member of team speech",
    "viewer": "a viewer of team vision",
    "editor": "somebody who may write every kind, but neither manage teams nor use queues",
    "training": "a training container",
    "pipeline": "a step of a pipeline",
    "training-operator": "training-operator",
    "volcano": "Volcano's controllers",
    "scheduler": "Volcano's scheduler",
    "argo": "team vision's controller of Argo",
    "speech-argo": "team speech's controller of Argo",
    "janitor": "the janitor",
    "provisioner": "the NFS provisioner",
    "prometheus": "Prometheus",
    "kube-state-metrics": "kube-state-metrics",
    "exporter": "the exporter of jobs' series",
    "usage": "the pod that notes what jobs used",
    "logs": "a collector of logs",
    "notebook-hub": "the hub of notebooks",
    "named-by-mail": "a member whose name is a mail address",
    "setup": "the setup job",
    "node-prep": "node preparation",
    "job-controller": "Kubernetes, for a Job",
    "statefulset-controller": "Kubernetes, for a StatefulSet",
    "ephemeral": "Kubernetes, for a pod's ephemeral volume",
    "binder": "Kubernetes, which binds volumes",
}
# Requests that open a connection: nothing there can be asked as a dry run, and the pods that they name are none.
CONNECTIONS = ("/exec", "/portforward", "/proxy")
KEYS = {"id", "as", "tried", "guard", "says", "of", "in", "change", "begin", "by", "update",
        "delete", "sub", "request", "body", "full"}  # fmt: skip


@dataclass(frozen=True)
class Request:
    """A request that makes no object of a base; writes are dry runs."""

    method: str
    path: str
    who: str
    body: Any = None


@dataclass(frozen=True)
class Attempt:
    """One attempt.

    Args:
        guard: who has to refuse, as guards.refused_by names it; "" for whoever does.
        says: words of the refusal.
        full: the team has as many objects as its quotas let it have.
    """

    id: str
    who: str
    tried: str
    guard: str
    says: str
    what: Case | Request
    full: bool = False

    @property
    def kind(self) -> str:
        """The kind that is made or changed; "" for a request without a base."""
        return str(cases.bases()[self.what.base]["kind"]) if isinstance(self.what, Case) else ""


def ask(server: ApiServer, attempt: Attempt) -> Answer:
    """Puts it to the server. Raises TrainyardError when what it begins from can't be stored."""
    if isinstance(attempt.what, Case):
        return cases.ask(server, attempt.what)
    one = attempt.what
    asked = one.method != "GET" and not any(mark in one.path for mark in CONNECTIONS)
    return server.call(
        one.method, one.path, one.body, identity=WHO[one.who],
        content=PATCH if one.method == "PATCH" else "application/json", query={"dryRun": "All"} if asked else None,
    )  # fmt: skip


def attempts() -> list[Attempt]:
    """All of them. Raises TrainyardError when the assets name a person that isn't there."""
    found = [*_of_rules(), *_of_requests()]
    _once([one.id for one in found], "attempts")
    return found


def _of_rules() -> Iterator[Attempt]:
    advice = rules.advice()
    for rule in (one for one in cases.rules() if one not in advice):
        for case, name in chosen(cases.cases(rule)):
            tried = f"{name}, in a pod template" if case.of == "templates" else name
            yield Attempt(f"{rule}.{_slug(name)}", PEOPLE[case.who], tried, rule, case.says, case)


def chosen(listed: list[Case]) -> Iterator[tuple[Case, str]]:
    """The refused cases with the names that the file gives them: of those that stand for many kinds, one."""
    seen = set()
    for case in sorted(listed, key=lambda case: case.of == "templates" and case.base != "vcjob"):
        if case.allowed or (case.of != "templates" and case.base != case.of):
            continue
        name = case.name.removesuffix(f", in a {case.base}")
        if name not in seen:
            seen.add(name)
            yield case, name


def _of_requests() -> Iterator[Attempt]:
    file = ASSETS / "requests.yaml"
    for raw in yaml.safe_load(file.read_text()):
        who = raw.get("as", "")
        if not set(raw) <= KEYS or ("of" in raw) == ("request" in raw) or who not in WHO:
            name = raw.get("id", raw)
            raise TrainyardError(f"{name} is no attempt", where=str(file), hint="write it as the file's head says")
        yield Attempt(raw["id"], PEOPLE[who], raw["tried"], raw.get("guard", ""), raw.get("says", ""), _what(raw),
                      raw.get("full", False))  # fmt: skip


def _what(raw: dict[str, Any]) -> Case | Request:
    if "request" in raw:
        method, path = raw["request"]
        return Request(method, path, raw["as"], raw.get("body"))
    return Case(
        rule="", name=raw["tried"], allowed=False, base=raw["of"], namespace=raw.get("in", "vision"), who=raw["as"],
        change=raw.get("change", {}), update=raw.get("update"), sub=raw.get("sub", ""), says=raw.get("says", ""),
        begin=raw.get("begin", {}), by=raw.get("by", "admin"), delete=raw.get("delete"), of=raw["of"],
    )  # fmt: skip


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _once(names: list[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TrainyardError(f"two {what} are called {twice[0]}", where=str(ASSETS), hint="give one another name")
