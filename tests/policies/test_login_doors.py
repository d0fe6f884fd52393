"""What Dex refuses by the chart's configuration: codes, ways back, grants, passwords, frames."""

import re
import urllib.parse

from dex_issuer import Person
from login_world import ADA, BOB, World, needs_dex

from trainyard.login.browser import challenge

pytestmark = needs_dex


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
