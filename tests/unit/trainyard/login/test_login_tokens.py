"""Requests to an issuer, its discovery document, its tokens, and where they are stored."""

import json
import os
import stat
import threading
import time
from typing import Any

import pytest
from login_answers import CLIENT, DOCUMENT, URL, Fixed, signed

from trainyard.errors import TrainyardError
from trainyard.login import asking, issuer, store, tokens


class TestAsking:
    @pytest.mark.parametrize("url", ["http://login.example.org", "file:///etc/passwd", "https://", "login"])
    def test_an_issuer_is_asked_over_tls_only(self, url: str) -> None:
        with pytest.raises(TrainyardError, match="the address is not https"):
            asking.IssuerClient().get(url)

    def test_a_missing_authority_is_named(self) -> None:
        with pytest.raises(TrainyardError) as raised:
            asking.IssuerClient("/none/ca.crt").get(URL)
        assert str(raised.value).startswith("/none/ca.crt: the CA certificate can't be read: No such file")


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
            ({"code_challenge_methods_supported": ["plain"]}, "the issuer does not support PKCE with S256"),
        ],
    )
    def test_what_a_log_in_lacks_is_named(self, changed: dict[str, Any], said: str) -> None:
        with pytest.raises(TrainyardError) as raised:
            issuer.discover(Fixed(DOCUMENT | changed), URL)
        assert said in str(raised.value)


class TestTokens:
    def test_an_id_token_must_be_for_us(self) -> None:
        found = tokens.received({"id_token": signed(nonce="n"), "refresh_token": "r"}, URL, CLIENT, "n")
        assert found.refresh_token == "r" and found.is_fresh(time.time()) and not found.is_fresh(time.time() + 880)

    @pytest.mark.parametrize(
        ("claims", "said"),
        [
            ({"iss": "https://elsewhere"}, "refused a token of the issuer https://elsewhere"),
            ({"aud": "other"}, "refused a token for the audience other"),
            ({"aud": ["a", "b"]}, "for the audience ['a', 'b']"),
            ({"nonce": "another"}, "refused a token of another log-in"),
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
