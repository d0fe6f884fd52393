"""The hub, attacked by a name, by other sites' pages, by what a person may send it, and by who was blocked."""

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import pytest
from browsing import Page, ask
from conftest import Site
from test_hub import ADA, BOB, SUE, pod, until

MALLORY = f"{ADA}/lab"  # a part of an address may have a slash


@pytest.fixture(scope="module")
def ada(site: Site) -> Page:
    """Her notebook of team vision, running."""
    return site.person(ADA).start(team="vision", profile="small")


def opened(url: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    """(status, where it leads, text) of a request that follows nothing."""

    class Stays(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), Stays())
    data = b"{}" if method == "POST" else None
    try:
        with opener.open(urllib.request.Request(url, data, headers, method=method), timeout=30) as answer:
            return answer.status, answer.headers.get("Location", ""), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("Location", ""), error.read().decode()


def test_a_name_that_is_a_page_of_somebody_s_notebook_gets_none(site: Site, ada: Page) -> None:
    """The proxy would lead a part of her pages there, with her cookies."""
    site.issuer.people[MALLORY] = ["vision-members"]
    try:
        page = site.person(MALLORY).get("/hub/home")
        assert page.status == 403
        assert site.person(ADA).get(f"{site.person(ADA).path}lab").data["owner"] == ADA
    finally:
        del site.issuer.people[MALLORY]


def test_its_figures_are_for_nobody_who_is_not_let_in(site: Site) -> None:
    for url in (f"{site.url}/hub/metrics", f"{site.api.removesuffix('/api')}/metrics"):
        assert opened(url)[0] == 403
    assert "jupyterhub_" not in site.person(SUE).get("/hub/metrics").text


def test_another_site_s_page_does_nothing_in_a_person_s_name(site: Site, ada: Page) -> None:
    """Cookies go along, and the word against forgery does not."""
    cookies = "; ".join(f"{one.name}={one.value}" for one in site.person(ADA).cookies if one.name != "_xsrf")
    evil = {"Cookie": cookies, "Origin": "https://evil.example.org", "Referer": "https://evil.example.org/"}
    for method, path in (
        ("DELETE", f"/hub/api/users/{ADA}/server"), ("POST", f"/hub/api/users/{ADA}/tokens"), ("POST", "/hub/spawn"),
    ):  # fmt: skip
        assert opened(f"{site.url}{path}", method, **evil)[0] == 403, path
    assert pod(site)
    simple = {**evil, "Content-Type": "text/plain", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert opened(f"{site.url}/hub/api/users/{ADA}", **simple)[0] == 403


@pytest.mark.parametrize(
    "where", ["https://evil.example.org/", "//evil.example.org/", "/\\evil.example.org", "/%2fevil.example.org"]
)
def test_log_in_leads_nowhere_else(site: Site, ada: Page, where: str) -> None:
    page = site.person(ADA).get(f"/hub/login?{urllib.parse.urlencode({'next': where})}")
    assert urllib.parse.urlsplit(page.url).netloc == urllib.parse.urlsplit(site.url).netloc


def test_what_a_person_sends_decides_team_and_size_alone(site: Site, ada: Page) -> None:
    person = site.person(ADA)
    token = person.token()
    assert until(lambda: ask(f"{site.api}/users/{ADA}/server", token, "DELETE")[0] in (204, 404) and not pod(site))
    sent = {"team": "vision", "profile": "small", "image": "evil", "namespace": "speech", "pod_name": "x",
            "environment": {"A": "b"}, "service_account": "pipeline",
            "extra_pod_config": {"hostNetwork": True}}  # fmt: skip
    assert ask(f"{site.api}/users/{ADA}/server", token, "POST", sent)[0] in (201, 202)
    assert until(lambda: pod(site))
    found = pod(site)
    assert found and found["spec"]["serviceAccountName"] == "training" and not found["spec"].get("hostNetwork")
    (container,) = found["spec"]["containers"]
    assert container["image"] == "site.invalid/trainyard/notebook:0.4.0"
    assert "A" not in {one["name"] for one in container["env"]}
    assert until(lambda: person.get(person.path).status == 200)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", f"/users/{ADA}/servers/second", {}),
        ("POST", f"/users/{BOB}/server", {}),
        ("PATCH", f"/users/{ADA}", {"admin": True}),
        ("PATCH", f"/users/{ADA}", {"auth_state": {"groups": ["speech-members"]}}),
        ("POST", f"/users/{ADA}/tokens", {"roles": ["admin"]}),
        ("POST", f"/users/{ADA}/tokens", {"scopes": ["admin:auth_state"]}),
        ("POST", f"/shares/{ADA}/", {"user": SUE}),
        ("GET", "/users", None),
        ("GET", "/services", None),
        ("POST", "/groups/vision", {}),
        ("GET", "/proxy", None),
        ("POST", "/shutdown", {}),
    ],
)
def test_a_person_s_own_token_is_for_their_own_notebook(
    site: Site, ada: Page, method: str, path: str, body: Any
) -> None:
    status, told = ask(f"{site.api}{path}", site.person(ADA).token(), method, body)
    assert status in (400, 403, 404, 405), (status, json.dumps(told)[:300])


@pytest.mark.long
def test_who_is_blocked_loses_the_notebook_and_comes_in_no_more(site: Site, ada: Page) -> None:
    """The API server takes their token no more, but the issuer may go on to renew it."""
    try:
        site.start(blocked=[ADA.upper()])
        assert until(lambda: pod(site) is None), "it still runs"
        page = site.person(ADA).get("/hub/home")
        assert page.status == 403 or "/hub/login" in page.url
        assert site.person(BOB).get("/hub/home").status == 200
    finally:
        site.start()
    assert site.person(ADA).start(team="vision", profile="small").data["came"] == ADA


@pytest.mark.long
def test_an_issuer_that_is_flooded_ends_nobody_s_notebook(site: Site, ada: Page) -> None:
    """It says nothing of who has left; once it answers again, who has left is out."""
    issuer, groups = site.issuer, site.issuer.people[ADA]
    try:
        issuer.lifetime = 10.0
        site.start(renew_before=100000)
        assert site.person(ADA).get("/hub/home").status == 200  # renewed, for ten seconds
        issuer.silent = True
        assert not until(lambda: pod(site) is None, 20), "it has ended"
        del issuer.people[ADA]
        issuer.silent = False
        assert until(lambda: pod(site) is None), "it still runs"
    finally:
        issuer.people[ADA], issuer.silent, issuer.lifetime = groups, False, 600.0
        site.start()
