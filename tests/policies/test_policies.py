"""Every case beside the rules, put to a real API server: let through, or refused by its own rule and no other."""

import pytest

from trainyard_dev.apiserver import ApiServer
from trainyard_dev.policy.cases import Case, ask, cases, rules

CASES = [case for rule in rules() for case in cases(rule)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(server: ApiServer, case: Case) -> None:
    answer = ask(server, case)
    if case.allowed:
        assert answer.ok, answer.message
        return
    assert answer.status in (403, 422), "it was let through"
    assert f"ValidatingAdmissionPolicy 'trainyard-{case.rule}' with binding 'trainyard-{case.rule}'" in answer.message
    assert case.says in answer.message
