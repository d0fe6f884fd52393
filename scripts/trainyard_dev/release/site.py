"""A site to take a release: an empty cluster, a registry with TLS, and a machine that reaches these two alone."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from trainyard.paths import ROOT, cache_dir
from trainyard.shell import run
from trainyard_dev import tools
from trainyard_dev.cluster import environment, lifecycle
from trainyard_dev.engine import Engine
from trainyard_dev.images import registry, source
from trainyard_dev.images.base import OLDER, of_suite

HOST = "registry.example.org"
PREFIX = f"{HOST}/gpu"
TEAM = "vision"
NAME = "trainyard-release-site"  # of the registry's container, the machine's, and the network between them
PROGRAMS = ("kubectl", "helm", "cosign")
CONTROL_PLANE = "control-plane"


@dataclass(frozen=True)
class Site:
    """A running site. `storage` is the folder of the registry's blobs, `port` its port on 127.0.0.1."""

    engine: Engine
    cluster: str
    storage: Path
    port: int

    @property
    def local(self) -> str:
        """The registry's address for this machine."""
        return f"127.0.0.1:{self.port}/{PREFIX.partition('/')[2]}"

    def type(self, command: str, **variables: str) -> str:
        """What a command prints on the site's machine. Raises CommandError if it fails."""
        env = [f"{name}={value}" for name, value in variables.items()]
        shell = ["env", *env, "bash", "-euo", "pipefail", "-c", command]
        return self.engine.exec(f"{NAME}-machine", shell).stdout

    def node(self, *argv: str) -> str:
        """What a command prints on a node. Raises CommandError if it fails."""
        return self.engine.exec(f"{self.cluster}-worker", argv).stdout


@contextmanager
def running(engine: Engine, cluster: str, work: Path, files: dict[str, str]) -> Iterator[Site]:
    """Yields the site, whose machine has these files in its folder; removes all of it afterwards.

    Args:
        work: an empty folder for certificates and the registry's storage.
    """
    chosen = source.choose("auto")
    base = chosen.base(engine)
    _remove(engine, cluster)  # what an interrupted run left
    try:
        lifecycle.up(engine, lifecycle.Options(cluster, chosen))
        port = _registry(engine, chosen.registry_image(engine, base), work)
        _trust(work / "tls/tls.crt")
        _machine(engine, of_suite(base, OLDER), cluster, work, files)
        yield Site(engine, cluster, work / "storage", port)
    finally:
        _remove(engine, cluster)


def _remove(engine: Engine, cluster: str) -> None:
    for part in ("machine", "registry"):
        engine("rm", "-f", "-v", f"{NAME}-{part}", check=False)
    lifecycle.down(engine, cluster)
    engine("network", "rm", "-f", NAME, check=False)
    shutil.rmtree(_hosts(), ignore_errors=True)


def _registry(engine: Engine, image: str, work: Path) -> int:
    """Starts an empty registry under HOST, for the cluster's nodes and for the machine; returns its port here."""
    for folder in ("storage", "tls"):
        (work / folder).mkdir()
    run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", work / "tls/tls.key", "-out", work / "tls/tls.crt", "-subj", f"/CN={HOST}",
         "-addext", f"subjectAltName=DNS:{HOST},IP:127.0.0.1"], hint="apt-get install openssl")  # fmt: skip
    settings = {"ADDR": ":443", "TLS_CERTIFICATE": "/tls/tls.crt", "TLS_KEY": "/tls/tls.key"}
    env = [word for name, value in settings.items() for word in ("--env", f"REGISTRY_HTTP_{name}={value}")]
    engine("network", "create", "--internal", NAME)
    engine("run", "-d", "--name", f"{NAME}-registry", "--network", registry.NETWORK, "--network-alias", HOST,
           "-p", "127.0.0.1::443", "-v", f"{work / 'tls'}:/tls:ro", "-v", f"{work / 'storage'}:/var/lib/registry",
           "-v", f"{registry.CONFIG}:/etc/distribution/config.yml:ro", *env, image)  # fmt: skip
    engine("network", "connect", "--alias", HOST, NAME, f"{NAME}-registry")
    return int(engine("port", f"{NAME}-registry", "443/tcp").stdout.split()[0].rpartition(":")[2])


def _hosts() -> Path:
    return cache_dir() / "containerd-hosts" / HOST  # nodes have the parent folder as containerd's settings


def _trust(certificate: Path) -> None:
    """Lets the nodes' containerd accept the registry's certificate, as a site's engineer would."""
    _hosts().mkdir(parents=True, exist_ok=True)
    shutil.copy(certificate, _hosts() / "ca.crt")
    text = f'server = "https://{HOST}"\n[host."https://{HOST}"]\n  ca = "/etc/containerd/certs.d/{HOST}/ca.crt"\n'
    (_hosts() / "hosts.toml").write_text(text)


def _machine(engine: Engine, base: str, cluster: str, work: Path, files: dict[str, str]) -> None:
    """Starts the machine, on a network with the registry and the API server alone."""
    context = work / "machine"
    (context / "bin").mkdir(parents=True)
    for program in PROGRAMS:
        shutil.copy(tools.binary(program), context / "bin")
    folder = Path(__file__).parent / "taker"
    tag = f"localhost/trainyard/{NAME}"
    engine(
        "build", "--network", "host", "-t", tag, "-f", folder / "Containerfile", "--build-arg", f"BASE={base}", context
    )
    plane = f"{cluster}-{CONTROL_PLANE}"
    engine("network", "connect", "--alias", plane, NAME, plane)
    at = work / "site"
    shutil.copytree(ROOT / "examples" / "ddp", at / "job")
    for name, text in files.items():
        (at / name).write_text(text)
    shutil.copy(work / "tls/tls.crt", at / "ca.crt")
    admin = lifecycle.kubeconfig(cluster)
    for name, file in {"admin": admin, "member": environment.member(admin, TEAM)}.items():
        config = json.dumps(_internal(file, plane))
        (at / name).write_text(config)
    engine("run", "-d", "--name", f"{NAME}-machine", "--network", NAME, "-v", f"{at}:/site",
           "--env", "SSL_CERT_FILE=/site/ca.crt", "--env", "KUBECONFIG=/site/admin", tag)  # fmt: skip


def _internal(kubeconfig: Path, plane: str) -> dict[str, object]:
    """A kubeconfig that names the API server as machines on its network do."""
    config: dict[str, list[dict[str, dict[str, str]]]] = yaml.safe_load(kubeconfig.read_text())
    for one in config["clusters"]:
        one["cluster"]["server"] = f"https://{plane}:6443"
    return dict(config)
