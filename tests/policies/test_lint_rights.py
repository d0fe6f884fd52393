"""What lint takes for the rights of members and of pipelines' steps is what the chart's roles give them."""

import itertools

import pytest
from rights import may

from trainyard.policy.lint import rights
from trainyard_dev.apiserver import ApiServer, Identity

MEMBER, STEPS = Identity("ada", ("vision-members",)), Identity.account("vision", "pipeline")
IGNORED = ("authorization.k8s.io", "authentication.k8s.io", "metrics.k8s.io")  # questions, not objects
MADE_BY_ARGO = {("argoproj.io", "workflowtaskresults")}  # a step writes its own results


@pytest.fixture(scope="module")
def resources(server: ApiServer) -> set[tuple[str, str]]:
    """Every (group, plural) of namespaces that the server has and that can be created."""
    roots = ["/api/v1"]
    for group in server.call("GET", "/apis").body["groups"]:
        if group["name"] not in IGNORED:
            roots += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
    found = set()
    for root in roots:
        group = root.split("/")[2] if root.startswith("/apis") else ""
        for one in server.call("GET", root).body["resources"]:
            if one["namespaced"] and "/" not in one["name"] and "create" in one["verbs"]:
                found.add((group, one["name"]))
    return found


@pytest.mark.parametrize(
    ("who", "account", "beside"),
    [(MEMBER, rights.member(serving=True), set()), (STEPS, rights.pipeline(), MADE_BY_ARGO)],
    ids=["member", "pipeline"],
)
def test_rights(
    server: ApiServer,
    resources: set[tuple[str, str]],
    who: Identity,
    account: rights.Account,
    beside: set[tuple[str, str]],
) -> None:
    allowed = {
        (group, plural)
        for group, plural in resources
        if may(server, who, "create", f"{plural}.{group}".rstrip("."), "vision")
    }
    assert allowed - beside == account.creates


def test_plurals_are_those_of_the_server(server: ApiServer, resources: set[tuple[str, str]]) -> None:
    """Of every kind that messages may speak of: a wrong plural would be a wrong right."""
    named = {}
    for group in {group for group, _ in resources}:
        root = f"/apis/{group}" if group else "/api"
        versions = server.call("GET", root).body
        paths = ["/api/v1"] if not group else [f"/apis/{one['groupVersion']}" for one in versions["versions"]]
        listed = itertools.chain.from_iterable(server.call("GET", path).body["resources"] for path in paths)
        named |= {(group, one["kind"]): one["name"] for one in listed if "/" not in one["name"]}
    wrong = {key: rights.plural(*key) for key, plural in named.items() if rights.plural(*key) != plural}
    assert {key for key in wrong if key[1] != "Endpoints"} == set()
