"""The token of a notebook, which its hub keeps."""

import json
from collections.abc import Iterator
from typing import ClassVar

import pytest
from local_server import Answers, serving
from login_answers import signed

from trainyard.errors import TrainyardError
from trainyard.login import hub


class _Hub(Answers):
    asked: ClassVar[list[tuple[str, str]]] = []
    says: tuple[int, bytes] = (200, b"{}")

    def get(self) -> None:
        self.asked.append((self.path, self.headers["Authorization"]))
        self.answer(*self.says)


class TestHub:
    @pytest.fixture
    def environment(self) -> Iterator[dict[str, str]]:
        _Hub.asked.clear()
        with serving(_Hub) as host:
            told = {"API_URL": f"{host}/hub/api", "API_TOKEN": "t", "USER": "ada@example.org"}
            yield {f"JUPYTERHUB_{name}": value for name, value in told.items()}

    def test_the_notebook_gets_its_own_users_token(self, environment: dict[str, str]) -> None:
        _Hub.says = (200, json.dumps({"auth_state": {"id_token": signed()}}).encode())
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
        with pytest.raises(TrainyardError, match="invalid name of a hub user:"):
            hub.tokens(environment | {"JUPYTERHUB_USER": name})

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ((403, b"{}"), "the hub answered 403 Forbidden. stop the notebook at the hub and start it again"),
            ((200, b"<html>"), "the hub's answer is not JSON"),
            ((200, b"[]"), "the hub has no token for you. log out of the hub and in again"),
            ((200, b'{"auth_state": null}'), "the hub has no token for you"),
            ((200, b'{"auth_state": {"id_token": "x"}}'), "the issuer's token can't be read"),
        ],
    )
    def test_what_is_wrong_is_said(self, environment: dict[str, str], answer: tuple[int, bytes], said: str) -> None:
        _Hub.says = answer
        with pytest.raises(TrainyardError) as raised:
            hub.tokens(environment)
        assert said in str(raised.value)

    def test_elsewhere_it_says_what_is_missing(self) -> None:
        with pytest.raises(TrainyardError) as raised:
            hub.tokens({"JUPYTERHUB_USER": "ada"})
        assert "JUPYTERHUB_API_URL and JUPYTERHUB_API_TOKEN not set: not a notebook of the hub" in str(raised.value)
