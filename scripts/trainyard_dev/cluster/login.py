"""A test cluster whose API server accepts tokens of an issuer: off by default, configured by a file that may change."""

import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from trainyard.paths import cache_dir
from trainyard_dev.cluster.nodes import Mount
from trainyard_dev.engine import Engine

AT = "/etc/trainyard-login"  # path in the control plane's node, and in the API server's pod
FILE = "authentication.yaml"
PORT = 30556  # the port of the tests' issuer on every node
# Before there is an issuer: the API server needs a file to start, and reads it again when it changes.
NOBODY = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": []}
CONTROL_PLANE = "control-plane"


def folder(cluster: str) -> Path:
    """The folder that is AT in the control plane's node: a folder, since a mounted file would never change."""
    return cache_dir() / "clusters" / cluster / "login"


def prepared(cluster: str) -> Mount:
    """The folder with a file that trusts no issuer, as a mount of the control plane's node."""
    publish(cluster, yaml.safe_dump(NOBODY))
    return Mount(folder(cluster), AT)


def patch() -> dict[str, Any]:
    """kubeadm's patch for its API server."""
    volume = {"name": "login", "hostPath": AT, "mountPath": AT, "readOnly": True, "pathType": "Directory"}
    server = {"extraArgs": {"authentication-config": f"{AT}/{FILE}"}, "extraVolumes": [volume]}
    return {"kind": "ClusterConfiguration", "apiServer": server}


def publish(cluster: str, text: str) -> None:
    """Replaces the API server's configuration atomically; it is effective within a minute."""
    place = folder(cluster)
    place.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".new-", dir=place)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    Path(name).chmod(0o644)
    os.replace(name, place / FILE)


def is_on(cluster: str) -> bool:
    """Whether the cluster was made with log-in."""
    return (folder(cluster) / FILE).is_file()


def issuer(engine: Engine, cluster: str) -> str:
    """An address of the tests' issuer that works for this machine's browsers, for pods and for the API server."""
    node = f"{cluster}-{CONTROL_PLANE}"
    found = engine("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}", node).stdout
    return f"https://{found.split()[0]}:{PORT}/dex"
