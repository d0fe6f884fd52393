"""Checks of Argo workflows: their templates, and the pods that Argo's controller would create."""

from collections.abc import Sequence
from typing import Any

from trainyard.contract import Contract, Team
from trainyard.policy import cel
from trainyard.policy.lint import admission, arrival, network, pod_rules, resources, security, templates, workflow_pods
from trainyard.policy.lint.finding import Severity
from trainyard.policy.lint.pods import Pod
from trainyard.policy.lint.report import Lines, Path, Report, near
from trainyard.policy.offline import Request, Requester, Violation

Object = dict[str, Any]
# Prefix of a team's workflow controller, if an older contract doesn't specify it; the rules check this name.
CONTROLLER = "system:serviceaccount:trainyard-system:trainyard-workflow-controller-"


def check(
    obj: Object,
    lines: Lines,
    report: Report,
    task: str,
    team: Team,
    judge: resources.Judge,
    broken: Sequence[Path] = (),
) -> None:
    """Reports all findings about a Workflow, WorkflowTemplate or CronWorkflow, whose parts know their places.

    Args:
        judge: judges the manifests inside, see `resources.check`.
        broken: fields with a wrong shape; nothing else is reported about them.
    """
    spec = obj["spec"]["workflowSpec"] if obj.get("kind") == "CronWorkflow" else obj["spec"]
    named = {one["name"]: one for one in spec.get("templates") or []}
    contract = report.site.contract
    for path, what, hint in templates.fitting(spec, named, library=obj.get("kind") == "WorkflowTemplate"):
        report.add("TY214", lines(path), what, hint, task=task, at=path)
    for code, path, what, hint in templates.strange(spec, named, contract):
        severity = report.reaching(team) if code in network.CODES else None
        report.add(code, lines(path), what, hint, task=task, at=path, severity=severity)
    # The permissions of a step's account are checked where the workflow names the account.
    own = spec.get("serviceAccountName") == contract.parameters["pipelineServiceAccount"]
    for name, template in named.items():
        label = f"{task} {name}"
        for made in workflow_pods.of_template(spec, template, team, contract):
            _of_pod(made, lines, report, label, team, broken, own)
        if template.get("resource"):
            resources.check(template, lines, report, label, judge)
    for claim in spec.get("volumeClaimTemplates") or []:
        _claim(claim, lines, report, task, team, contract)


def _of_pod(
    made: Object, lines: Lines, report: Report, task: str, team: Team, broken: Sequence[Path], own: bool
) -> None:
    contract = report.site.contract
    requester = Requester(contract.parameters.get("teamWorkflowController", CONTROLLER) + team.name)
    pod = Pod(made["spec"], (), made["metadata"])
    found: list[tuple[Violation, Severity | None]] = [
        (one, None) for one in admission.violations(Request(made, requester, team), contract, [pod], advice=False)
    ]
    # Advice exempts pods of controllers, since their jobs were judged; a workflow was not, and advice rejects nothing.
    written = Request(made, admission.member(team), team)
    found += [(one, Severity.WARNING) for one in admission.violations(written, contract, [pod], advice=True)]
    said = []
    for one, level in found:
        said.append(one.path)
        if one.rule == "api-token" and not own:
            continue
        if not one.message.startswith("the rule can't be evaluated") and not near(one.path or (), broken):
            report.rule(one.rule, lines(one.path or ()), one.message, task=task, at=one.path or (), severity=level)
    of_pod(pod, lines, report, task, team, broken, said)


def of_pod(
    pod: Pod, lines: Lines, report: Report, task: str, team: Team, broken: Sequence[Path], said: Sequence[Path | None]
) -> None:
    """Reports findings of lint's own rules about a pod, except for fields in `said`."""
    for rule in (*pod_rules.RULES, *network.RULES, *security.RULES):
        for code, path, what, hint in rule(pod, report.site.contract, team):
            severity = report.reaching(team) if code in network.CODES else None
            if not near(path, broken) and not (code in ("TY301", "TY406") and path in said):
                report.add(code, lines(path), what, hint, task=task, at=path, severity=severity)


def _claim(claim: Object, lines: Lines, report: Report, task: str, team: Team, contract: Contract) -> None:
    who, whole = admission.member(team), {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}
    made = cel.at(arrival.arriving(whole, report, team, who.user).obj, cel.path(claim))
    for one in admission.violations(Request(made, who, team), contract, []):
        report.rule(one.rule, lines(one.path or ()), one.message, task=task, at=one.path or ())
