"""Parts of a log-in that need no issuer: tokens and where they lie, the port that waits, kubeconfigs, the hub."""

from __future__ import annotations

import base64
import http.server
import json
import os
import stat
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from trainyard.errors import TrainyardError, UsageError
from trainyard.login import asking, browser, device, hub, issuer, kubeconfig, session, store, tokens

URL, CLIENT = "https://login.example.org", "trainyard"


def signed(**claims: Any) -> str:
    """A token with these claims; its signature is none."""
    said = {"iss": URL, "aud": CLIENT, "exp": time.time() + 900, "email": "ada@example.org"} | claims
    return f"e30.{base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip('=')}.sig"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "login"))
    return tmp_path


class TestTokens:
    def test_an_id_token_must_be_for_us(self) -> None:
        found = tokens.received({"id_token": signed(nonce="n"), "refresh_token": "r"}, URL, CLIENT, "n")
        assert found.refresh_token == "r" and found.is_fresh(time.time()) and not found.is_fresh(time.time() + 880)

    @pytest.mark.parametrize(
        ("claims", "said"),
        [
            ({"iss": "https://elsewhere"}, "the token is of the issuer https://elsewhere, so it is refused"),
            ({"aud": "other"}, "the token is for the audience other, so it is refused"),
            ({"aud": ["a", "b"]}, "for the audience ['a', 'b']"),
            ({"nonce": "another"}, "the token is of another log-in, so it is refused"),
        ],
    )
    def test_one_that_is_not_is_refused(self, claims: dict[str, Any], said: str) -> None:
        with pytest.raises(TrainyardError) as raised:
            tokens.received({"id_token": signed(**{"nonce": "n"} | claims)}, URL, CLIENT, "n")
        assert said in str(raised.value)

    @pytest.mark.parametrize("token", ["", "a.b", "a.!.c", "a.e30.c", f"{signed()}.more"])
    def test_what_is_no_token_is_named_so(self, token: str) -> None:
        with pytest.raises(TrainyardError, match="the issuer's token can't be read"):
            tokens.claims(token)

    def test_kubectl_is_told_an_earlier_end(self) -> None:
        said = json.loads(tokens.credential(tokens.Tokens(signed(exp=1000000060)), "client.authentication.k8s.io/v1"))
        assert said["kind"] == "ExecCredential" and said["status"]["expirationTimestamp"] == "2001-09-09T01:46:40Z"


class TestStore:
    def test_what_is_kept_is_for_its_owner_alone_and_found_again(self) -> None:
        kept = tokens.Tokens(signed(), "r")
        os.umask(0)
        place = store.write(URL, CLIENT, kept, "/ca.crt")
        os.umask(0o022)
        assert stat.S_IMODE(place.stat().st_mode) == 0o600 and stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        assert store.read(URL + "/", CLIENT) == kept and store.read(URL, "another") is None
        assert store.kept() == [(URL, CLIENT, "/ca.crt")]
        assert store.forget(URL, CLIENT) and not store.forget(URL, CLIENT) and store.kept() == []

    def test_a_file_that_others_read_is_not_used(self) -> None:
        store.write(URL, CLIENT, tokens.Tokens(signed(), "r")).chmod(0o640)
        with pytest.raises(TrainyardError) as raised:
            store.read(URL, CLIENT)
        assert "others can read the tokens (mode 0640). run `trainyard logout`" in str(raised.value)
        assert store.read(URL, CLIENT, strict=False)

    def test_a_broken_file_is_as_none(self) -> None:
        store.write(URL, CLIENT, tokens.Tokens(signed(), "r")).write_text("{")
        assert store.read(URL, CLIENT) is None and store.kept() == []

    def test_a_second_process_waits(self) -> None:
        order = []

        def second() -> None:
            with store.held(URL, CLIENT):
                order.append("second")

        with store.held(URL, CLIENT):
            waiting = threading.Thread(target=second)
            waiting.start()
            waiting.join(0.3)
            order.append("first")
        waiting.join()
        assert order == ["first", "second"]


