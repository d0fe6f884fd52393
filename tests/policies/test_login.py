"""`trainyard login` at a real Dex, and what a real API server makes of its tokens: who is who, and who is refused.

It runs where Dex is built: `bin/trainyard tools path dex`.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
import subprocess
import sys
import textwrap
import time
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from dex_issuer import Dex, Forger, Person, dex, named

from trainyard.login.browser import challenge
from trainyard.paths import ROOT
from trainyard_dev import tools
from trainyard_dev.apiserver import ApiServer, running
from trainyard_dev.apiserver.install import install
from trainyard_dev.apiserver.processes import free_ports
from trainyard_dev.chart import package
from trainyard_dev.tools import build

pytestmark = pytest.mark.skipif(
    not build.is_built(build.builder("dex")), reason="Dex isn't built: bin/trainyard tools path dex"
)
SYSTEM = "trainyard-system"
ADA, BOB = "ada@example.org", "bob@example.org"
PEOPLE = [{"email": ADA, "groups": ["vision-members"]}, {"email": BOB, "groups": ["speech-members"]}]
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
RELOADED_S = 90.0  # the API server looks at its file at least once a minute
LOGIN_S = 180
REUSED_S = 4  # Dex answers whoever asks twice within 3 s as it did the first time


def values(issuer: str, **login: Any) -> dict[str, Any]:
    """Two teams whose members come from the issuer, and the chart's issuer."""
    teams = [
        {"name": name, "gid": gid, "members": {"groups": [f"oidc:{name}-members"]}}
        for name, gid in (("vision", 20001), ("speech", 20002))
    ]
    contract = {"gpuImages": "cpu", "teams": teams, "login": {"issuer": issuer, **login}}
    notebooks = {"redirectURIs": ["https://notebooks.example.org/hub/oauth_callback"]}
    return {"global": {"contract": contract}, "login": {"enabled": True, "people": PEOPLE, "notebooks": notebooks}}


def rendered(folder: Path, said: dict[str, Any]) -> list[dict[str, Any]]:
    """The chart's objects for these values."""
    os.environ["KUBECONFIG"] = "/dev/null"  # helm must not find the cluster of whoever runs the tests
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(said))
    return package.render("kind", values=[file])


def authentication(objects: list[dict[str, Any]]) -> str:
    """What the chart tells an API server."""
    text: str = named(objects, "ConfigMap", "trainyard-login")["data"]["authentication.yaml"]
    return text


