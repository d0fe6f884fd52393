"""A real MinIO server on this machine."""

from __future__ import annotations

import os
import secrets
import socket
import string
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from minio import Minio

from trainyard_agent import store
from trainyard_agent.store import Access
from trainyard_dev import tools

USER, PASSWORD = "".join(secrets.choice(string.ascii_uppercase) for _ in range(20)), secrets.token_hex(20)


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


def start(
    folder: Path, certs: Path, ca: str = "", *, user: str = USER, password: str = PASSWORD, port: int = 0, **env: str
) -> tuple[subprocess.Popen[bytes], Server]:
    """Start a server and wait until it answers. `port` 0: a free one; `env`: further variables of it."""
    port, scheme = port or free_port(), "https" if ca else "http"
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [tools.binary("minio"), "server", folder, "--address", f"127.0.0.1:{port}", "--certs-dir", certs],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "MINIO_ROOT_USER": user,
            "MINIO_ROOT_PASSWORD": password,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            **env,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    server = Server(Access(f"{scheme}://127.0.0.1:{port}", user, password, "us-east-1", ca), folder)
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