class TestAsking:
    @pytest.mark.parametrize("url", ["http://login.example.org", "file:///etc/passwd", "https://", "login"])
    def test_an_issuer_is_asked_over_tls_only(self, url: str) -> None:
        with pytest.raises(TrainyardError, match="the address is not https"):
            asking.Asker().get(url)

    def test_a_missing_authority_is_named(self) -> None:
        with pytest.raises(TrainyardError) as raised:
            asking.Asker("/none/ca.crt").get(URL)
        assert str(raised.value).startswith("/none/ca.crt: the authority can't be read: No such file")


class Fixed(asking.Asker):
    """An issuer that has said this; which is asked what stands in `asked`."""

    def __init__(self, *answers: Any) -> None:
        self.__dict__["answers"], self.__dict__["asked"] = list(answers), []

    def get(self, url: str, headers: Any = None) -> dict[str, Any]:
        return self.post(url, {})

    def post(self, url: str, form: Any) -> dict[str, Any]:
        self.__dict__["asked"].append((url, dict(form)))
        answer = self.__dict__["answers"].pop(0)
        if isinstance(answer, Exception):
            raise answer
        found: dict[str, Any] = answer
        return found


DOCUMENT = {"issuer": URL, "authorization_endpoint": f"{URL}/auth", "token_endpoint": f"{URL}/token"}


class TestDiscovery:
    def test_scopes_are_those_that_the_issuer_has(self) -> None:
        assert issuer.discover(Fixed(DOCUMENT), URL + "/").scopes == issuer.SCOPES
        some = DOCUMENT | {"scopes_supported": ["email", "address"]}
        assert issuer.discover(Fixed(some), URL).asked_scopes == "openid email"
        assert issuer.discover(Fixed(some), URL, ["openid", "own"]).asked_scopes == "openid own"

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"issuer": "https://evil.example.org"}, "it calls itself https://evil.example.org. give --issuer exactly"),
            ({"token_endpoint": None}, "it names no token_endpoint"),
            ({"token_endpoint": "http://login.example.org/token"}, "the address is not https"),
            ({"code_challenge_methods_supported": ["plain"]}, "it takes no PKCE with S256"),
        ],
    )
    def test_what_a_log_in_lacks_is_named(self, changed: dict[str, Any], said: str) -> None:
        with pytest.raises(TrainyardError) as raised:
            issuer.discover(Fixed(DOCUMENT | changed), URL)
        assert said in str(raised.value)


