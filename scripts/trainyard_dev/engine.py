"""The container engine that kind runs its nodes on: Docker or podman, behind one interface."""

import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import cache_dir
from trainyard.shell import run

INSTALL = "apt-get install -y --no-install-recommends podman runc netavark aardvark-dns iptables conntrack"
BUILDX = "apt-get install -y docker-buildx-plugin   # docker-buildx in Ubuntu's own archive"
BUILDX_SINCE = 23  # before this version BuildKit's client is part of Docker's


@dataclass(frozen=True)
class Engine:
    """`name` is docker or podman; every call goes through its command line."""

    name: str

    @cached_property
    def env(self) -> dict[str, str]:
        """Variables that the engine and kind need; for podman, a configuration that needs no extra rights.

        Containerfiles mount secrets during builds: Docker supports that only with BuildKit, its default since 23.
        """
        if self.name == "docker":
            return {"DOCKER_BUILDKIT": "1"}
        return {"CONTAINERS_CONF": str(_podman_conf()), "KIND_EXPERIMENTAL_PROVIDER": "podman"}

    def __call__(
        self,
        *argv: str | Path,
        check: bool = True,
        timeout: float | None = None,
        input: str | None = None,
        hint: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Runs one command of the engine."""
        return run([self.name, *argv], env=self.env, check=check, timeout=timeout, input=input, hint=hint)

    def exec(
        self,
        container: str,
        argv: Sequence[str],
        *,
        check: bool = True,
        timeout: float | None = None,
        input: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs `argv` inside a running container."""
        flags = ["-i"] if input is not None else []
        return self("exec", *flags, container, *argv, check=check, timeout=timeout, input=input)

    def has_image(self, ref: str) -> bool:
        """Whether the engine's own store holds the image."""
        return self("image", "inspect", "--format", "{{.Id}}", ref, check=False).returncode == 0

    def containers(self, label: str) -> list[str]:
        """Names of all containers, running or not, that carry the label."""
        listed = self("ps", "-a", "--filter", f"label={label}", "--format", "{{.Names}}").stdout
        return sorted(listed.split())


def check_builder(engine: Engine) -> None:
    """Raises TrainyardError where the engine can't build our images: Docker from 23 on without its buildx."""
    if engine.name != "docker":
        return
    version = engine("version", "--format", "{{.Client.Version}}", check=False, timeout=30).stdout
    if needs_buildx(version) and engine("buildx", "version", check=False, timeout=30).returncode:
        raise TrainyardError(f"docker {version.strip()} cannot build images without buildx", hint=f"`{BUILDX}`")


def needs_buildx(version: str) -> bool:
    """Whether a Docker of this version needs a plugin to build with BuildKit."""
    major = version.strip().partition(".")[0]
    return major.isdigit() and int(major) >= BUILDX_SINCE


def is_shim(said: str) -> bool:
    """Whether the output of `docker -v` is not Docker's: podman installs a replacement of that name."""
    return not any(line.startswith("Docker version") for line in said.splitlines())


def find(wanted: str = "auto") -> Engine:
    """Returns the engine to use: the requested one, else the first of Docker and podman whose service answers.

    Raises:
        TrainyardError: none is installed, or none answers; names the command that fixes it.
    """
    names = ["docker", "podman"] if wanted == "auto" else [wanted]
    failures = []
    for name in names:
        if not shutil.which(name):
            failures.append(f"{name} is not installed")
            continue
        engine = Engine(name)
        probe = (
            ["version", "--format", "{{.Server.Version}}"]
            if name == "docker"
            else ["info", "--format", "{{.Version.Version}}"]
        )
        try:
            if name == "docker" and is_shim(engine("-v", check=False, timeout=30).stdout):
                failures.append("`docker` is another program, such as podman's")
                continue
            answer = engine(*probe, check=False, timeout=30)
        except TrainyardError as error:
            failures.append(error.what)
            continue
        if answer.returncode == 0 and answer.stdout.strip():
            return engine
        last = (answer.stderr.strip().splitlines() or ["no answer"])[-1]
        failures.append(f"{name} does not answer ({last})")
    raise TrainyardError(
        "no container engine: " + "; ".join(failures), hint=f"start the Docker service, or install podman: `{INSTALL}`"
    )


def _podman_conf() -> Path:
    """Writes podman's configuration: limits no higher than this process may set, runc, netavark.

    crun refuses the mixed cgroup mounts of some machines, and a limit above the hard one refuses every container
    where the process may not raise it.
    """
    nofile = min(_hard(resource.RLIMIT_NOFILE), 1048576)
    nproc = min(_hard(resource.RLIMIT_NPROC), 30000)
    lines = [
        "[containers]",
        f'default_ulimits = ["nofile={nofile}:{nofile}", "nproc={nproc}:{nproc}"]',
        "[engine]",
        *(['runtime = "runc"'] if shutil.which("runc") else []),
        "[network]",
        'network_backend = "netavark"',
        "",
    ]
    path = cache_dir() / "containers.conf"
    text = "\n".join(lines)
    if not path.exists() or path.read_text() != text:
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(text)
        part.rename(path)
    return path


def _hard(limit: int) -> int:
    hard = resource.getrlimit(limit)[1]
    return 2**31 if hard == resource.RLIM_INFINITY else hard
