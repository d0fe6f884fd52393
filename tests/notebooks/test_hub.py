"""The hub at work, and attacked: a real JupyterHub, proxy and API server, with tokens of a real protocol."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from browsing import Page, ask
from conftest import HUB, SPACE, Site
from nodes import Node

from trainyard_dev.apiserver import Identity

ADA, BOB, SUE, VIC, EVE = (f"{name}@example.org" for name in ("ada", "bob", "sue", "vic", "eve"))
POD = "trainyard-notebook-{}-40example-2eorg"
ADAS, BOBS = POD.format("ada"), POD.format("bob")
MEMBER = Identity(BOB, ("vision-members",))


@pytest.fixture(scope="module")
def ada(site: Site) -> Page:
    """Her notebook of team vision, running."""
    return site.person(ADA).start(team="vision", profile="small")


@pytest.fixture(scope="module")
def bob(site: Site) -> Page:
    """His notebook of team speech, running."""
    return site.person(BOB).start(team="speech", profile="small")


def pod(site: Site, name: str = ADAS, namespace: str = "vision") -> dict[str, Any] | None:
    """A pod as the API server has it."""
    return site.server.find({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace}}, name)


def until(so: Callable[[], Any], seconds: float = 60.0) -> bool:
    """Whether it is so before the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if so():
            return True
        time.sleep(0.3)
    return False


# at work


def test_a_member_logs_in_and_gets_a_notebook_in_the_team_s_namespace(site: Site, ada: Page) -> None:
    assert ada.status == 200, ada.text
    assert ada.data == {"came": ADA, "owner": ADA}
    found = pod(site)
    assert found and found["spec"]["schedulerName"] == "default-scheduler"
    assert found["spec"]["automountServiceAccountToken"] is False
    assert found["metadata"]["labels"]["trainyard.io/notebook"] == "true"
    claims = {
        one["persistentVolumeClaim"]["claimName"] for one in found["spec"]["volumes"] if "persistentVolumeClaim" in one
    }
    assert claims == {ADAS, "workspace", "shared"}
    home = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "vision"}}
    made = site.server.find(home, ADAS)
    assert made and made["spec"]["storageClassName"] == "trainyard-shared"


def test_the_person_s_own_token_made_it_not_the_hub_s(site: Site, ada: Page) -> None:
    made = [
        (entry["objectRef"]["resource"], entry["user"]["username"])
        for entry in site.server.audit_log()
        if entry["verb"] == "create" and entry["objectRef"].get("namespace") == "vision"
        and entry.get("responseStatus", {}).get("code") == 201
        and entry["user"]["username"] in (ADA, f"system:serviceaccount:{SPACE}:{HUB}")
    ]  # fmt: skip
    assert sorted(set(made)) == [
        ("persistentvolumeclaims", ADA),
        ("pods", ADA),
        ("secrets", f"system:serviceaccount:{SPACE}:{HUB}"),
    ]


def test_no_token_stands_in_the_pod_and_its_secret_goes_with_it(site: Site, node: Node, ada: Page) -> None:
    found = pod(site)
    token = node.environments[ADAS]["JUPYTERHUB_API_TOKEN"]
    assert found and token and token not in str(found)
    name = found["spec"]["containers"][0]["envFrom"][0]["secretRef"]["name"]
    secret = site.server.find({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "vision"}}, name)
    assert secret and name.startswith(f"{ADAS}.")
    assert [one["uid"] for one in secret["metadata"]["ownerReferences"]] == [found["metadata"]["uid"]]


def test_the_notebook_gets_the_person_s_token_and_no_means_to_make_others(site: Site, node: Node, ada: Page) -> None:
    env = node.environments[ADAS]
    status, told = ask(f"{env['JUPYTERHUB_API_URL']}/users/{ADA}", env["JUPYTERHUB_API_TOKEN"])
    assert status == 200
    state = told["auth_state"]
    assert set(state) == {"id_token", "expires", "groups", "sealed"}
    assert state["sealed"] and not any(one in state["sealed"] for one in site.issuer._refresh)
    # The API server takes it for her, with her rights and no more.
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": state["id_token"]}}
    user = site.server.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).body["status"]["user"]
    assert user["username"] == ADA and "vision-members" in user["groups"]


def test_a_member_of_two_teams_chooses_one(site: Site, bob: Page) -> None:
    assert bob.data == {"came": BOB, "owner": BOB}
    assert pod(site, BOBS, "speech") and not pod(site, BOBS, "vision")


