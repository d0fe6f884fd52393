"""A registry for the cluster: nodes request every image from it first, so a cluster needs no other one.

It runs as a container on kind's network under a fixed name. Its storage is in the cache: earlier pushes are
there in the next run.
"""

import json
import threading
import time
import urllib.error
from collections.abc import Callable
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT, cache_dir
from trainyard_dev import proxies
from trainyard_dev.engine import Engine
from trainyard_dev.images.build import build, content_key
from trainyard_dev.versions import Image

NAME = "trainyard-registry"
NETWORK = "kind"  # network of every kind cluster
PORT = 5000
LABEL = "io.trainyard.role=registry"
CONFIG = ROOT / "images/registry/config.yml"  # included in our image, and mounted over that of a pulled one
_RECORD = threading.Lock()  # images are pushed by several threads


def start(engine: Engine, network: str, image: Callable[[], str]) -> str:
    """Starts the registry unless it is running; creates the network if it is missing.

    Args:
        image: returns the reference of the program's image; called only if a container must be started.

    Returns:
        the registry's address for this machine, as host:port.
    """
    if engine("network", "inspect", network, check=False).returncode:
        engine("network", "create", network)
    state = engine("inspect", "--format", "{{.State.Status}}", NAME, check=False).stdout.strip()
    if state != "running":
        if state:
            engine("rm", "-f", NAME)
        flags = ["--name", NAME, "--label", LABEL, "--network", network, "-p", f"127.0.0.1::{PORT}"]
        flags += ["-v", f"{storage()}:/var/lib/registry", "-v", f"{CONFIG}:/etc/distribution/config.yml:ro"]
        engine("run", "-d", *flags, image())
    found = address(engine)
    _wait(found)
    return found


def address(engine: Engine) -> str:
    """The running registry's address for this machine, as host:port."""
    return engine("port", NAME, f"{PORT}/tcp").stdout.split()[0]


def stop(engine: Engine) -> None:
    """Removes the registry's container; its storage stays in the cache."""
    engine("rm", "-f", "-v", NAME, check=False)


def storage() -> Path:
    """The folder with the registry's blobs."""
    folder = cache_dir() / "registry"
    folder.mkdir(exist_ok=True)
    return folder


def repositories() -> Path:
    """The folder of the registry's repositories, by their paths."""
    return storage() / "docker/registry/v2/repositories"


def repository(ref: str) -> tuple[str, str]:
    """(repository, tag) under which a mirror serves `ref`: the reference without its host.

    >>> repository("registry.k8s.io/coredns/coredns:v1.14.2")
    ('coredns/coredns', 'v1.14.2')
    """
    path, _, tag = ref.partition("/")[2].rpartition(":")
    return path, tag


def is_pushed(image: Image, base: str) -> bool:
    """Whether the registry's storage has exactly this content of the image."""
    return _pushed().get(image.name) == content_key(image, base) and all(
        _manifest_link(ref).exists() for ref in (image.ref, *image.also)
    )


def digest(ref: str) -> str:
    """Digest that the registry's storage has for a reference; "" for none."""
    link = _manifest_link(ref)
    return link.read_text().strip() if link.exists() else ""


def push(engine: Engine, image: Image, base: str, address: str) -> None:
    """Builds the image if need be and pushes it under its reference and further tags."""
    local = build(engine, image, base)
    for ref in (image.ref, *image.also):
        path, tag = repository(ref)
        push_as(engine, local, f"{address}/{path}:{tag}")
    with _RECORD:
        held = _pushed() | {image.name: content_key(image, base)}
        _pushed_file().write_text(json.dumps(held, indent=1, sort_keys=True))


def push_as(engine: Engine, local: str, target: str) -> None:
    """Pushes an image of the engine's store to `host:port/repository:tag`."""
    if engine.name == "docker":  # the daemon accepts plain HTTP from loopback addresses
        engine("tag", local, target)
        engine("push", target)
        return
    # zstd unpacks several times faster than gzip, and every node unpacks what it runs.
    engine("push", "--tls-verify=false", "--format", "oci", "--compression-format", "zstd", local, f"docker://{target}")


def mirror_config(folder: Path) -> Path:
    """Writes containerd's hosts folder: every image is requested here first, then from its origin."""
    target = folder / "_default"
    target.mkdir(parents=True, exist_ok=True)
    (target / "hosts.toml").write_text(
        f'[host."http://{NAME}:{PORT}"]\n  capabilities = ["pull", "resolve"]\n  skip_verify = true\n'
    )
    return folder


def _manifest_link(ref: str) -> Path:
    path, tag = repository(ref)
    return repositories() / path / "_manifests/tags" / tag / "current/link"


def _pushed_file() -> Path:
    return storage() / "pushed.json"


def _pushed() -> dict[str, str]:
    try:
        return json.loads(_pushed_file().read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def _wait(address: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with proxies.open_url(f"http://{address}/v2/", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise TrainyardError(f"the registry does not answer at {address}", hint=f"see its log: podman logs {NAME}")
