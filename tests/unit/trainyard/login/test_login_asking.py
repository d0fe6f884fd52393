"""How an issuer is asked, and what it says of itself."""

from __future__ import annotations

from typing import Any

import pytest
from login_answers import DOCUMENT, URL, Fixed

from trainyard.errors import TrainyardError
from trainyard.login import asking, issuer


class TestAsking:
    @pytest.mark.parametrize("url", ["http://login.example.org", "file:///etc/passwd", "https://", "login"])
    def test_an_issuer_is_asked_over_tls_only(self, url: str) -> None:
        with pytest.raises(TrainyardError, match="the address is not https"):
            asking.Asker().get(url)

    def test_a_missing_authority_is_named(self) -> None:
        with pytest.raises(TrainyardError) as raised:
            asking.Asker("/none/ca.crt").get(URL)
        assert str(raised.value).startswith("/none/ca.crt: the authority can't be read: No such file")


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
