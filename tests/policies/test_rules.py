"""The rules as a whole: complete, consistent, each refusal its own, modes as the values say, no type warnings."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml
from conftest import HERE

from trainyard.paths import ROOT
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.install import policies_in_force
from trainyard_dev.chart import package, parts
from trainyard_dev.chart.schema import source
from trainyard_dev.policy.cases import ADMIN, FOLDER, WHO, Case, ask, bases, cases, changed, policy, rules
from trainyard_dev.policy.check import SAYS

BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
FAILURE = "validation.policy.admission.k8s.io/validation_failure"


def resource(obj: dict[str, Any]) -> str:
    """Group and plural name of the kind of a base object."""
    plural = obj["kind"].lower() + ("es" if obj["kind"].endswith("ss") else "s")
    return f"{obj['apiVersion'].partition('/')[0] if '/' in obj['apiVersion'] else ''}/{plural}"


def option_of(rule: str) -> str:
    """The component that brings what a rule is about; "" where it is always there."""
    return str(policy(rule)["metadata"]["annotations"].get("trainyard.io/option", ""))


def test_there_are_42_rules_with_numbers_of_their_own() -> None:
    numbers = sorted(policy(rule)["metadata"]["annotations"]["trainyard.io/id"] for rule in rules())
    assert numbers == [f"p{number:02}" for number in range(1, 43)]


@pytest.mark.parametrize("rule", rules())
def test_every_rule_has_cases_for_all_that_it_looks_at(rule: str) -> None:
    due = set()
    for entry in policy(rule)["spec"]["matchConstraints"]["resourceRules"]:
        due |= {f"{entry['apiGroups'][0]}/{plural}" for plural in entry["resources"] if not plural.endswith("/*")}
    found = cases(rule)
    assert any(case.allowed for case in found)
    have = {resource(bases()[case.base]) + ("/" + case.sub if case.sub else "") for case in found if not case.allowed}
    assert due <= have


@pytest.mark.parametrize("rule", rules())
def test_every_refusal_has_words_for_both_outcomes_of_its_own(rule: str) -> None:
    """A message that stands where the longer one can't be made, and one line at most."""
    found = policy(rule)
    assert found["metadata"]["name"] == f"trainyard-{rule}"
    assert found["spec"]["failurePolicy"] == "Fail"
    for validation in found["spec"]["validations"]:
        assert validation["message"] and "\n" not in validation["message"]
        assert validation["messageExpression"]


def test_a_shared_variable_means_the_same_in_every_rule() -> None:
    own = {"params", "foreign", "strays", "queue", "taken", "names", "groups", "most", "notes", "asked", "now",
           "before", "changed", "own"}  # fmt: skip
    meanings: dict[str, set[str]] = {}
    for rule in rules():
        for variable in policy(rule)["spec"].get("variables", []):
            meanings.setdefault(variable["name"], set()).add(variable["expression"])
    assert [name for name, found in meanings.items() if len(found) > 1 and name not in own] == []


def test_schema_and_values_name_every_rule() -> None:
    """Modes of a rule that an option brings are among the option's values."""
    seen: list[str] = []
    for option in sorted({option_of(rule) for rule in rules()}):
        folder = ROOT / "charts" / option if option else parts.UMBRELLA
        values = yaml.safe_load((folder / "values.yaml").read_text())
        schema = source(option)["properties"]
        modes = schema["modes"] if option else schema["policies"]["properties"]["modes"]
        own = [rule for rule in rules() if option_of(rule) == option]
        seen += own
        held = values if option else values["policies"]
        assert sorted(held["modes"]) == sorted(modes["properties"]) == sorted(modes["required"]) == own
        for rule in own:
            assert (
                modes["properties"][rule]["description"]
                == policy(rule)["metadata"]["annotations"]["trainyard.io/about"]
            )
    assert sorted(seen) == rules()


@pytest.mark.long
def test_each_refusal_is_one_rule_s_alone(server: ApiServer) -> None:
    """With every rule on warning, a case that one rule refuses draws that rule's warning and no other's."""

    def judged(case: Case) -> str:
        answer = ask(server, case)
        found = {match[1] for warning in answer.warnings if (match := SAYS.fullmatch(warning))}
        due = set() if case.allowed else {case.rule}
        return "" if found == due else f"{case}: {sorted(found) or answer.message or 'no warning'}"

    with bindings(server, lambda spec: spec | {"validationActions": ["Warn"]}):
        wrong = [words for rule in rules() for case in cases(rule) if (words := judged(case))]
    assert "\n".join(wrong) == ""