def pressed(address: str) -> tuple[int, str]:
    """(status, page) of a browser that goes there."""
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class TestBrowser:
    AT = issuer.Issuer(URL, f"{URL}/auth", f"{URL}/token")

    def logged_in(self, asker: Fixed, *visits: dict[str, str], path: str = "/callback") -> list[tuple[int, str]]:
        """Runs a log-in whose browser goes to these addresses in turn; what it is shown."""
        shown: list[tuple[int, str]] = []

        def show(address: str) -> bool:
            asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))

            def go() -> None:
                for visit in visits:
                    said = {key: asked["state"] if value == "STATE" else value for key, value in visit.items()}
                    base = asked["redirect_uri"].removesuffix("/callback") + said.pop("path", path)
                    shown.append(pressed(f"{base}?{urllib.parse.urlencode(said)}"))

            going.append(threading.Thread(target=go, daemon=True))
            going[0].start()
            asker.__dict__["asked_for"] = asked
            return True

        going: list[threading.Thread] = []
        asker.__dict__["shown"] = shown
        try:
            browser.log_in(asker, self.AT, CLIENT, show=show, patience_s=5)
        finally:
            going[0].join(10)
        return shown

    def test_the_code_is_traded_with_the_verifier_of_its_challenge(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(browser.secrets, "token_urlsafe", lambda size: "s" * size)
        asker = Fixed({"id_token": signed(nonce="s" * 32)})
        ((status, page),) = self.logged_in(asker, {"state": "STATE", "code": "c"})
        assert status == 200 and "Logged in" in page
        ((url, form),) = asker.__dict__["asked"]
        asked = asker.__dict__["asked_for"]
        assert url == f"{URL}/token" and form["code"] == "c" and form["redirect_uri"] == asked["redirect_uri"]
        assert asked["redirect_uri"].startswith("http://127.0.0.1:") and asked["code_challenge_method"] == "S256"
        assert browser.challenge(form["code_verifier"]) == asked["code_challenge"]

    def test_the_challenge_is_that_of_rfc_7636(self) -> None:
        assert browser.challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == (
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        )

    def test_what_others_send_to_the_port_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(browser.secrets, "token_urlsafe", lambda size: "s" * size)
        shown = self.logged_in(
            Fixed({"id_token": signed(nonce="s" * 32)}),
            {"path": "/", "state": "STATE", "code": "x"},
            {"state": "guessed", "code": "x"},
            {"code": "x"},
            {"state": "STATE", "code": "x", "iss": "https://evil.example.org"},
            {"state": "STATE", "code": "c"},
        )
        assert [status for status, _ in shown[:4]] == [404, 400, 400, 400]
        assert "another log-in" in shown[1][1] and "another issuer" in shown[3][1]

    def test_a_refusal_is_told_and_written_as_text(self) -> None:
        asker = Fixed()
        with pytest.raises(TrainyardError) as raised:
            self.logged_in(asker, {"state": "STATE", "error": "access_denied", "error_description": "<b>no</b>"})
        assert "https://login.example.org: the log-in was refused: <b>no</b>" in str(raised.value)
        assert "&lt;b&gt;no&lt;/b&gt;" in asker.__dict__["shown"][0][1]

    def test_an_answer_for_another_log_in_is_refused(self) -> None:
        with pytest.raises(TrainyardError, match="of another log-in, so it is refused"):
            self.logged_in(Fixed({"id_token": signed(nonce="other")}), {"state": "STATE", "code": "c"})

    def test_nobody_comes(self) -> None:
        with pytest.raises(TrainyardError) as raised:
            browser.log_in(Fixed(), self.AT, CLIENT, show=lambda _: True, patience_s=0.2)
        assert "no log-in came within 0 s. try again, or with --device" in str(raised.value)

    def test_a_port_that_is_taken_is_named(self) -> None:
        with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as taken:
            port = taken.server_address[1]
            with pytest.raises(TrainyardError, match=f"port {port} of 127.0.0.1 can't be used"):
                browser.log_in(Fixed(), self.AT, CLIENT, port=port, show=lambda _: True)


class TestDevice:
    AT = issuer.Issuer(URL, f"{URL}/auth", f"{URL}/token", f"{URL}/device")
    BEGUN: ClassVar[dict[str, Any]] = {
        "device_code": "d",
        "user_code": "ABCD-EFGH",
        "verification_uri": f"{URL}/device",
        "interval": 2,
    }

    def test_it_waits_as_long_as_it_is_told(self, capsys: pytest.CaptureFixture[str]) -> None:
        slept: list[float] = []
        pending, slow = (asking.RefusedError(code) for code in ("authorization_pending", "slow_down"))
        asker = Fixed(self.BEGUN, pending, slow, {"id_token": signed()})
        assert device.log_in(asker, self.AT, CLIENT, sleep=slept.append).claims["email"] == "ada@example.org"
        assert slept == [2, 2, 7] and asker.__dict__["asked"][-1][1]["device_code"] == "d"
        assert f"open {URL}/device\nand confirm the code ABCD-EFGH" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("answers", "said"),
        [
            ((asking.RefusedError("invalid_client"),), "it gives no device code: invalid_client"),
            (({"device_code": "d"},), "its device code lacks 'user_code'"),
            ((BEGUN, asking.RefusedError("access_denied", "no")), "the log-in was refused: access_denied: no"),
            ((BEGUN | {"expires_in": -1},), "nobody logged in before the code ended"),
        ],
    )
    def test_it_says_what_went_wrong(self, answers: tuple[Any, ...], said: str) -> None:
        with pytest.raises(TrainyardError) as raised:
            device.log_in(Fixed(*answers), self.AT, CLIENT, sleep=lambda _: None)
        assert said in str(raised.value)

    def test_an_issuer_without_it_says_so(self) -> None:
        with pytest.raises(TrainyardError, match="it has no device codes"):
            device.log_in(Fixed(), TestBrowser.AT, CLIENT)


