"""`trainyard login` at a real Dex, and what a real API server makes of its tokens: who is who, and who is refused.

It runs where Dex is built: `bin/trainyard tools path dex`.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from dex_issuer import Person
from login_world import (
    ADA,
    BOB,
    RELOADED_S,
    REUSED_S,
    SYSTEM,
    World,
    authentication,
    forger,
    kept,
    made,
    rendered,
    stale,
    token,
    until,
    values,
)

from trainyard.errors import TrainyardError
from trainyard.login.browser import challenge
from trainyard_dev import browser, tools
from trainyard_dev.tools import build

pytestmark = pytest.mark.skipif(
    not build.is_built(build.builder("dex")), reason="Dex isn't built: bin/trainyard tools path dex"
)
needs_browser = pytest.mark.skipif(browser.program() is None, reason="no Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with made(tmp_path_factory.mktemp("login")) as found:
        yield found


@pytest.fixture
def home(world: World, tmp_path: Path) -> Path:
    """Of somebody who has just logged in as ada."""
    world.logged_in(tmp_path)
    return tmp_path


def test_a_member_logs_in_by_a_browser_and_works_in_her_team_only(world: World, home: Path) -> None:
    who = yaml.safe_load(world.kubectl(home, "auth", "whoami", "-o", "yaml").stdout)["status"]["userInfo"]
    assert who["username"] == f"oidc:{ADA}"
    assert sorted(who["groups"]) == ["oidc:vision-members", "system:authenticated"]
    assert "Logged in" in (world.folder / "page.html").read_text()
    assert world.kubectl(home, "auth", "can-i", "create", "pytorchjobs.kubeflow.org").stdout == "yes\n"
    assert world.kubectl(home, "auth", "can-i", "get", "secrets").stdout == "no\n"
    denied = world.kubectl(home, "get", "pods", "-n", "speech")
    assert denied.returncode == 1 and f'User "oidc:{ADA}" cannot list resource "pods"' in denied.stderr
    keys = world.kubectl(home, "get", "signingkeies.dex.coreos.com", "-n", SYSTEM)
    assert keys.returncode == 1 and "cannot list resource" in keys.stderr


def test_tokens_are_in_one_file_that_its_owner_alone_reads_and_the_kubeconfig_has_none(
    world: World, home: Path
) -> None:
    file, held = kept(home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    config = (home / "kubeconfig").read_text()
    assert held["id_token"] not in config and held["refresh_token"] not in config
    assert stat.S_IMODE((home / "kubeconfig").stat().st_mode) == 0o600
    file.chmod(0o644)
    refused = world.kubectl(home, "get", "pods")
    assert refused.returncode == 1 and "others can read the tokens (mode 0644)" in refused.stderr


def test_an_ended_token_is_renewed_once_whoever_asks_at_the_same_time(world: World, home: Path) -> None:
    time.sleep(REUSED_S)
    before = stale(home)
    argv = ("login", "--credential", f"--issuer={world.issuer.url}", f"--issuer-ca={world.issuer.ca}")
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: world.trainyard(*argv, TRAINYARD_LOGIN=str(home / "login")), range(6)))
    assert [one.returncode for one in done] == [0] * 6, [one.stderr for one in done]
    # Each renewal makes another token: all six got that of the first.
    (given,) = {json.loads(one.stdout)["status"]["token"] for one in done}
    after = kept(home)[1]
    assert after["id_token"] == given and after["refresh_token"] != before["refresh_token"]
    assert world.asked(given)[1]["username"] == f"oidc:{ADA}"


def test_a_machine_without_a_browser_logs_in_by_a_code(world: World, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "trainyard", "login", *world.login_arguments(), "-o", str(tmp_path / "kubeconfig")]
    env = world.environment(TRAINYARD_LOGIN=str(tmp_path / "login"))
    env.pop("DISPLAY", None)
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr and process.stdout
        address = process.stderr.readline().removeprefix("open ").strip()
        code = process.stderr.readline().removeprefix("and confirm the code ").strip()
        page = world.person(BOB).confirm(address, code)
        assert "Login Successful" in page[1] or "successful" in page[1].lower(), page[1][-1500:]
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert f"logged in as {BOB}" in out
    assert world.kubectl(tmp_path, "auth", "can-i", "list", "pods", "-n", "speech").stdout == "yes\n"
    assert world.kubectl(tmp_path, "auth", "can-i", "list", "pods", "-n", "vision").stdout == "no\n"


def test_nobody_is_asked_where_nobody_is(world: World, home: Path) -> None:
    assert (
        world.trainyard("logout", TRAINYARD_LOGIN=str(home / "login")).stdout == f"logged out of {world.issuer.url}\n"
    )
    assert not list((home / "login").glob("*.json"))
    refused = world.kubectl(home, "get", "pods")
    assert refused.returncode == 1
    assert (
        f"{world.issuer.url}: nobody is logged in. run `trainyard login --issuer={world.issuer.url}" in refused.stderr
    )


def test_trainyard_itself_goes_the_same_way_and_says_what_is_wrong(world: World, home: Path) -> None:
    access = {"KUBECONFIG": str(home / "kubeconfig"), "TRAINYARD_LOGIN": str(home / "login")}
    listed = world.trainyard("runs", "list", **access)
    assert "log-in of the kubeconfig failed" not in listed.stderr, listed.stderr
    world.trainyard("logout", TRAINYARD_LOGIN=str(home / "login"))
    refused = world.trainyard("runs", "list", **access)
    assert refused.returncode == 1 and "the log-in of the kubeconfig failed" in refused.stderr
    assert "nobody is logged in" in refused.stderr


REFUSED = {
    "for another audience": ({"aud": "somebody-else"}, "audience"),
    "that has ended": ({"iat": -900, "exp": -60}, "token is expired"),
    "of another issuer": ({"iss": "https://elsewhere.example.org"}, "invalid bearer token"),
    "that counts for two days": ({"exp": 172800}, "the token counts longer than a day"),
    "without a name": ({"email": None}, "email"),
    "with an email that nobody has verified": ({"email_verified": False}, "email not verified"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_token_is_refused(world: World, what: str) -> None:
    changed, why = dict(REFUSED[what][0]), REFUSED[what][1]
    for key in ("iat", "exp"):
        if key in changed:
            changed[key] = int(time.time()) + int(str(changed[key]))
    assert world.asked(token(world))[0] == 201  # the same token but for what is wrong with it
    world.refused(token(world, **changed), why)


def test_a_signature_of_somebody_else_counts_for_nobody(world: World) -> None:
    head, claims, signature = token(world).split(".")
    other = "A" if signature[10] != "A" else "B"
    world.refused(f"{head}.{claims}.{signature[:10]}{other}{signature[11:]}", "failed to verify signature")
    # An issuer that calls itself ours, and its key as well; a token that says that it needs no signature.
    world.refused(forger(world, own=True).token(), "failed to verify signature")
    world.refused(forger(world).unsigned(), "unsupported")


def test_names_of_kubernetes_own_are_nobodys(world: World) -> None:
    """The prefix is before each name and group, so that `system:masters` of an issuer is a group like any other."""
    _, who = world.asked(token(world, groups=["system:masters"], email="system:admin"))
    assert who["username"] == "oidc:system:admin"
    assert sorted(who["groups"]) == ["oidc:system:masters", "system:authenticated"]


def test_a_foreign_group_gets_nothing_in_a_team(world: World) -> None:
    found = token(world, groups=["vision-members-2", "oidc:vision-members", "members"])
    done = subprocess.run(
        [tools.binary("kubectl"), "--kubeconfig", "/dev/null", "--server", world.address, "--certificate-authority",
         world.ca, "--token", found, "get", "pods", "-n", "vision"],
        env=world.environment(), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and f'User "oidc:{ADA}" cannot list resource "pods"' in done.stderr


def test_the_hubs_tokens_are_taken_as_well(world: World) -> None:
    assert world.asked(token(world, aud="trainyard-notebooks"))[1]["username"] == f"oidc:{ADA}"


class _Hub(http.server.BaseHTTPRequestHandler):
    """Answers as a hub does that holds tokens of its users and gives each notebook that of its own."""

    held: ClassVar[dict[str, tuple[str, str]]] = {}  # path -> (the notebook's key, the user's token)

    def do_GET(self) -> None:
        key, found = self.held.get(self.path, ("", ""))
        right = bool(key) and self.headers["Authorization"] == f"token {key}"
        body = json.dumps({"name": self.path, "auth_state": {"id_token": found} if right else None}).encode()
        self.send_response(200 if right else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def test_in_a_notebook_the_hub_says_who_one_is_and_another_user_s_key_gets_nothing(
    world: World, tmp_path: Path
) -> None:
    of = {email: f"/hub/api/users/{urllib.parse.quote(email)}" for email in (ADA, BOB)}
    _Hub.held = {
        of[ADA]: ("ada-key", token(world, aud="trainyard-notebooks")),
        of[BOB]: ("bob-key", token(world, aud="trainyard-notebooks", email=BOB, groups=["speech-members"])),
    }
    host, port = world.address.removeprefix("https://").split(":")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        notebook = {
            "JUPYTERHUB_API_URL": f"http://127.0.0.1:{server.server_address[1]}/hub/api", "JUPYTERHUB_USER": ADA,
            "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "TRAINYARD_CLUSTER_CA": str(world.ca),
        }  # fmt: skip
        ada = notebook | {"JUPYTERHUB_API_TOKEN": "ada-key"}
        file = tmp_path / "kubeconfig"
        done = world.trainyard("login", "--hub", "-n", "vision", "-o", str(file), **ada)
        assert done.returncode == 0 and f"logged in as {ADA}" in done.stdout, done.stderr
        assert "ada-key" not in file.read_text() and _Hub.held[of[ADA]][1] not in file.read_text()
        asked = world.kubectl(tmp_path, "auth", "can-i", "create", "pytorchjobs.kubeflow.org", **ada)
        assert asked.stdout == "yes\n", asked.stderr
        stolen = world.kubectl(tmp_path, "get", "pods", **notebook, JUPYTERHUB_API_TOKEN="bob-key")
        assert stolen.returncode == 1 and "the hub answers 403 Forbidden" in stolen.stderr
        server.shutdown()


class TestDoors:
    """What Dex refuses by the chart's configuration."""

    def test_a_code_counts_once_and_with_its_verifier_only(self, world: World) -> None:
        verifier = "v" * 64
        asked = {
            "response_type": "code", "client_id": "trainyard", "redirect_uri": "http://127.0.0.1:1/callback",
            "scope": "openid email groups", "code_challenge": challenge(verifier), "code_challenge_method": "S256",
        }  # fmt: skip
        form = {"grant_type": "authorization_code", "client_id": "trainyard", "redirect_uri": asked["redirect_uri"]}

        def code() -> str:
            end, _ = world.person().log_in(f"{world.issuer.url}/auth?{urllib.parse.urlencode(asked)}")
            return urllib.parse.parse_qs(urllib.parse.urlsplit(end).query)["code"][0]

        for wrong in ({}, {"code_verifier": "w" * 64}):
            status, said = world.issuer.ask("/token", form | {"code": code()} | wrong)
            assert status == 400 and said["error"] == "invalid_grant", said
        right = form | {"code": code(), "code_verifier": verifier}
        assert world.issuer.ask("/token", right)[0] == 200
        status, said = world.issuer.ask("/token", right)
        assert status == 400 and "id_token" not in said, said

    def test_the_way_back_is_this_machine_for_programs_and_the_hub_alone_for_the_hub(self, world: World) -> None:
        for client, address in (
            ("trainyard", "https://evil.example.org/callback"),
            ("trainyard", "http://127.0.0.1.evil.example.org/callback"),
            ("trainyard-notebooks", "http://127.0.0.1:1/callback"),
            ("trainyard-notebooks", "https://notebooks.example.org/hub/oauth_callback/../elsewhere"),
        ):
            asked = {"response_type": "code", "client_id": client, "redirect_uri": address, "scope": "openid"}
            page = world.person().get(f"{world.issuer.url}/auth?{urllib.parse.urlencode(asked)}")
            assert "Unregistered redirect_uri" in page[1], page[1][-500:]

    def test_a_program_gets_no_token_that_is_meant_for_the_hub(self, world: World) -> None:
        asked = {
            "response_type": "code", "client_id": "trainyard", "redirect_uri": "http://127.0.0.1:1/callback",
            "scope": "openid email audience:server:client_id:trainyard-notebooks",
        }  # fmt: skip
        end, page = world.person().get(f"{world.issuer.url}/auth?{urllib.parse.urlencode(asked)}")
        assert "invalid_scope" in end + page and "trainyard-notebooks" in urllib.parse.unquote(end + page), (end, page)

    def test_a_password_is_typed_at_the_issuer_and_nowhere_else(self, world: World) -> None:
        form = {"grant_type": "password", "client_id": "trainyard", "username": ADA, "scope": "openid",
                "password": world.issuer.passwords[ADA]}  # fmt: skip
        status, said = world.issuer.ask("/token", form)
        assert status == 400 and said["error"] == "unsupported_grant_type", said

    def test_a_wrong_password_logs_nobody_in(self, world: World) -> None:
        asked = {"response_type": "code", "client_id": "trainyard", "redirect_uri": "http://127.0.0.1:1/callback",
                 "scope": "openid"}  # fmt: skip
        person = Person(world.issuer, ADA, world.issuer.passwords[BOB])
        page = person.log_in(f"{world.issuer.url}/auth?{urllib.parse.urlencode(asked)}")
        assert "Invalid Email Address and password" in re.sub(r"\s+", " ", page[1])

    def test_the_hub_proves_itself(self, world: World) -> None:
        form = {"grant_type": "refresh_token", "client_id": "trainyard-notebooks", "refresh_token": "x",
                "client_secret": "guessed"}  # fmt: skip
        status, said = world.issuer.ask("/token", form)
        assert status == 401 and said["error"] == "invalid_client", said

    def test_its_pages_can_not_be_framed(self, world: World) -> None:
        with world.person()._opener.open(f"{world.issuer.url}/.well-known/openid-configuration", timeout=10) as answer:
            assert answer.headers["X-Frame-Options"] == "DENY"
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


