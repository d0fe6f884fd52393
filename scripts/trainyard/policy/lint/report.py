"""Collects the findings of one file, for the site that they are judged by."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trainyard.contract import Contract, Team
from trainyard.errors import UsageError
from trainyard.policy.lint.codes import registry, rule_codes
from trainyard.policy.lint.finding import Finding, Severity

Path = tuple[str | int, ...]
Issue = tuple[str, Path, str, str]  # code, field, reason, hint
Lines = Callable[[Path], int]
HINT = re.compile(r": |\. (?=[A-Z])")  # separators between a rule's reason and its hint
HINTS = {
    "TY101": "correct that line",
    "TY102": "compile the pipeline again with kfp",
    "TY103": "correct it, then compile again",
}
LATER = "\N{HORIZONTAL ELLIPSIS}"  # placeholder for values that Argo fills in, in a manifest inside a workflow
ANY = "team"  # placeholder for an unspecified team


@dataclass(frozen=True)
class Site:
    """The contract and, if known, the team. Site rules only warn if no contract was given."""

    contract: Contract
    chosen: str = ""

    def team(self, namespace: str = "") -> Team:
        """The chosen team, the namespace's team, or the only team; else one with the permissions of any team."""
        teams = self.contract.teams
        if self.chosen:
            return teams.get(self.chosen) or self._any(self.chosen)
        if namespace in teams:
            return teams[namespace]
        if len(teams) == 1:
            return next(iter(teams.values()))
        return self._any()

    def strange(self, namespace: str) -> tuple[str, str] | None:
        """The problem with an object's namespace, and the hint; None for a team's namespace, or without known teams."""
        known = (self.chosen,) if self.chosen else tuple(self.contract.teams)
        if not namespace or not known or namespace in known or "{{" in namespace or LATER in namespace:
            return None
        hint = f"write {' or '.join(known)}, or remove it"
        if self.chosen:
            return f"the object's namespace is {namespace}, but the team is {self.chosen}", hint
        return f"no team has the namespace {namespace}", hint

    def _any(self, name: str = "") -> Team:
        """A team that is not in the contract."""
        base = self.contract.raw.get("teamDefaults") or {}
        most = [team.max_gpus for team in self.contract.teams.values()] or [int(base.get("maxGpusPerJob") or 8)]
        leaves = tuple(name for name, queue in self.contract.queues.items() if queue.leaf)
        return Team(
            name=name or ANY,
            queues=(name, *leaves) if name else leaves,
            priority_classes=self.contract.priority_classes,
            max_gpus=max(most),
            max_claim=self.contract.parameters["maxClaim"],
            limits=base.get("limits") or {},
            fill=self.contract.fill,
            pools=self.contract.pools,
        )


def site(found: Contract, team: str = "") -> Site:
    """The site with a team chosen. Raises UsageError if the contract lacks the team; the chart's defaults may."""
    made = Site(found, team)
    if team and not found.assumed:
        if not found.teams:
            raise UsageError(f"no team {team} in {found.source}", hint="pass your site's contract with --contract")
        found.team(team)
    return made


@dataclass
class Report:
    """Findings of one file, without duplicates."""

    site: Site
    file: str
    findings: list[Finding] = field(default_factory=list)
    one_line: bool = False  # whether all findings share one line, so that only fields distinguish them
    _seen: set[tuple[str, int | str, str]] = field(default_factory=set)

    def add(
        self,
        code: str,
        line: int,
        reason: str,
        hint: str = "",
        *,
        task: str = "",
        at: Path | str = (),
        severity: Severity | None = None,
    ) -> None:
        """Adds a finding. `at` is the field, as a path or a string."""
        known = registry()[code]
        level = known.severity if severity is None else severity
        mode = self.site.contract.modes.get(known.policy) if known.policy else None
        if mode in ("warn", "audit"):
            level = min(level, Severity.WARNING)
        elif mode == "enforce" and severity is None:
            level = Severity.ERROR
        if known.site and self.site.contract.assumed:
            level = min(level, Severity.WARNING)
        if not known.policy:  # a rule's hint may end in a name that ends in a dot
            hint = hint.rstrip(".")
        found = Finding(self.file, line, code, reason.rstrip("."), hint, task, dotted(at), level, known.policy)
        key = (code, dotted(at) if self.one_line else line, found.reason)
        if key not in self._seen:  # an aliased part is once in the file, but in several roles
            self._seen.add(key)
            self.findings.append(found)

    def error(self, code: str, error: UsageError) -> None:
        """Adds an error that ended the reading; its place is in the error."""
        line = error.where.rpartition(":")[2]
        self.add(code, int(line) if line.isdigit() else 1, error.what, error.hint or HINTS[code])

    def reaching(self, team: Team) -> Severity:
        """Severity of a download at run time: an error if the team's network has no access to the outside."""
        return Severity.WARNING if (team.egress or self.site.contract.assumed) else Severity.ERROR

    def rule(
        self,
        name: str,
        line: int,
        message: str,
        *,
        task: str = "",
        at: Path | str = (),
        severity: Severity | None = None,
    ) -> None:
        """Adds a violation of an admission rule, whose message is `what: hint`."""
        if self.site.contract.assumed and message.startswith("queue ") and not message.startswith("queue default "):
            return  # the queues are unknown: each team has one with its own name, and none has Volcano's default
        *_, last = HINT.finditer(message) if HINT.search(message) else [None]
        what, hint = (message[: last.start()], message[last.end() :]) if last else (message, "")
        self.add(rule_codes()[name], line, what, hint, task=task, at=at, severity=severity)

    def sorted(self, ignore: frozenset[str] = frozenset()) -> list[Finding]:
        """The findings by line, except those with codes to ignore."""
        return sorted(one for one in self.findings if one.code not in ignore)


def dotted(path: Path | str) -> str:
    """`spec.containers[0].image`."""
    if isinstance(path, str):
        return path
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"[{part}]" if "." in part or "/" in part else f".{part}"
    return text.removeprefix(".")


def near(path: Path, broken: Sequence[Path]) -> bool:
    """Whether the field, or one that contains it, has the wrong shape."""
    return any(path[: len(one)] == one for one in broken if one)
