"""Two ways to log in: by a browser with a local port, and by a code."""

import http.server
import threading
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, ClassVar

import pytest
from login_answers import CLIENT, URL, Fixed, signed

from trainyard.errors import TrainyardError
from trainyard.login import asking, browser, device, issuer


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
        with pytest.raises(TrainyardError, match="refused a token of another log-in"):
            self.logged_in(Fixed({"id_token": signed(nonce="other")}), {"state": "STATE", "code": "c"})

    def test_nobody_comes(self) -> None:
        with pytest.raises(TrainyardError) as raised:
            browser.log_in(Fixed(), self.AT, CLIENT, show=lambda _: True, patience_s=0.2)
        assert "no log-in within 0 s. try again, or with --device" in str(raised.value)

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
            ((asking.RefusedError("invalid_client"),), "no device code received: invalid_client"),
            (({"device_code": "d"},), "the device code lacks 'user_code'"),
            ((BEGUN, asking.RefusedError("access_denied", "no")), "the log-in was refused: access_denied: no"),
            ((BEGUN | {"expires_in": -1},), "nobody logged in before the code expired"),
        ],
    )
    def test_it_says_what_went_wrong(self, answers: tuple[Any, ...], said: str) -> None:
        with pytest.raises(TrainyardError) as raised:
            device.log_in(Fixed(*answers), self.AT, CLIENT, sleep=lambda _: None)
        assert said in str(raised.value)

    def test_an_issuer_without_it_says_so(self) -> None:
        with pytest.raises(TrainyardError, match="the issuer does not offer device codes"):
            device.log_in(Fixed(), TestBrowser.AT, CLIENT)
