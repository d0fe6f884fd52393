"""A log-in that lasts, and the kubeconfig that uses it."""

import stat
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from login_answers import CLIENT, DOCUMENT, URL, Fixed, signed

from trainyard.cli import trainyard
from trainyard.errors import TrainyardError, UsageError
from trainyard.login import asking, kubeconfig, session, store, tokens


class TestSession:
    SETTINGS = session.Settings(URL, CLIENT)

    def asked(self, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> Fixed:
        found = Fixed(*answers)
        monkeypatch.setattr(session, "IssuerClient", lambda ca: found)
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
        assert f"the issuer did not renew the log-in ({code}: gone). run `trainyard login" in str(raised.value)
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
        with pytest.raises(UsageError, match=r"no kubeconfig has the address of the cluster \(context other\)"):
            kubeconfig.chosen([home / "config"], "other")

    @pytest.mark.parametrize(
        "text", ["- a list", "contexts: x", "clusters: [x]", "users: [{name: u, user: x}]", "contexts: [{context: x}]"]
    )
    def test_what_is_no_kubeconfig_is_left_alone(self, home: Path, text: str) -> None:
        (home / "config").write_text(text)
        with pytest.raises(TrainyardError, match="not a kubeconfig"):
            kubeconfig.read(home / "config")

    @pytest.mark.parametrize(
        ("cluster", "says"),
        [
            ({}, "no kubeconfig has the address of the cluster"),
            ({"server": "https://c", "certificate-authority-data": "a"}, "data of cluster c is not text"),
        ],
    )
    def test_a_cluster_that_says_too_little_is_refused(self, home: Path, cluster: dict[str, str], says: str) -> None:
        contexts = [{"name": "k", "context": {"cluster": "c", "user": "u"}}]
        users = [{"name": "u", "user": {"exec": "x"}}]
        said = {"clusters": [{"name": "c", "cluster": cluster}], "contexts": contexts, "users": users}
        (home / "config").write_text(yaml.safe_dump(said | {"current-context": "k"}))
        with pytest.raises(UsageError, match=says):
            kubeconfig.chosen([home / "config"], "")
        assert kubeconfig.arguments([home / "config"], "") == []


class TestAgain:
    """`trainyard login` alone, with a kubeconfig that it has written before."""

    @pytest.fixture
    def used(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> list[session.Settings]:
        """The settings of each log-in."""
        found: list[session.Settings] = []

        def log_in(settings: session.Settings) -> tokens.Tokens:
            found.append(settings)
            return tokens.Tokens(signed(), "r")

        monkeypatch.setattr(session, "log_in", log_in)
        monkeypatch.setenv("KUBECONFIG", str(home / "config"))
        return found

    def run(self, *words: str) -> None:
        result = CliRunner().invoke(trainyard, ["login", *words])
        assert result.exit_code == 0, result.output

    def test_it_is_done_as_before(self, used: list[session.Settings], home: Path) -> None:
        more = ("--client-id=other", f"--issuer-ca={home}/a.crt", "--scope=openid", "--scope=email", "--port=8000")
        self.run(f"--issuer={URL}", "--server=https://lab:6443", *more)
        self.run()
        assert used[0] == used[1] and used[1].port == 8000 and used[1].scopes == ("openid", "email")

    def test_what_is_said_now_goes_before(self, used: list[session.Settings], home: Path) -> None:
        """A kubeconfig that was handed out knows no place of the issuer's authority on this machine."""
        self.run(f"--issuer={URL}", "--server=https://lab:6443")
        self.run(f"--issuer-ca={home}/a.crt", "--client-id=other")
        assert (used[1].issuer, used[1].ca, used[1].client) == (URL, f"{home}/a.crt", "other")
        self.run()
        assert used[2] == used[1]

    def test_none_is_printed_for_an_issuer_without_tls(self, home: Path) -> None:
        words = ["--issuer=http://login", "--server=https://lab:6443", "-o", "-"]
        assert "the address is not https" in str(CliRunner().invoke(trainyard, ["login", *words]).exception)
