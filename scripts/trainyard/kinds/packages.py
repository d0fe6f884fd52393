"""What a folder's requirements.txt names: init containers that bring it into a pod, and how the command finds it.

Three in a row, since pip must run in the job's own image and what speaks to the store is in the platform's:
`trainyard-fetch` lays out pip and what was installed before, `trainyard-packages` installs what is new, and
`trainyard-keep` puts that into the team's folder of the store for later runs.
"""

from collections.abc import Mapping
from typing import Any

from trainyard.kinds.team_config import BUCKET

Object = dict[str, Any]
BASE = "/trainyard"
PACKAGES, TOOLS = f"{BASE}/packages", f"{BASE}/.packages"
INSTALL, KEEP = "trainyard-packages", "trainyard-keep"
LABEL = {"trainyard.io/packages": "true"}  # pods that the network policy lets to the index
WHEELS = f"{BUCKET}/shared/wheels"  # of the platform, for all teams
FILES = "REQUIREMENT_FILES"  # their texts by name, as JSON, where no code is sent that they are part of
USER_BASE: Object = {"name": "PYTHONUSERBASE", "value": PACKAGES}  # every Python of the pod looks there
OF_IMAGE = ("python", "python3", "sh", "bash", "mpirun", "mpiexec", "horovodrun")  # programs that no package brings
MEMORY, LEAST = "2Gi", "256Mi"


def key(team: str, digest: str) -> str:
    """Where the packages of some requirements are, in the bucket for runs."""
    return f"{team}/packages/{digest}.tar.gz"


def started(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command, found among programs of its packages: `accelerate launch train.py`. Python needs no help."""
    first = command[0]
    if "/" in first or first in OF_IMAGE:
        return command
    return ("sh", "-c", 'PATH="$PYTHONUSERBASE/bin:$PATH" exec "$0" "$@"', *command)


def fetched(requirements: str, packages: str) -> list[str]:
    """Words for the container that fetches: what to lay out."""
    return [f"--base={BASE}", f"--requirements={requirements}", f"--packages={BUCKET}/{packages}", f"--wheels={WHEELS}"]


def kept(code: str, packages: str) -> list[str]:
    """Words for the container that keeps what was installed."""
    return ["keep", f"--from={code}", f"--base={BASE}", f"--packages={BUCKET}/{packages}"]


def index_environment(site: Mapping[str, Any]) -> list[Object]:
    """The site's index, for the container that lays out: no secret."""
    found = [("INDEX_URL", site.get("index")), ("INDEX_CA", site.get("ca"))]
    return [{"name": name, "value": str(value)} for name, value in found if value]


def install(image: str, site: Mapping[str, Any], closed: Object, hidden: Object, memory: str) -> Object:
    """The container that installs, in the image of the job.

    Args:
        site: `packages` of the contract.
        closed: the security context of a container.
        hidden: the variable that hides GPUs.
        memory: what it may have.
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
