"""Requirements of training-operator and Kubernetes for jobs. Volcano has its own module."""

import re
from collections.abc import Iterator

from trainyard.contract import Contract, Team
from trainyard.kinds import registry
from trainyard.policy.lint.pods import Object, Pod, distinct
from trainyard.policy.lint.report import Issue

UNNAMED = ("mpi",)  # this operator uses the first container, whatever its name
MASTERS = ("Master",)
BEYOND = re.compile(r"^[0-9]|\.")  # allowed in names of other objects, but not of services


def training(obj: Object, pods: list[Pod], contract: Contract, team: Team) -> Iterator[Issue]:
    """Jobs of training-operator: their names, the container that the operator expects, and the single master."""
    known, kind = registry.of_object(obj), str(obj.get("kind"))
    if known is None or known.part != registry.OPERATOR:
        return
    name = (obj.get("metadata") or {}).get("name")
    if isinstance(name, str) and BEYOND.search(name):
        what = f"{name!r} is invalid as the name of a {kind}: its pods and Services use the name"
        yield "TY109", ("metadata", "name"), what, "use lower-case letters, digits and hyphens, starting with a letter"
    for pod in distinct(pods):
        names = [one.get("name") for one in pod.spec.get("containers") or [] if isinstance(one, dict)]
        wanted = "" if known.container in UNNAMED else known.container
        if wanted and names and wanted not in names:
            what = f"role {pod.role} has no container named {wanted}, which the operator needs"
            yield "TY109", (*pod.spec_path, "containers", 0, "name"), what, f"rename the training container to {wanted}"
        if pod.role == known.single and pod.role in MASTERS and pod.count != 1:
            path = (*pod.path[:-1], "replicas")
            yield "TY109", path, f"the job has {pod.count} masters", "use one Master, and Workers for the rest"


def kubernetes(obj: Object, pods: list[Pod], contract: Contract, team: Team) -> Iterator[Issue]:
    """Jobs and CronJobs whose restart policy would never let their pods end."""
    if str(obj.get("apiVersion")) != "batch/v1":
        return
    for pod in pods:
        if pod.spec.get("restartPolicy") not in ("Never", "OnFailure"):
            what = f"a {obj['kind']} must have a restartPolicy"
            yield "TY109", (*pod.spec_path, "restartPolicy"), what, "set restartPolicy to Never or OnFailure"


RULES = (training, kubernetes)
