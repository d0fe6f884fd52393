"""Packages from a folder's requirements.txt: the init containers that install them, and their lookup by the command.

Three containers in a row, since pip must run in the job's own image and the store's client is in the platform's:
`trainyard-fetch` unpacks pip and earlier installations, `trainyard-packages` installs new packages, and
`trainyard-keep` saves them to the team's folder of the store for later runs.
"""

from collections.abc import Mapping
from typing import Any

from trainyard.kinds.team_config import BUCKET

Object = dict[str, Any]
BASE = "/trainyard"
PACKAGES, TOOLS = f"{BASE}/packages", f"{BASE}/.packages"
INSTALL, KEEP = "trainyard-packages", "trainyard-keep"
LABEL = {"trainyard.io/packages": "true"}  # label of pods that the network policy allows to reach the index
WHEELS = f"{BUCKET}/shared/wheels"  # the platform's, for all teams
FILES = "REQUIREMENT_FILES"  # variable with the requirement files by name, as JSON, if the code isn't sent
USER_BASE: Object = {"name": "PYTHONUSERBASE", "value": PACKAGES}  # every Python of the pod searches there
OF_IMAGE = ("python", "python3", "sh", "bash", "mpirun", "mpiexec", "horovodrun")  # programs that no package provides
MEMORY, LEAST = "2Gi", "256Mi"


def key(team: str, digest: str) -> str:
    """Key of the packages of some requirements, in the bucket for runs."""
    return f"{team}/packages/{digest}.tar.gz"


def started(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command, searched among the programs of its packages: `accelerate launch train.py`. Python is run as is."""
    first = command[0]
    if "/" in first or first in OF_IMAGE:
        return command
    return ("sh", "-c", 'PATH="$PYTHONUSERBASE/bin:$PATH" exec "$0" "$@"', *command)


def fetched(requirements: str, packages: str) -> list[str]:
    """Arguments of the fetch container."""
    return [f"--base={BASE}", f"--requirements={requirements}", f"--packages={BUCKET}/{packages}", f"--wheels={WHEELS}"]


def kept(code: str, packages: str) -> list[str]:
    """Arguments of the container that saves the installed packages."""
    return ["keep", f"--from={code}", f"--base={BASE}", f"--packages={BUCKET}/{packages}"]


def index_environment(site: Mapping[str, Any]) -> list[Object]:
    """The site's index for the fetch container; contains no secret."""
    found = [("INDEX_URL", site.get("index")), ("INDEX_CA", site.get("ca"))]
    return [{"name": name, "value": str(value)} for name, value in found if value]


def install(image: str, site: Mapping[str, Any], closed: Object, hidden: Object, memory: str) -> Object:
    """The container that installs packages, in the job's image.

    Args:
        site: `packages` of the contract.
        closed: security context of the container.
        hidden: variable that hides GPUs.
        memory: memory of the container.
    """
    env: list[Object] = [{"name": "HOME", "value": "/tmp"}, dict(USER_BASE), dict(hidden)]
    if secret := site.get("secret"):
        for name, part in (("INDEX_USERNAME", "username"), ("INDEX_PASSWORD", "password")):
            env.append({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": part}}})
    return {
        "name": INSTALL,
        "image": image,
        "command": ["python3", f"{TOOLS}/install_packages.py", f"{TOOLS}/plan.json"],
        "workingDir": BASE,
        "env": env,
        "resources": {"requests": {"cpu": "100m", "memory": LEAST}, "limits": {"memory": memory}},
        "securityContext": {**closed, "readOnlyRootFilesystem": True},
        "volumeMounts": [{"name": "trainyard", "mountPath": BASE}, {"name": "tmp", "mountPath": "/tmp"}],
    }
