"""Components have the permissions that they use: none was refused, and none reads Secrets across the cluster."""

import json
import re

from trainyard_dev.e2e.context import SYSTEM, Context
from trainyard_dev.e2e.entry import ALONE, check
from trainyard_dev.e2e.recorder import Figures, require

# RBAC's refusal as clients repeat it. Refusals by a policy or a quota have other words.
REFUSED = re.compile(r"(?:User \\?\"system:serviceaccount:[^\"]+\" cannot \w+ resource|is attempting to grant RBAC)")
PROVOKED = "not-for-steps-"  # flows/elsewhere/objects.py provokes this refusal; its controller repeats the answer

# Where no account may read Secrets: cluster-wide, among the platform's keys, and in other namespaces.
PLACES = ("", SYSTEM, "kube-system", "default")
# A granted permission, so that a denial is meaningful.
KNOWN = [("trainyard-training-operator", "list", f"{SYSTEM}-webhook")]


@check("rights.no-forbidden", title="no component lacks a permission that it uses", after=("seeing.alerts",),
       locks={ALONE}, inputs=("charts",))  # fmt: skip
def logs(context: Context, figures: Figures) -> None:
    """No container of the platform logged, in this run or before a restart, that the API refused a request."""
    found, read = [], 0
    for pod in context.kubectl.get("pods", "-n", SYSTEM):
        name = pod["metadata"]["name"]
        for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
            argv = ["logs", "-n", SYSTEM, name, "-c", container["name"], "--tail=-1"]
            text = context.kubectl(*argv, check=False).stdout
            status = pod["status"].get("containerStatuses") or []
            if any(one["name"] == container["name"] and one["restartCount"] for one in status):
                text += context.kubectl(*argv, "--previous", check=False).stdout
            read += len(text.splitlines())
            found += refusals(f"{name}/{container['name']}", text)
    figures["lines_read"] = read
    require(read > 0, "no component logged a line")
    require(not found, f"{len(found)} refusals: {' | '.join(found[:3])}")


def refusals(where: str, text: str) -> list[str]:
    """Log lines about a refused permission, each with its place; those that a check provokes are left out."""
    lines = [line.strip()[:300] for line in text.splitlines() if REFUSED.search(line) and PROVOKED not in line]
    return [f"{where}: {line}" for line in lines]


@check("rights.secrets",
       title="no service account of the platform may read all Secrets of the cluster or of its namespace",
       inputs=("charts",))  # fmt: skip
def secrets(context: Context, figures: Figures) -> None:
    """No service account of the release can read arbitrary Secrets, including the platform's own."""
    accounts = [one["metadata"]["name"] for one in context.kubectl.get("serviceaccounts", "-n", SYSTEM)]
    figures["accounts"] = len(accounts)
    questions = [(a, verb, place) for a in accounts for verb in ("get", "list", "watch") for place in PLACES]
    questions += KNOWN
    answers = dict(zip(questions, _allowed(context, questions), strict=True))
    require(all(answers[one] for one in KNOWN), "the API server denies a permission that exists, so the query is wrong")
    able = [
        f"{account} may {verb} Secrets {f'of {place}' if place else 'everywhere'}"
        for (account, verb, place), allowed in answers.items()
        if allowed and (account, verb, place) not in KNOWN
    ]
    require(not able, "; ".join(able))


def _allowed(context: Context, questions: list[tuple[str, str, str]]) -> list[bool]:
    """The answers of the API server's authorizer to each question: (account, verb, namespace or "")."""
    reviews = [
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{SYSTEM}:{account}",
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}", "system:authenticated"],
                "resourceAttributes": {"verb": verb, "resource": "secrets", "namespace": place},
            },
        }
        for account, verb, place in questions
    ]
    asked = json.dumps({"apiVersion": "v1", "kind": "List", "items": reviews})
    path = "jsonpath={.status.allowed}{'\\n'}"
    answers = context.kubectl("create", "-o", path, "-f", "-", input=asked).stdout.split()
    return [answer == "true" for answer in answers]