class World:
    """An API server that takes the tokens of a Dex, which keeps its log-ins in it by the rights of its own account."""

    def __init__(self, folder: Path, server: ApiServer, issuer: Dex, file: Path) -> None:
        self.folder, self.server, self.issuer, self.file = folder, server, issuer, file
        config = yaml.safe_load(server.kubeconfig.read_text())["clusters"][0]["cluster"]
        self.address = config["server"]
        self.ca = folder / "cluster.crt"
        self.ca.write_bytes((server.folder / "pki" / "ca.crt").read_bytes())

    def environment(self, **more: str) -> dict[str, str]:
        """Of a person's shell: a home of its own, nothing of this machine's log-ins."""
        kept = {
            name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "HOME", "TRAINYARD_CACHE")
        }
        return kept | {"KUBECONFIG": str(self.folder / "none"), "PYTHONPATH": str(ROOT / "scripts")} | more

    def trainyard(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        """One command of the product."""
        return subprocess.run(
            [sys.executable, "-m", "trainyard", *argv],
            env=self.environment(**env), capture_output=True, text=True, timeout=LOGIN_S,
        )  # fmt: skip

    def login_arguments(self) -> list[str]:
        """Of a log-in at this issuer for this cluster."""
        found = [f"--issuer={self.issuer.url}", f"--issuer-ca={self.issuer.ca}"]
        return [*found, f"--server={self.address}", f"--certificate-authority={self.ca}"]

    def person(self, email: str = ADA) -> Person:
        """Somebody with a browser."""
        return Person(self.issuer, email, self.issuer.passwords[email])

    def browser(self, email: str = ADA) -> str:
        """A program for $BROWSER that logs this person in, as webbrowser starts it."""
        script = self.folder / f"browser-{email.partition('@')[0]}"
        script.write_text(
            textwrap.dedent(f"""\
                #!{sys.executable}
                import sys
                sys.path[:0] = {[str(ROOT / "scripts"), str(Path(__file__).parent)]!r}
                from types import SimpleNamespace
                import ssl
                from dex_issuer import Person
                tls = ssl.create_default_context(cafile={str(self.issuer.ca)!r})
                page = Person(SimpleNamespace(tls=tls), {email!r}, {self.issuer.passwords[email]!r}).log_in(sys.argv[1])
                open({str(self.folder / "page.html")!r}, "w").write(page[1])
            """)
        )
        script.chmod(0o700)
        return f"{script} %s &"

    def logged_in(self, home: Path, email: str = ADA) -> Path:
        """The kubeconfig of somebody who has logged in with a browser."""
        file = home / "kubeconfig"
        done = self.trainyard(
            "login", *self.login_arguments(), "-n", "vision", "-o", str(file),
            BROWSER=self.browser(email), TRAINYARD_LOGIN=str(home / "login"),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert f"logged in as {email}" in done.stdout
        return file

    def kubectl(self, home: Path, *argv: str) -> subprocess.CompletedProcess[str]:
        """kubectl with the kubeconfig of `logged_in`."""
        return subprocess.run(
            [tools.binary("kubectl"), "--kubeconfig", home / "kubeconfig", *argv],
            env=self.environment(TRAINYARD_LOGIN=str(home / "login")),
            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def asked(self, token: str) -> tuple[int, dict[str, Any]]:
        """(status, who the API server takes the bearer for)."""
        done = subprocess.run(
            [tools.binary("kubectl"), "--kubeconfig", "/dev/null", "--server", self.address,
             "--certificate-authority", self.ca, "--token", token, "create", "--raw",
             "/apis/authentication.k8s.io/v1/selfsubjectreviews", "-f", "-"],
            input=json.dumps(REVIEW), env=self.environment(), capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        if done.returncode:
            assert "Unauthorized" in done.stderr or "must be logged in" in done.stderr, done.stderr
            return 401, {}
        found: dict[str, Any] = json.loads(done.stdout)["status"]["userInfo"]
        return 201, found

    @property
    def log(self) -> str:
        """What the API server has said."""
        return (self.server.folder / "kube-apiserver.log").read_text()

    def refused(self, token: str, why: str) -> None:
        """The API server takes the token for nobody's, and its log says why."""
        before = len(self.log)
        assert self.asked(token)[0] == 401
        end = time.monotonic() + 5
        while why not in self.log[before:] and time.monotonic() < end:
            time.sleep(0.1)
        assert why in self.log[before:], self.log[before:][-2000:]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("login")
    port, telemetry = free_ports(2)
    objects = rendered(folder, values(f"https://127.0.0.1:{port}/dex"))
    file = folder / "authentication.yaml"
    file.write_text(authentication(objects))
    (folder / "dex").mkdir()
    with running(authentication=file) as server, dex(folder / "dex", objects, port, telemetry) as issuer:
        install(server, objects)
        issuer.storage = {"inCluster": False, "kubeConfigFile": str(_account(folder, server))}
        issuer.start()
        made = World(folder, server, issuer, file)
        _until(lambda: made.asked(_token(made))[0] == 201, 30)  # it asks for the issuer's keys now and then
        yield made


def _account(folder: Path, server: ApiServer) -> Path:
    """A kubeconfig with a token of Dex's own account: what the chart's Role lacks would stop it."""
    path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/trainyard-login"
    answer = server.call("POST", f"{path}/token", {"spec": {"expirationSeconds": 7200}})
    assert answer.ok, answer.message
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": answer.body["status"]["token"]}
    config["contexts"][0]["context"]["namespace"] = SYSTEM
    file = folder / "dex" / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def _until(true: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds:.0f} s"
        time.sleep(1)


def _forger(world: World) -> Forger:
    keys = world.server.call("GET", f"/apis/dex.coreos.com/v1/namespaces/{SYSTEM}/signingkeies")
    assert keys.ok, keys.message
    return Forger(world.issuer.url, keys.body)


def _token(world: World, **changed: Any) -> str:
    return _forger(world).token(**changed)


@pytest.fixture
def home(world: World, tmp_path: Path) -> Path:
    """Of somebody who has just logged in as ada."""
    world.logged_in(tmp_path)
    return tmp_path


def _kept(home: Path) -> tuple[Path, dict[str, str]]:
    """The file with the tokens, and what is in it."""
    (file,) = (home / "login").glob("*.json")
    return file, json.loads(file.read_text())


def _stale(home: Path) -> dict[str, str]:
    """Makes the kept ID token one that has ended; the one that renews stays."""
    file, held = _kept(home)
    claims = {"exp": time.time() - 5}
    ended = "e30." + base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=") + ".x"
    file.write_text(json.dumps(held | {"id_token": ended}))
    return held


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
    file, held = _kept(home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    config = (home / "kubeconfig").read_text()
    assert held["id_token"] not in config and held["refresh_token"] not in config
    assert stat.S_IMODE((home / "kubeconfig").stat().st_mode) == 0o600
    file.chmod(0o644)
    refused = world.kubectl(home, "get", "pods")
    assert refused.returncode == 1 and "others can read the tokens (mode 0644)" in refused.stderr


def test_an_ended_token_is_renewed_once_whoever_asks_at_the_same_time(world: World, home: Path) -> None:
    time.sleep(REUSED_S)
    before = _stale(home)
    argv = ("login", "--credential", f"--issuer={world.issuer.url}", f"--issuer-ca={world.issuer.ca}")
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: world.trainyard(*argv, TRAINYARD_LOGIN=str(home / "login")), range(6)))
    assert [one.returncode for one in done] == [0] * 6, [one.stderr for one in done]
    # Each renewal makes another token: all six got that of the first.
    (token,) = {json.loads(one.stdout)["status"]["token"] for one in done}
    after = _kept(home)[1]
    assert after["id_token"] == token and after["refresh_token"] != before["refresh_token"]
    assert world.asked(token)[1]["username"] == f"oidc:{ADA}"


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
    assert world.asked(_token(world))[0] == 201  # the same token but for what is wrong with it
    world.refused(_token(world, **changed), why)


def test_a_signature_of_somebody_else_counts_for_nobody(world: World) -> None:
    token = _token(world)
    head, claims, signature = token.split(".")
    other = "A" if signature[10] != "A" else "B"
    world.refused(f"{head}.{claims}.{signature[:10]}{other}{signature[11:]}", "failed to verify signature")


def test_names_of_kubernetes_own_are_nobodys(world: World) -> None:
    """The prefix is before each name and group, so that `system:masters` of an issuer is a group like any other."""
    _, who = world.asked(_token(world, groups=["system:masters"], email="system:admin"))
    assert who["username"] == "oidc:system:admin"
    assert sorted(who["groups"]) == ["oidc:system:masters", "system:authenticated"]


def test_a_foreign_group_gets_nothing_in_a_team(world: World) -> None:
    token = _token(world, groups=["vision-members-2", "oidc:vision-members", "members"])
    done = subprocess.run(
        [tools.binary("kubectl"), "--kubeconfig", "/dev/null", "--server", world.address, "--certificate-authority",
         world.ca, "--token", token, "get", "pods", "-n", "vision"],
        env=world.environment(), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and f'User "oidc:{ADA}" cannot list resource "pods"' in done.stderr


def test_the_hubs_tokens_are_taken_as_well(world: World) -> None:
    assert world.asked(_token(world, aud="trainyard-notebooks"))[1]["username"] == f"oidc:{ADA}"


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
    _stale(home)
    world.issuer.start()
    done = world.kubectl(home, "auth", "whoami", "-o", "name")
    assert done.returncode == 0, done.stderr


class TestOffboarding:
    """Last in this file: who is gone stays gone."""

    def test_who_left_the_values_gets_no_new_token_and_the_last_one_counts_until_it_ends(
        self, world: World, home: Path
    ) -> None:
        held = _kept(home)[1]
        left = [one for one in world.issuer.config["staticPasswords"] if one["email"] != ADA]
        world.issuer.start(staticPasswords=left)
        assert world.asked(held["id_token"])[0] == 201
        time.sleep(REUSED_S)
        _stale(home)
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
        ada, bob = _token(world), _token(world, email=BOB, groups=["speech-members"])
        hub = _token(world, aud="trainyard-notebooks")
        assert [world.asked(one)[0] for one in (ada, bob, hub)] == [201, 201, 201]
        objects = rendered(tmp_path, values(world.issuer.url, blocked=[ADA]))
        said = yaml.safe_load(authentication(objects))
        said["jwt"][0]["issuer"]["certificateAuthority"] = world.issuer.ca.read_text()
        world.file.write_text(yaml.safe_dump(said))
        _until(lambda: world.asked(ada)[0] == 401, RELOADED_S)
        assert [world.asked(one)[0] for one in (ada, hub)] == [401, 401]
        assert "this member is blocked" in world.log
        assert world.asked(bob)[1]["username"] == f"oidc:{BOB}"
