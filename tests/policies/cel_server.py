"""Puts expressions to the API server and shows values as it would: `int 3`, `string a`, `list [1, 2]`, or `error`.

Each expression is a variable of a policy that writes its value into the audit log, and nothing where it fails: of
refusals and warnings a server tells only the first ones.
"""

import json
import math
import re
from typing import Any

from trainyard.policy import cel
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.install import policies_in_force

ERROR = "error"
ADMISSION = {"apiVersion": "admissionregistration.k8s.io/v1"}
PART = 20  # notes that a policy may write
NAME = "cel-corpus"
SHOWN = (
    "strings.quote('%s '.format([type(dyn({0}))]) + (type(dyn({0})) == double ? string(dyn({0})) : '%s'.format([{0}])))"
)
QUOTED = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
}


def answers(server: ApiServer, expressions: list[str], data: dict[str, Any]) -> dict[str, str]:
    """What the server makes of each expression, in which `o` is `data`."""
    found = dict.fromkeys(expressions, ERROR)
    made: dict[str, list[str]] = {}
    try:
        for begin in range(0, len(expressions), PART):
            name = f"{NAME}-{begin}"
            made[name] = _policy(server, name, expressions[begin : begin + PART])
        policies_in_force(server)
        revision = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": data}
        revision["metadata"] = {"name": NAME, "namespace": "default"}
        answer = server.create(revision, dry_run=True)
        assert answer.ok, answer.message
        notes = [one for one in server.audit_log() if one.get("objectRef", {}).get("name") == NAME][-1]["annotations"]
        for name, part in made.items():
            found |= {text: notes[f"{name}/e{n}"] for n, text in enumerate(part) if f"{name}/e{n}" in notes}
    finally:
        for name in made:
            for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
                server.call("DELETE", f"/apis/admissionregistration.k8s.io/v1/{kind}/{name}")
    return found


def _policy(server: ApiServer, name: str, expressions: list[str]) -> list[str]:
    """Makes the policy and its binding of all expressions that the server compiles; returns those."""
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "resources": ["controllerrevisions"],
        "operations": ["CREATE"],
    }
    looks = {"resourceRules": [rule]}
    policy = {**ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}}
    while True:
        variables = [
            {"name": f"v{n}", "expression": f"[dyn(object).data].map(o, (\n{text}\n))[0]"}
            for n, text in enumerate(expressions)
        ]
        notes = [{"key": f"e{n}", "valueExpression": SHOWN.format(f"variables.v{n}")} for n in range(len(expressions))]
        policy["spec"] = {"failurePolicy": "Ignore", "matchConstraints": looks, "variables": variables}
        policy["spec"]["auditAnnotations"] = notes
        answer = server.create(policy)
        if answer.ok:
            break
        causes = [cause["field"] for cause in answer.body["details"]["causes"]]
        wrong = {int(match[1]) for cause in causes if (match := re.match(r"spec\.variables\[(\d+)\]", cause))}
        assert wrong, answer.message
        expressions = [text for n, text in enumerate(expressions) if n not in wrong]
        if not expressions:
            return []
    binding = {**ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}}
    assert server.create(binding | {"spec": {"policyName": name, "validationActions": ["Deny"]}}).ok
    return expressions


def evaluated(expression: str, data: dict[str, Any]) -> str:
    """What our evaluator makes of it, shown as the server shows it."""
    try:
        value = cel.compile(expression)({"o": cel.place(data)})
    except cel.CelError:
        return ERROR
    return _quoted(
        f"{_kind(value)} {cel.compile('string(v)')({'v': value}) if isinstance(value, float) else _shown(value)}"
    )


def _kind(value: Any) -> str:
    kind: str = cel.compile("type(v)")({"v": value}).name
    return kind


def _shown(value: Any, inside: bool = False) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else _quoted(f"{value}".replace("nan", "NaN"))
    if isinstance(value, str):
        return _quoted(value) if inside else value
    if isinstance(value, bytes):
        return f'b"{value.decode()}"' if inside else value.decode()
    if isinstance(value, list):
        return f"[{', '.join(_shown(one, True) for one in value)}]"
    if isinstance(value, dict):
        pairs = sorted((_shown(key, True), _shown(one, True)) for key, one in value.items())
        return "{" + ", ".join(f"{key}:{one}" for key, one in pairs) + "}"
    return str(getattr(value, "name", "(can't be shown)"))


def _quoted(text: str) -> str:
    return '"' + "".join(QUOTED.get(sign, sign) for sign in text) + '"'
