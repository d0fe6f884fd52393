"""Settings of the service behind kfp.Client, and its process as the image starts it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import urllib3
import yaml

from kfp_api import settings
from trainyard import contract
from trainyard.errors import TrainyardError
from trainyard_agent.say import PlatformError

STORE = {"S3_ENDPOINT": "https://minio:9000", "S3_ACCESS_KEY": "key", "S3_SECRET_KEY": "secret"}


class Mounted:
    """A ConfigMap as kubelet mounts it: a change swaps a link."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file, self._count = folder, folder / "contract.yaml", 0
        folder.mkdir()
        for name in ("contract.yaml", "wheels"):
            (folder / name).symlink_to(f"..data/{name}")

    def publish(self, *teams: str, text: str = "") -> None:
        self._count += 1
        (data := self.folder / f"..{self._count}").mkdir()
        raw = {**contract.render.defaults(), "teams": [{"name": team, "gid": 20001} for team in teams]}
        (data / "contract.yaml").write_text(text or yaml.safe_dump(raw))
        (data / "wheels").write_text("tiny-1-py3-none-any.whl")
        (self.folder / "..new").symlink_to(data.name)
        (self.folder / "..new").replace(self.folder / "..data")


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    made = Mounted(tmp_path / "contract")
    made.publish("vision")
    return made


@pytest.fixture
def env(mounted: Mounted, tmp_path: Path) -> dict[str, str]:
    """What the chart sets in any case."""
    return {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443",
            "KFP_API_CLUSTER_CA": str(tmp_path / "ca.crt"), "KFP_API_CONTRACT": str(mounted.file)}  # fmt: skip


def test_the_store_is_optional(env: dict[str, str]) -> None:
    found = settings.read(env)
    assert (found.server, found.store) == ("https://[fd00::1]:443", None)
    found = settings.read(env | STORE)
    assert found.store and found.store.user == "key"


@pytest.mark.parametrize("name", ["KFP_API_CONTRACT", "S3_SECRET_KEY"])
def test_what_is_needed_is_named(env: dict[str, str], name: str) -> None:
    with pytest.raises((TrainyardError, PlatformError), match=f"{name} (is )?not set"):
        settings.read(env | STORE | {name: ""})


def test_the_contract_is_read_again_when_it_has_changed(mounted: Mounted) -> None:
    current = settings.contract(mounted.file, "https://cluster")
    assert list(current().teams) == ["vision"] and current() is current()
    assert current().live and current().packages["wheels"] == ["tiny-1-py3-none-any.whl"]
    mounted.publish("vision", "speech")
    assert list(current().teams) == ["vision", "speech"]
    mounted.publish(text="- none")
    assert list(current().teams) == ["vision", "speech"]
    with pytest.raises(TrainyardError, match="the contract can't be read"):
        settings.contract(mounted.folder / "absent", "https://cluster")()


def test_the_process_answers_and_ends_in_time(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    whole = {**os.environ, **env, "PYTHONPATH": os.pathsep.join(sys.path), "KFP_API_PORT": str(port)}
    started = subprocess.Popen([sys.executable, "-m", "kfp_api"], text=True, env=whole, stdout=subprocess.PIPE)
    with started as process, urllib3.PoolManager(retries=urllib3.Retry(20, backoff_factor=0.05)) as pool:
        answer = pool.request("GET", f"http://127.0.0.1:{port}/apis/v2beta1/healthz")
        assert answer.status == 200 and "server" not in answer.headers
        assert pool.request("GET", f"http://127.0.0.1:{port}/apis/v2beta1/runs?filter=secret").status == 401
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=10)
    assert "answers on port" in said and "secret" not in said