def test_modes(server: ApiServer) -> None:
    """A rule each on warn, audit and off; the others still enforce."""
    sets = ["policies.modes.node-name=warn", "policies.modes.root-secrets=audit", "policies.modes.api-token=off"]
    objects = package.render("kind", values=[HERE / "teams.yaml", HERE / "options.yaml"], sets=sets)
    wanted = {o["metadata"]["name"]: o["spec"] for o in objects if o["kind"] == "ValidatingAdmissionPolicyBinding"}
    assert "trainyard-api-token" not in wanted
    pod = bases()["cpu-pod"] | {"metadata": {"name": "case", "namespace": "vision"}}
    secret = [{"secretRef": {"name": "minio-root"}}]
    with bindings(server, lambda spec: wanted.get(spec["policyName"])):
        refused = server.create(changed(pod, {"/spec/containers/0/image": "busybox"}), dry_run=True)
        assert "trainyard-image-source" in refused.message
        warned = server.create(changed(pod, {"/spec/nodeName": "x"}), identity=WHO["member"], dry_run=True)
        assert warned.ok, warned.message
        assert any("nodeName x would put the pod past scheduler" in warning for warning in warned.warnings)
        kept = changed(pod, {"/spec/containers/0/envFrom": secret, "/metadata/name": "audited"})
        audited = server.create(kept, identity=WHO["member"])
        off = server.create(changed(pod, {"/spec/automountServiceAccountToken": True}), identity=ADMIN, dry_run=True)
        assert audited.ok and not audited.warnings, audited.message
        assert off.ok and not off.warnings, off.message
        server.call("DELETE", f"{server.path(pod)}/audited", {"kind": "DeleteOptions", "gracePeriodSeconds": 0})
    notes = [entry.get("annotations", {}).get(FAILURE, "") for entry in server.audit_log()]
    assert any("trainyard-root-secrets" in note and "Secret minio-root holds" in note for note in notes)


@pytest.mark.long
def test_no_rule_has_type_warnings(server: ApiServer) -> None:
    """Kubernetes' own controller checks the expressions against the kinds that they look at."""
    wrong = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "wrong-on-purpose"},
        "spec": {
            "matchConstraints": policy("gpu-deadline")["spec"]["matchConstraints"],
            "validations": [{"expression": "object.spec.nodeNam == ''"}],
        },
    }
    assert server.apply(wrong).ok
    names = {f"trainyard-{rule}" for rule in rules()} | {"wrong-on-purpose"}
    warnings: dict[str, Any] = {}
    end = time.monotonic() + 120
    with server.controllers(["validatingadmissionpolicy-status-controller"]):
        while set(warnings) < names and time.monotonic() < end:
            time.sleep(0.3)
            for item in server.call("GET", POLICIES).body["items"]:
                if item["metadata"]["name"] in names and "typeChecking" in item.get("status", {}):
                    warnings[item["metadata"]["name"]] = item["status"]["typeChecking"].get("expressionWarnings")
    server.call("DELETE", f"{POLICIES}/wrong-on-purpose")
    assert set(warnings) == names
    assert "nodeNam" in warnings.pop("wrong-on-purpose")[0]["warning"]
    assert {name: found for name, found in warnings.items() if found} == {}


@contextmanager
def bindings(server: ApiServer, change: Any) -> Iterator[None]:
    """Changes the specs of our bindings (None: removes the binding) for the time of the body."""
    before = [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
         "metadata": {"name": item["metadata"]["name"]}, "spec": item["spec"]}
        for item in server.call("GET", BINDINGS).body["items"]
        if item["metadata"]["name"].removeprefix("trainyard-") in rules()
    ]  # fmt: skip
    try:
        for binding in before:
            spec = change(dict(binding["spec"]))
            name = binding["metadata"]["name"]
            done = server.apply(binding | {"spec": spec}) if spec else server.call("DELETE", f"{BINDINGS}/{name}")
            assert done.ok, done.message
        policies_in_force(server)
        yield
    finally:
        for binding in before:
            assert server.apply(binding).ok
        policies_in_force(server)


def test_files_beside_the_rules_belong_to_one() -> None:
    names = {file.name.removesuffix(".cases.yaml") for file in FOLDER.glob("*.cases.yaml")}
    assert names - {"base", "guards"} == set(rules())