def test_the_page_offers_one_s_own_teams(site: Site) -> None:
    page = site.person(SUE).get("/hub/spawn").text
    assert 'value="speech"' in page and 'value="vision"' not in page and "One GPU" in page


def test_a_notebook_with_a_gpu_waits_in_the_queue_and_has_a_deadline(site: Site) -> None:
    page = site.person(SUE).start(team="speech", profile="gpu")
    assert page.data == {"came": SUE, "owner": SUE}
    found = pod(site, POD.format("sue"), "speech")
    assert found
    spec, notes = found["spec"], found["metadata"]["annotations"]
    assert spec["schedulerName"] == "volcano" and spec["priorityClassName"] == "training-low"
    assert notes["scheduling.volcano.sh/queue-name"] == "speech" and notes["volcano.sh/preemptable"] == "true"
    assert spec["activeDeadlineSeconds"] == 14400
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


# attacked


@pytest.mark.parametrize("who", [VIC, EVE])
def test_who_is_no_member_does_not_come_in(site: Site, who: str) -> None:
    page = site.person(who).get("/hub/home")
    assert page.status == 403
    assert f"{who} is a member of no team that has notebooks" in page.text


def test_a_team_that_is_not_one_s_own_is_refused(site: Site) -> None:
    stranger = site.person(ADA)
    token = stranger.token()
    _stop(site, ADA, token)
    status, _ = ask(f"{site.api}/users/{ADA}/server", token, "POST", {"team": "speech"})
    assert status == 500 or not until(lambda: pod(site, ADAS, "speech"), 5)
    assert pod(site, ADAS, "speech") is None
    assert "ada@example.org is not a member of team speech" in site.log
    assert stranger.start(team="vision", profile="small").status == 200


def test_another_team_s_member_gets_nothing_of_a_notebook(site: Site, node: Node, ada: Page) -> None:
    for path in (site.person(ADA).path, f"{site.person(ADA).path}api/contents"):
        page = site.person(SUE).get(path)
        assert page.status == 403, page.text
        assert ADA not in (page.data if page.text.startswith("{") else {}).get("owner", "")


def test_a_token_of_one_notebook_is_none_for_another_person(site: Site, node: Node, ada: Page, bob: Page) -> None:
    token = node.environments[ADAS]["JUPYTERHUB_API_TOKEN"]
    status, told = ask(f"{site.api}/users/{BOB}", token)
    assert status == 404 and "auth_state" not in told
    assert ask(f"{site.api}/users", token)[0] == 403
    assert ask(f"{site.api}/users/{BOB}/server", token, "DELETE")[0] in (403, 404)
    assert ask(f"{site.api}/users/{ADA}/tokens", token, "POST", {})[0] == 403
    assert ask(f"{site.api}/proxy", token)[0] == 403


def test_a_colleague_does_not_come_at_the_token(site: Site, ada: Page) -> None:
    """bob is of vision, too: he may look at the pod, and run what he likes beside it."""
    server = site.server
    for how in ("exec", "portforward"):
        answer = server.call("POST", f"/api/v1/namespaces/vision/pods/{ADAS}/{how}?command=env", identity=MEMBER)
        assert answer.status == 403 and "is another person's, whose token it holds" in answer.message, how
    found = pod(site)
    assert found
    secret = found["spec"]["containers"][0]["envFrom"][0]["secretRef"]["name"]
    assert server.call("GET", f"/api/v1/namespaces/vision/secrets/{secret}", identity=MEMBER).status == 403
    for spec in (
        {"volumes": [{"name": "s", "secret": {"secretName": secret}}]},
        {"volumes": [{"name": "s", "persistentVolumeClaim": {"claimName": ADAS}}]},
    ):
        answer = server.create(_pod("peek", **spec), identity=MEMBER, dry_run=True)
        assert "belongs to the notebook of its person and to no other pod" in answer.message
    mine = Identity(ADA, ("vision-members",))
    answer = server.call("POST", f"/api/v1/namespaces/vision/pods/{ADAS}/exec?command=env", identity=mine)
    assert answer.status != 403, answer.message