class TestSession:
    SETTINGS = session.Settings(URL, CLIENT)

    def asked(self, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> Fixed:
        found = Fixed(*answers)
        monkeypatch.setattr(session, "Asker", lambda ca: found)
        return found

    def test_a_fresh_token_needs_nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asker = self.asked(monkeypatch)
        store.write(URL, CLIENT, tokens.Tokens(signed(), "r"))
        assert session.current(self.SETTINGS, interactive=False).refresh_token == "r" and not asker.__dict__["asked"]

    def test_an_ended_one_is_renewed_and_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asker = self.asked(monkeypatch, DOCUMENT, {"id_token": signed(n=1), "refresh_token": "r2"})
        store.write(URL, CLIENT, tokens.Tokens(signed(exp=time.time() + 30), "r"))
        assert session.current(self.SETTINGS, interactive=False).claims["n"] == 1
        assert asker.__dict__["asked"][1][1]["refresh_token"] == "r"
        kept = store.read(URL, CLIENT)
        assert kept and kept.refresh_token == "r2"

    @pytest.mark.parametrize(("code", "stays"), [("invalid_grant", False), ("server_error", True)])
    def test_a_refusal_ends_the_log_in_only_where_it_is_final(
        self, monkeypatch: pytest.MonkeyPatch, code: str, stays: bool
    ) -> None:
        self.asked(monkeypatch, DOCUMENT, asking.RefusedError(code, "gone"))
        store.write(URL, CLIENT, tokens.Tokens(signed(exp=1), "r"))
        with pytest.raises(TrainyardError) as raised:
            session.current(self.SETTINGS, interactive=False)
        assert f"the issuer does not renew the log-in ({code}: gone). run `trainyard login" in str(raised.value)
        assert bool(store.read(URL, CLIENT)) is stays

    def test_an_issuer_that_is_away_ends_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked(monkeypatch, TrainyardError("it can't be reached"))
        store.write(URL, CLIENT, tokens.Tokens(signed(exp=1), "r"))
        with pytest.raises(TrainyardError, match="it can't be reached"):
            session.current(self.SETTINGS, interactive=False)
        assert store.read(URL, CLIENT)

    def test_a_log_out_tells_the_issuer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asker = self.asked(monkeypatch, DOCUMENT | {"revocation_endpoint": f"{URL}/revoke"}, {})
        store.write(URL, CLIENT, tokens.Tokens(signed(), "r"))
        assert session.log_out(self.SETTINGS) and not session.log_out(self.SETTINGS)
        assert asker.__dict__["asked"][-1] == (f"{URL}/revoke", {"token": "r", "client_id": CLIENT})


class TestKubeconfig:
    CLUSTER = kubeconfig.Cluster("lab", "https://lab:6443", "-----BEGIN CERTIFICATE-----\n")

    def test_everything_else_of_a_kubeconfig_stays(self, home: Path) -> None:
        place = home / "config"
        other = {"name": "x", "cluster": {"server": "https://x"}}
        place.write_text(yaml.safe_dump({"clusters": [other], "preferences": {"a": 1}, "current-context": "x"}))
        place.chmod(0o640)
        for _ in range(2):  # the second log-in replaces the first
            made = kubeconfig.merged(kubeconfig.read(place), self.CLUSTER, ["--issuer=i"], "vision")
            kubeconfig.write(place, made)
        found = kubeconfig.read(place)
        assert found["preferences"] == {"a": 1} and [one["name"] for one in found["clusters"]] == ["x", "lab"]
        assert found["current-context"] == "trainyard-login@lab" and len(found["users"]) == 1
        assert found["contexts"][0]["context"]["namespace"] == "vision"
        assert stat.S_IMODE(place.stat().st_mode) == 0o640
        assert kubeconfig.arguments([place], "") == ["--issuer=i"] and kubeconfig.arguments([place], "x") == []

    def test_for_others_the_program_is_a_name(self) -> None:
        made = kubeconfig.merged(kubeconfig.read(Path("/dev/null")), self.CLUSTER, [], "", for_others=True)
        plugin = made["users"][0]["user"]["exec"]
        assert plugin["command"] == "trainyard" and plugin["args"] == ["login", "--credential"]
        assert plugin["interactiveMode"] == "IfAvailable"

    def test_the_cluster_of_a_context_is_taken_with_its_authority(self, home: Path) -> None:
        (home / "ca.crt").write_text(self.CLUSTER.ca)
        said = {
            "clusters": [{"name": "c", "cluster": {"server": "https://c", "certificate-authority": "ca.crt"}}],
            "contexts": [{"name": "k", "context": {"cluster": "c", "user": "u", "namespace": "vision"}}],
            "current-context": "k",
        }
        (home / "config").write_text(yaml.safe_dump(said))
        found, namespace = kubeconfig.chosen([home / "config"], "")
        assert (found.server, found.ca, namespace) == ("https://c", self.CLUSTER.ca, "vision")
        with pytest.raises(UsageError, match=r"no kubeconfig says where the cluster is \(context other\)"):
            kubeconfig.chosen([home / "config"], "other")

    def test_what_is_no_kubeconfig_is_left_alone(self, home: Path) -> None:
        (home / "config").write_text("- a list")
        with pytest.raises(TrainyardError, match="this is no kubeconfig"):
            kubeconfig.read(home / "config")


class _Hub(http.server.BaseHTTPRequestHandler):
    asked: ClassVar[list[tuple[str, str]]] = []
    answer: tuple[int, bytes] = (200, b"{}")

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["Authorization"]))
        status, body = self.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class TestHub:
    @pytest.fixture
    def environment(self) -> Iterator[dict[str, str]]:
        _Hub.asked.clear()
        with http.server.HTTPServer(("127.0.0.1", 0), _Hub) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield {
                "JUPYTERHUB_API_URL": f"http://127.0.0.1:{server.server_address[1]}/hub/api",
                "JUPYTERHUB_API_TOKEN": "t",
                "JUPYTERHUB_USER": "ada@example.org",
            }
            server.shutdown()

    def test_the_notebook_gets_its_own_users_token(self, environment: dict[str, str]) -> None:
        _Hub.answer = (200, json.dumps({"auth_state": {"id_token": signed()}}).encode())
        assert hub.tokens(environment).claims["email"] == "ada@example.org"
        assert _Hub.asked == [("/hub/api/users/ada%40example.org", "token t")]

    @pytest.mark.parametrize(
        ("name", "path"),
        [("bob/../ada", "bob%2F..%2Fada"), ("a?b#c", "a%3Fb%23c"), ("ä b", "%C3%A4%20b"), ("a%2Fb", "a%252Fb")],
    )
    def test_a_strange_name_asks_for_nobody_else(self, environment: dict[str, str], name: str, path: str) -> None:
        assert hub.address(environment | {"JUPYTERHUB_USER": name}).endswith(f"/users/{path}")

    @pytest.mark.parametrize("name", [".", ".."])
    def test_a_name_that_is_a_way_is_refused(self, environment: dict[str, str], name: str) -> None:
        with pytest.raises(TrainyardError, match="the hub can't be asked for a user named"):
            hub.tokens(environment | {"JUPYTERHUB_USER": name})

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ((403, b"{}"), "the hub answers 403 Forbidden. stop the notebook at the hub and start it again"),
            ((200, b"<html>"), "the hub's answer is no JSON"),
            ((200, b"[]"), "the hub has no token for you. log out of the hub and in again"),
            ((200, b'{"auth_state": null}'), "the hub has no token for you"),
            ((200, b'{"auth_state": {"id_token": "x"}}'), "the issuer's token can't be read"),
        ],
    )
    def test_what_is_wrong_is_said(self, environment: dict[str, str], answer: tuple[int, bytes], said: str) -> None:
        _Hub.answer = answer
        with pytest.raises(TrainyardError) as raised:
            hub.tokens(environment)
        assert said in str(raised.value)

    def test_elsewhere_it_says_what_is_missing(self) -> None:
        with pytest.raises(TrainyardError) as raised:
            hub.tokens({"JUPYTERHUB_USER": "ada"})
        assert "JUPYTERHUB_API_URL and JUPYTERHUB_API_TOKEN not set: this is no notebook of a hub" in str(raised.value)
