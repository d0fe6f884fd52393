"""A real MinIO server on this machine."""

import secrets
import string
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from minio import Minio

from trainyard_agent.store import connect
from trainyard_agent.store.connect import Access
from trainyard_dev import tools
from trainyard_dev.apiserver import processes

USER, PASSWORD = "".join(secrets.choice(string.ascii_uppercase) for _ in range(20)), secrets.token_hex(20)


@dataclass
class Server:
    """A running server; `root` has its root user's keys."""

    root: Access
    folder: Path

    def client(self, user: str, password: str) -> Minio:
        """A client for one of the server's users."""
        return connect.client(Access(self.root.endpoint, user, password, "us-east-1", self.root.ca), patient=False)

    @property
    def admin(self) -> Minio:
        """A client for the server's root user."""
        return self.client(self.root.user, self.root.password)


def env_of(to: Access) -> dict[str, str]:
    """The variables with which a pod reaches the store."""
    return {"S3_ENDPOINT": to.endpoint, "S3_ACCESS_KEY": to.user, "S3_SECRET_KEY": to.password, "S3_REGION": to.region,
            "S3_CA": to.ca}  # fmt: skip


def start(
    folder: Path, certs: Path, ca: str = "", *, user: str = USER, password: str = PASSWORD, port: int = 0, **env: str
) -> tuple[processes.Server, Server]:
    """Start a server and wait until it answers. `port` 0: a free one; `env`: further variables."""
    port, scheme = port or processes.free_ports(1)[0], "https" if ca else "http"
    folder.mkdir(parents=True, exist_ok=True)
    env = {"MINIO_ROOT_USER": user, "MINIO_ROOT_PASSWORD": password, "HOME": str(folder), **env}
    env |= {"MINIO_BROWSER": "off", "MINIO_UPDATE": "off"}
    argv = [tools.binary("minio"), "server", folder, "--address", f"127.0.0.1:{port}", "--certs-dir", certs]
    process = processes.Server(argv, folder.with_suffix(".log"), env)
    server = Server(Access(f"{scheme}://127.0.0.1:{port}", user, password, "us-east-1", ca), folder)

    def answers() -> bool:
        with suppress(Exception):
            server.admin.list_buckets()
            return True
        return False

    try:
        process.wait(answers, 30)
    except BaseException:
        process.stop()
        raise
    return process, server
