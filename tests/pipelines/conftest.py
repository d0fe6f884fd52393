"""One platform for all tests of pipelines: real API server with the chart's rules and rights, real controllers, real
store, the real step program; only kubelet and the containers are ours."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import controller
import kubelet
import pytest
import store
from pipeline_harness import PipelineHarness
from stepping import TEAM

from trainyard import contract
from trainyard.paths import ROOT
from trainyard_agent.api import Api
from trainyard_dev import argo
from trainyard_dev.apiserver import ApiServer, running
from trainyard_dev.apiserver.install import install
from trainyard_dev.bench import harness as bench
from trainyard_dev.chart import package
from waiting import wait

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def objects() -> list[dict[str, Any]]:
    """The release with the teams vision and speech, which also serves models."""
    os.environ["KUBECONFIG"] = "/dev/null"  # helm must not find the cluster of the person who runs the tests
    made = package.render("kind", values=[HERE / "teams.yaml"], sets=["serving.enabled=true"])
    argo.quiet(made)
    return made


@pytest.fixture(scope="session")
def server(objects: list[dict[str, Any]]) -> Iterator[ApiServer]:
    """The chart's rules and rights on a real API server."""
    with running() as found:
        install(found, objects)
        yield found


@pytest.fixture(scope="session")
def harness(
    server: ApiServer, objects: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PipelineHarness]:
    """The running platform."""
    folder = tmp_path_factory.mktemp("harness")
    with (
        store.running(folder / "store") as kept,
        kubelet.running(server, kept) as pods,
        controller.running(server, objects, folder) as controllers,
    ):
        yield PipelineHarness(server, objects, kept, pods, controllers, contract.load(HERE / "teams.yaml"), folder)


@pytest.fixture(scope="session")
def account(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that kubelet would mount into a step."""
    folder = tmp_path_factory.mktemp("account")
    shutil.copyfile(server.folder / "pki" / "ca.crt", folder / "ca.crt")
    (folder / "namespace").write_text(TEAM)
    (folder / "token").write_text(bench.token(server, TEAM, "pipeline", "a step has no token"))
    return folder


@pytest.fixture
def api(server: ApiServer, account: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    """What a step calls the server by."""
    host, port = server._host.split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    monkeypatch.setattr(signal, "signal", lambda *_: signal.SIG_DFL)  # steps run in threads here
    return Api(account)


@pytest.fixture
def member(harness: PipelineHarness, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """`member("submit", …)` starts the command line as somebody of team vision."""
    who = f"--kubeconfig {harness.server.kubeconfig} -n vision --as ada --as-group vision-members".split()
    env = {**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "HOME": str(tmp_path), "TERM": "dumb"}
    env["TRAINYARD_CACHE"] = os.environ.get("TRAINYARD_CACHE") or str(Path.home() / ".cache" / "trainyard")

    def start(*words: str | Path) -> subprocess.Popen[str]:
        # Tests that run in the background ignore SIGINT, and so would what they start.
        argv = ["env", "--default-signal=INT", sys.executable, "-m", "trainyard_dev", *map(str, words), *who]
        return subprocess.Popen(
            [*argv, "--as-group", "system:authenticated"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=env, cwd=tmp_path,
        )  # fmt: skip

    return start


@pytest.fixture
def call(member: Callable[..., subprocess.Popen[str]]) -> Callable[..., tuple[int, str, str]]:
    """The same, until it has ended: code, standard output, standard error."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        process = member(*words)
        out, err = process.communicate(timeout=240)
        assert "Traceback" not in err, err
        return process.returncode, out, err

    return run


@pytest.fixture
def heard(capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """`heard(words)` waits until a step has said them; returns all that was said until then."""
    said: list[str] = []

    def look(words: str) -> str:
        said.append(capsys.readouterr().out)
        text = "".join(said)
        return text if words in text else ""

    return lambda words: str(wait(lambda: look(words), words))