def test_a_restart_of_the_issuer_is_noticed_by_nobody(world: World, home: Path) -> None:
    stale(home)
    world.issuer.start()
    done = world.kubectl(home, "auth", "whoami", "-o", "name")
    assert done.returncode == 0, done.stderr


@needs_browser
def test_a_person_logs_in_and_sees_it(world: World, tmp_path: Path) -> None:
    trusted = browser.key_digest((world.issuer.folder / "tls.crt").read_bytes())
    argv = [sys.executable, "-m", "trainyard", "login", *world.login_arguments(), "-n", "vision", "-o",
            str(tmp_path / "kubeconfig")]  # fmt: skip
    env = world.environment(TRAINYARD_LOGIN=str(tmp_path / "login"), BROWSER="true")
    with (
        browser.window(trusted=trusted) as page,
        subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr
        process.stderr.readline()
        page.open(process.stderr.readline().strip())
        page.wait_text("Log in to Your Account")
        page.fill("#login", ADA)
        page.fill("#password", world.issuer.passwords[BOB])
        page.click("#submit-login")
        page.wait_text("Invalid Email Address and password.")
        page.fill("#password", world.issuer.passwords[ADA])
        page.picture(pictures(tmp_path) / "login.png")
        page.click("#submit-login")
        page.wait_text("Logged in")
        assert page.url.startswith("http://127.0.0.1:") and "Close this window" in page.text
        out, err = process.communicate(timeout=60)
        assert not page.errors
    assert process.returncode == 0 and f"logged in as {ADA}" in out, err
    assert world.kubectl(tmp_path, "auth", "can-i", "create", "pods").stdout == "yes\n"


@needs_browser
def test_a_certificate_that_nobody_vouches_for_is_not_taken(world: World) -> None:
    with browser.window() as page, pytest.raises(TrainyardError, match="ERR_CERT_AUTHORITY_INVALID"):
        page.open(f"{world.issuer.url}/device")


def pictures(folder: Path) -> Path:
    """Where pictures go: $TRAINYARD_PICTURES, for people, else beside the test's files."""
    return Path(os.environ.get("TRAINYARD_PICTURES") or folder)


class TestOffboarding:
    """Last in this file: who is gone stays gone."""

    def test_who_left_the_values_gets_no_new_token_and_the_last_one_counts_until_it_ends(
        self, world: World, home: Path
    ) -> None:
        held = kept(home)[1]
        left = [one for one in world.issuer.config["staticPasswords"] if one["email"] != ADA]
        world.issuer.start(staticPasswords=left)
        assert world.asked(held["id_token"])[0] == 201
        time.sleep(REUSED_S)
        stale(home)
        refused = world.kubectl(home, "get", "pods")
        assert refused.returncode == 1 and "the issuer does not renew the log-in" in refused.stderr, refused.stderr
        page = Person(world.issuer, ADA, world.issuer.passwords[ADA]).log_in(
            f"{world.issuer.url}/auth?response_type=code&client_id=trainyard&scope=openid"
            "&redirect_uri=http://127.0.0.1:1/callback"
        )
        assert "Invalid Email Address and password" in re.sub(r"\s+", " ", page[1])

    def test_a_blocked_name_is_refused_at_once_everywhere_and_others_are_not(
        self, world: World, tmp_path: Path
    ) -> None:
        ada, bob = token(world), token(world, email=BOB, groups=["speech-members"])
        hub = token(world, aud="trainyard-notebooks")
        assert [world.asked(one)[0] for one in (ada, bob, hub)] == [201, 201, 201]
        objects = rendered(tmp_path, values(world.issuer.url, blocked=[ADA]))
        said = yaml.safe_load(authentication(objects))
        said["jwt"][0]["issuer"]["certificateAuthority"] = world.issuer.ca.read_text()
        world.file.write_text(yaml.safe_dump(said))
        until(lambda: world.asked(ada)[0] == 401, RELOADED_S)
        assert [world.asked(one)[0] for one in (ada, hub)] == [401, 401]
        assert "this member is blocked" in world.log
        assert world.asked(bob)[1]["username"] == f"oidc:{BOB}"
