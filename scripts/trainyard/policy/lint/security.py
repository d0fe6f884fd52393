"""Requirements of Pod Security's level `restricted` for a pod, and for its image's user."""

from collections.abc import Callable, Iterator

from trainyard.contract import Contract, Team
from trainyard.policy.lint.pod_rules import name_of
from trainyard.policy.lint.pods import Object, Pod, mapping
from trainyard.policy.lint.report import Issue

POD = "{runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}"
CONTAINER = "{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"
HINT = f"write securityContext: {POD} in the pod's spec, and securityContext: {CONTAINER} in each container"


def restricted(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Violations of Pod Security's level restricted."""
    spec, own = pod.spec, pod.spec.get("securityContext") or {}
    lacks = [f"remove {key}" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    for container, _ in pod.containers():
        context = container.get("securityContext") or {}
        wanted = [text for test, text in CONTAINER_TESTS if not test(context, own)]
        if any(mapping(port).get("hostPort") for port in container.get("ports") or []):
            wanted.append("no hostPort")
        if wanted:
            lacks.append(f"{name_of(container)} needs {', '.join(wanted)}")
    if lacks:
        what = f"Pod Security would refuse the pod: {'; '.join(lacks)}"
        yield "TY601", pod.spec_path, what, HINT


def _capabilities(context: Object) -> bool:
    found = mapping(context.get("capabilities"))
    return "ALL" in (found.get("drop") or []) and set(found.get("add") or []) <= {"NET_BIND_SERVICE"}


def _profile(context: Object) -> bool:
    return mapping(context.get("seccompProfile")).get("type") in ("RuntimeDefault", "Localhost")


CONTAINER_TESTS: tuple[tuple[Callable[[Object, Object], bool], str], ...] = (
    (lambda c, p: not c.get("privileged"), "privileged false"),
    (lambda c, p: c.get("allowPrivilegeEscalation") is False, "allowPrivilegeEscalation: false"),
    (lambda c, p: _capabilities(c), "capabilities: {drop: [ALL]}"),
    (lambda c, p: c.get("runAsNonRoot", p.get("runAsNonRoot")) is True, "runAsNonRoot: true"),
    (lambda c, p: c.get("runAsUser", p.get("runAsUser")) != 0, "a runAsUser other than 0"),
    (
        lambda c, p: _profile(c) or (not c.get("seccompProfile") and _profile(p)),
        "seccompProfile: {type: RuntimeDefault}",
    ),
)


def root_images(pod: Pod, contract: Contract, team: Team) -> Iterator[Issue]:
    """Images that may run as root while the pod sets no other user: the kubelet then refuses to start the container."""
    own = mapping(pod.spec.get("securityContext"))
    place = contract.images.values()
    for container, path in pod.containers():
        context, image = mapping(container.get("securityContext")), str(container.get("image") or "")
        asked = context.get("runAsNonRoot", own.get("runAsNonRoot")) is True
        named = context.get("runAsUser", own.get("runAsUser")) is not None
        if asked and not named and image and image not in place:
            what = f"{name_of(container)}: if {image} runs as root, or as a user by name, kubelet does not start it"
            hint = (
                "write runAsUser: 1000 in the pod's securityContext, and let the program write below /tmp or a volume"
            )
            yield "TY602", (*path, "image"), what, hint


RULES = (restricted, root_images)
