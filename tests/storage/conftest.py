"""A real MinIO server on this machine, and the store's environment as pods have it."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from minio import Minio

from trainyard_agent import store
from trainyard_agent.store import Access
from trainyard_dev import tools
from trainyard_dev.chart import parts

USER, PASSWORD = "trainyard-root", secrets.token_hex(16)


@dataclass
class Server:
    """A running server; `root` is its root user's access."""

    root: Access
    folder: Path

    def client(self, user: str, password: str) -> Minio:
        """A client for one of its users."""
        return store.client(Access(self.root.endpoint, user, password, "us-east-1", self.root.ca), patient=False)

    @property
    def admin(self) -> Minio:
        """A client for its root user."""
        return self.client(self.root.user, self.root.password)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(folder: Path, certs: Path, ca: str = "") -> tuple[subprocess.Popen[bytes], Server]:
    """Start a server and wait until it answers."""
    port, scheme = free_port(), "https" if ca else "http"
    folder.mkdir()
    process = subprocess.Popen(
        [tools.binary("minio"), "server", folder, "--address", f"127.0.0.1:{port}", "--certs-dir", certs],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "MINIO_ROOT_USER": USER,
            "MINIO_ROOT_PASSWORD": PASSWORD,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    server = Server(Access(f"{scheme}://127.0.0.1:{port}", USER, PASSWORD, "us-east-1", ca), folder)
    end = time.monotonic() + 30
    while True:
        try:
            server.admin.list_buckets()
            return process, server
        except Exception as error:
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                raise AssertionError(f"MinIO did not start: {error}") from error
            time.sleep(0.1)


@pytest.fixture(scope="session")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """`launch()` starts a server of one's own; all end with the tests."""
    running = []

    def go(certs: Path | None = None, ca: str = "") -> Server:
        folder = tmp_path_factory.mktemp("minio")
        process, server = start(folder / "data", certs or folder / "certs", ca)
        running.append(process)
        return server

    yield go
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def server(launch: Callable[..., Server]) -> Server:
    """The server that tests share; each makes what it needs."""
    return launch()


@pytest.fixture
def contract() -> dict[str, Any]:
    """The contract's default values, with two teams."""
    made = yaml.safe_load((parts.UMBRELLA / "values.yaml").read_text())["global"]["contract"]
    made["teams"] = [{"name": "vision", "gid": 20001}, {"name": "speech", "gid": 20002}]
    return made


@pytest.fixture
def environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables that the setup job has."""
    made = {
        "S3_ENDPOINT": server.root.endpoint,
        "S3_ACCESS_KEY": "trainyard-abcdefgh",
        "S3_SECRET_KEY": "platform-secret-key",
        "S3_REGION": "us-east-1",
        "S3_CA": server.root.ca,
        "MINIO_ROOT_USER": USER,
        "MINIO_ROOT_PASSWORD": PASSWORD,
    }
    for name, value in made.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def clock() -> SimpleNamespace:
    """A deadline of one look."""

    def wait(what: str, ready: Callable[[], str]) -> None:
        assert ready() == "", what

    return SimpleNamespace(wait=wait)