def test_the_hub_as_a_deputy_makes_no_pod_and_reads_no_secret(site: Site, ada: Page) -> None:
    hub = Identity.account(SPACE, HUB)
    server = site.server
    answer = server.create(_pod("deputy"), identity=hub, dry_run=True)
    assert answer.status == 403 and 'cannot create resource "pods"' in answer.message
    for path in ("vision/secrets", "vision/secrets/trainyard-s3", f"{SPACE}/secrets", "trainyard-system/pods"):
        assert server.call("GET", f"/api/v1/namespaces/{path}", identity=hub).status == 403, path
    answer = server.call("POST", f"/api/v1/namespaces/vision/pods/{ADAS}/exec?command=env", identity=hub)
    assert answer.status == 403
    stolen = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "vision"}}
    stolen["type"] = "kubernetes.io/service-account-token"  # type: ignore[assignment]
    stolen["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "pipeline"}  # type: ignore[index]
    answer = server.create(stolen, identity=hub, dry_run=True)
    assert "the notebook hub only ends notebooks and gives them their tokens" in answer.message
    training = server.create(_pod("training-pod"), identity=Identity(ADA, ("vision-members",)))
    assert training.ok, training.message
    path = "/api/v1/namespaces/vision/pods/training-pod"
    answer = server.call("DELETE", path, identity=hub)
    assert answer.status == 403 and "it may not delete pods in vision" in answer.message
    server.call("DELETE", path, {"gracePeriodSeconds": 0})


def test_a_forged_token_is_none(site: Site) -> None:
    for changed in ({"aud": "another"}, {"exp": int(time.time()) - 60}, {"iss": "https://elsewhere"}):
        token = site.issuer.token(ADA, **changed)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        answer = site.server.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        assert not answer.body["status"].get("authenticated"), changed


# over time


def test_a_token_is_renewed_before_it_ends(site: Site, node: Node, ada: Page) -> None:
    """The hub asks the issuer when a token is about to end; the notebook gets the new one."""
    site.start(renew_before=100000)
    env = node.environments[ADAS]
    before = len(site.issuer.renewed)

    def asked(_: int) -> tuple[int, Any]:
        return ask(f"{env['JUPYTERHUB_API_URL']}/users/{ADA}", env["JUPYTERHUB_API_TOKEN"])

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(asked, range(6)))  # the issuer takes each refresh token once
    assert [status for status, _ in answers] == [200] * 6
    assert all(told["auth_state"]["expires"] > time.time() for _, told in answers)
    renewed = site.issuer.renewed[before:]
    assert ADA in renewed and "" not in renewed


def test_the_hub_restarts_and_notebooks_go_on(site: Site, ada: Page) -> None:
    found = pod(site)
    site.start()
    assert site.person(ADA).get(site.person(ADA).path).data["came"] == ADA
    again = pod(site)
    assert found and again and again["metadata"]["uid"] == found["metadata"]["uid"]


def test_who_has_left_is_refused_and_their_notebook_ends(site: Site, node: Node, ada: Page) -> None:
    token = node.environments[ADAS]["JUPYTERHUB_API_TOKEN"]
    groups = site.issuer.people.pop(ADA)
    try:
        site.start(renew_before=100000)
        assert until(lambda: ask(f"{site.api}/users/{ADA}", token)[0] == 403)
        page = site.person(ADA).get("/hub/home")
        assert page.status == 403 or "/hub/login" in page.url or "access_denied" in page.text
    finally:
        site.issuer.people[ADA] = groups


def test_who_left_the_team_loses_the_notebook(site: Site, bob: Page) -> None:
    settings = site.settings()
    teams = [one for one in settings["teams"] if one["name"] != "speech"]
    site.start(teams=teams)
    assert until(lambda: pod(site, BOBS, "speech") is None), "it still runs"
    assert f"{BOB} may have no notebook in speech any more: it ends" in site.log


@pytest.mark.long
def test_an_idle_notebook_ends(site: Site) -> None:
    site.start()
    assert site.person(ADA).start(team="vision", profile="small").status == 200
    site.start(idle=3, cull_every=2)
    assert until(lambda: pod(site) is None, 90), "it still runs"
    site.start()
    home = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "vision"}}
    assert site.server.find(home, ADAS), "its files went with it"
    assert site.person(ADA).start(team="vision", profile="small").data["came"] == ADA


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "site.invalid/trainyard/trainer-torch:0.4.0",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    inner = {"restartPolicy": "Never", "automountServiceAccountToken": False, "securityContext": security}
    meta = {"name": name, "namespace": "vision"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**inner, "containers": [container], **spec}}


def _stop(site: Site, person: str, token: str) -> None:
    ask(f"{site.api}/users/{person}/server", token, "DELETE")
    assert until(lambda: pod(site, POD.format(person.partition("@")[0])) is None)
