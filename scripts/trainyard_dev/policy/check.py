"""Tests a user's manifests, and their pods, against a real API server with the rendered platform."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from trainyard.contract import Contract, Team, of_objects
from trainyard.errors import TrainyardError, UsageError
from trainyard.policy.rules import PREFIX, rules
from trainyard_dev.apiserver import Answer, ApiServer, Identity, running
from trainyard_dev.apiserver.install import install
from trainyard_dev.policy.child_objects import Object, child_objects

BINDING = "ValidatingAdmissionPolicyBinding"
SAYS = re.compile(
    rf"Validation failed for ValidatingAdmissionPolicy '{PREFIX}([a-z-]+)' with binding '\S+': (.*)", re.S
)
FORBIDDEN = re.compile(r'^\S+ "[^"]*" is forbidden: ')
POD_SECURITY = "violate"


@dataclass(frozen=True)
class Finding:
    """One violation of a rule, or of another part of admission (rights, Pod Security, quota, schema)."""

    by: str
    refuses: bool
    message: str


@dataclass(frozen=True)
class Verdict:
    """The outcome for one object; `source` is the user's object that it comes from, or itself."""

    kind: str
    name: str
    source: str
    identity: str
    findings: tuple[Finding, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether the cluster would refuse it."""
        return any(finding.refuses for finding in self.findings)


@dataclass
class Site:
    """A platform on a server that only warns, so that every violation of an object is reported, not just the first."""

    server: ApiServer
    team: str
    member: Identity
    known: Contract
    modes: dict[str, str] = field(default_factory=dict)

    def check(self, objects: list[Object]) -> list[Verdict]:
        """Returns one verdict for each object and each of its child objects."""
        found = []
        for obj in objects:
            meta = obj.setdefault("metadata", {})
            meta.setdefault("namespace", self.team)
            source = f"{obj.get('kind')}/{meta.get('name') or meta.get('generateName')}"
            verdict = self._ask(obj, self.member, source)
            found.append(verdict)
            for made, maker in self._children(obj, verdict):
                self._account(made)
                found.append(self._ask(made, maker, source))
        return found

    def _children(self, obj: Object, verdict: Verdict) -> list[tuple[Object, Identity]]:
        """The child objects that controllers would make; none if the server has already refused the object's shape."""
        try:
            return list(child_objects(obj, self.known))
        except (AttributeError, KeyError, TypeError, ValueError):
            if verdict.refused:
                return []
            what, hint = "controllers cannot parse its spec", "see manifests/jobs for examples"
            raise UsageError(what, where=verdict.source, hint=hint) from None

    def _ask(self, obj: Object, who: Identity, source: str) -> Verdict:
        try:
            answer = self.server.create(obj, identity=who, dry_run=True)
            findings = self._findings(answer)
        except TrainyardError as error:
            findings = (Finding("API", True, error.what),)
        meta = obj["metadata"]
        name = str(meta.get("name") or meta.get("generateName") or "(no name)")
        return Verdict(str(obj.get("kind")), name, source, who.user, findings)

    def _findings(self, answer: Answer) -> tuple[Finding, ...]:
        found = [] if answer.ok else [Finding(_guard(answer.message), True, FORBIDDEN.sub("", answer.message))]
        for warning in answer.warnings:
            if match := SAYS.fullmatch(warning):
                found.append(Finding(match[1], self.modes.get(match[1]) == "enforce", match[2]))
            else:
                found.append(Finding(_guard(warning), False, warning))
        return tuple(found)

    def _account(self, pod: Object) -> None:
        """Creates the launcher's own account, which the operator makes before its pod."""
        name = pod.get("spec", {}).get("serviceAccountName", "")
        if pod["kind"] == "Pod" and name.endswith("-launcher"):
            account = {"apiVersion": "v1", "kind": "ServiceAccount"}
            self.server.apply(account | {"metadata": {"name": name, "namespace": pod["metadata"]["namespace"]}})


@contextmanager
def site(objects: list[Object], team: str = "", user: str = "") -> Iterator[Site]:
    """Starts a server with the rendered platform on it.

    Args:
        objects: the rendered chart.
        team: the member's team; may be left out where there is only one.
        user: the user name of the member.

    Raises:
        UsageError: there is no such team, or several and none was named.
    """
    known = of_objects(objects)
    chosen = _team(known, team)
    name = user or next(iter(chosen.users), "member")
    groups = () if name.startswith("system:serviceaccount:") else chosen.groups
    names, modes = {rule.name for rule in rules()}, {}
    for obj in objects:
        rule = obj["metadata"]["name"].removeprefix(PREFIX)
        if obj["kind"] == BINDING and rule in names:
            actions = obj["spec"]["validationActions"]
            modes[rule] = {"Deny": "enforce", "Warn": "warn", "Audit": "audit"}[actions[0]]
            obj["spec"]["validationActions"] = actions if modes[rule] == "audit" else ["Warn"]
    with running() as server:
        install(server, objects)
        yield Site(server, chosen.name, Identity(name, groups), known, modes)


def _team(known: Contract, name: str) -> Team:
    teams = known.teams
    if not teams:
        raise UsageError("the values have no team", hint="add one to global.contract.teams")
    if not name and len(teams) == 1:
        return next(iter(teams.values()))
    if name not in teams:
        what = f"no team {name}" if name else "the values have several teams"
        raise UsageError(what, hint=f"select a team with --team: {', '.join(teams)}")
    return teams[name]


def _guard(message: str) -> str:
    """Names the guard that sent a message, by its wording."""
    signs = {
        "rights": "cannot create",
        "Pod Security": POD_SECURITY,
        "quota": "exceeded quota",
        "limits": "usage per",
        "schema": "is invalid",
    }
    return next((name for name, sign in signs.items() if sign in message), "API")
