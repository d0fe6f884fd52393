"""A log-in that lasts, and the kubeconfig that uses it."""

from __future__ import annotations

import stat
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from login_answers import CLIENT, DOCUMENT, URL, Fixed, signed

from trainyard.errors import TrainyardError, UsageError
from trainyard.login import asking, kubeconfig, session, store, tokens


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
