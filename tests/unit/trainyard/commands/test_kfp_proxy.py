"""`trainyard kfp proxy`, as a member runs it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kfp.client import Client
from local_server import Answers, kubeconfig, serving


def start(config: Path, *words: str) -> "subprocess.Popen[str]":
    env = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    env["KUBECONFIG"] = str(config)
    argv = [sys.executable, "-m", "trainyard", "kfp", "proxy", "--port", "0", *words]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    return kubeconfig(tmp_path / "config", "http://127.0.0.1:1", token="mine")


def test_kfp_s_client_works_as_it_says_until_it_is_told_to_end(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Handler(Answers):
        def get(self) -> None:
            self.answer(200, {"multi_user": self.headers["Authorization"] == "Bearer mine"})

    with serving(Handler) as url, start(config, "--endpoint", url) as proxy:
        assert proxy.stdout and proxy.stderr
        said = proxy.stdout.readline().strip()
        assert said.startswith("export KF_PIPELINES_ENDPOINT=http://localhost:")
        monkeypatch.setenv("KF_PIPELINES_ENDPOINT", said.partition("=")[2])
        monkeypatch.setattr(Client, "_LOCAL_KFP_CONTEXT", str(config.parent / "context.json"))
        assert Client().get_kfp_healthz().multi_user is True
        proxy.send_signal(signal.SIGTERM)
        assert proxy.wait(10) == 130
        assert "is not https: your token is readable on the way there" in proxy.stderr.read()


def test_a_kubeconfig_without_a_token_is_refused_at_once(config: Path) -> None:
    with start(config, "--endpoint", "https://runs.example.org", "--as", "ada") as proxy:
        out, err = proxy.communicate(timeout=20)
    assert (proxy.returncode, out) == (2, "")
    assert err == "error: --as sends no token of that user, which the service needs\nhint: remove --as\n"
