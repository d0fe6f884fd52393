"""Applies a finding's hint; what only a person can decide gets a plain choice, and is counted."""

import re
from collections.abc import Callable
from typing import Any

from trainyard.contract import Contract, Team
from trainyard.names import QUEUE
from trainyard.policy.lint import Finding
from trainyard_dev.corpus import edit
from trainyard_dev.corpus.edit import Path

Object = dict[str, Any]
SET = re.compile(r"\bset ([\w./-]+)(?: in [^:]*?)? to (?:one of )?([\w./-]+)")
POD = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
CONTAINERS = ("containers", "initContainers")
STEPS = ("container", "script")
AMOUNTS = {"cpu": "1", "memory": "1Gi"}
DAY, HOUR = 86400, 3600


class Fixer:
    """Fixes of one object. Each receives the finding and the path of its field, and returns how many edits it took."""

    def __init__(self, obj: Object, contract: Contract, team: Team) -> None:
        self.obj, self.contract, self.team = obj, contract, team
        self.image = contract.images["trainerTorch"]

    def fix(self, finding: Finding) -> int:
        """Applies the fix. 0: the hint leaves it to a person, or names nothing that can be written."""
        function = BY_CODE.get(finding.code)
        if function is None:
            return 0
        holder, path, inside = edit.split(self.obj, edit.parse(finding.field))
        whole, self.obj = self.obj, holder
        try:
            done = function(self, finding, path)
        finally:
            self.obj = whole
        if inside and done:
            edit.put(self.obj, inside[0], inside[1].text)
        return done

    def value(self, finding: Finding, path: Path) -> int:
        """Sets the field to the value that the hint names."""
        match = SET.search(finding.hint)
        if not match:
            return 0
        value: Any = match[2]
        if value.isdigit():
            value = min(int(value), HOUR if "ttl" in match[1].lower() else DAY)
        elif value in ("true", "false"):
            value = value == "true"
        key = match[1].rpartition(".")[2]
        edit.put(self.obj, path if path[-1] == key else (*path, key), value)
        return 1

    def queue(self, finding: Finding, path: Path) -> int:
        """Sets the queue annotation of pods, wherever the object has a pod template."""
        spec = self.obj["spec"]
        inner = spec.get("workflowSpec") or (spec.get("jobTemplate") or {}).get("spec") or spec
        if "argoproj" in str(self.obj.get("apiVersion")):
            edit.put(inner, ("podMetadata", "annotations", QUEUE), self.team.name)
        elif "template" in inner:
            edit.put(inner, ("template", "metadata", "annotations", QUEUE), self.team.name)
        else:
            edit.put(self.obj, ("metadata", "annotations", QUEUE), self.team.name)
        return 1

    def namespace(self, finding: Finding, path: Path) -> int:
        """Removes the namespace."""
        return int(edit.drop(self.obj, path))

    def version(self, finding: Finding, path: Path) -> int:
        """Sets another version of the same kind."""
        _, wanted, version = finding.hint.partition("use apiVersion: ")
        if wanted:
            self.obj["apiVersion"] = version
        return int(bool(wanted))

    def picture(self, finding: Finding, path: Path) -> int:
        """Replaces the image by one of the platform's; which one is for a person to decide."""
        edit.put(self.obj, path if path[-1] == "image" else (*path, "image"), self.image)
        return 1

    def bounds(self, finding: Finding, path: Path) -> int:
        """Applies a hint about a Workflow's limits, names, patches or namespaces."""
        said = finding.hint
        if "ttlStrategy" in said:
            edit.put(self.obj, (*path[:-1], "secondsAfterCompletion") if len(path) > 2 else path, HOUR)
        elif "begin with" in said:
            edit.put(self.obj, path, f"{self.team.name}.{str(edit.get(self.obj, path) or 'cache').lower()}")
        elif "podSpecPatch" in said:
            return edit.drop_all(self.obj, "podSpecPatch") + edit.drop_all(self.obj, "hostNetwork")
        elif "remove namespace" in said:
            return edit.drop_all(self.obj["spec"], "namespace")
        else:
            return self.value(finding, path)
        return 1

    def gang(self, finding: Finding, path: Path) -> int:
        """Makes the whole job a gang, whose tasks start together."""
        spec = self.obj["spec"]
        if "dependsOn" in finding.hint:
            return sum(edit.drop(task, ("dependsOn",)) for task in spec.get("tasks") or [])
        for task in spec.get("tasks") or []:
            task.pop("minAvailable", None)
        return int(edit.drop(self.obj, path)) or 1

    def security(self, finding: Finding, path: Path) -> int:
        """Sets the hint's security context in the pod and in each container."""
        pod = edit.get(self.obj, path)
        if not isinstance(pod, dict):
            return 0
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            pod.pop(key, None)
        found = [one for key in CONTAINERS for one in pod.get(key) or []]
        found += [pod[key] for key in STEPS if pod.get(key)] + list(pod.get("sidecars") or [])
        found += (pod.get("containerSet") or {}).get("containers") or []
        pod["securityContext"] = {**(pod.get("securityContext") or {}), **POD}
        for container in found:
            own = dict(container.get("securityContext") or {})
            for key in ("privileged", *(POD if own.get("runAsUser") == 0 or own.get("runAsNonRoot") is False else ())):
                own.pop(key, None)
            container["securityContext"] = {**own, **CONTAINER}
            for port in container.get("ports") or []:
                port.pop("hostPort", None)
        return 1 + len(found)

    def amounts(self, finding: Finding, path: Path) -> int:
        """Sets requests and limits of a container with GPUs, which are equal; a person decides the numbers."""
        given = edit.get(self.obj, path) or {}
        both = {**(given.get("requests") or {}), **(given.get("limits") or {})}
        gpus = {key: value for key, value in both.items() if key in self.contract.gpu_resources}
        edit.put(self.obj, path, {key: {**AMOUNTS, **(given.get(key) or {}), **gpus} for key in ("requests", "limits")})
        return 1

    def device(self, finding: Finding, path: Path) -> int:
        """Replaces the device by one of the platform's."""
        holder = edit.get(self.obj, path[:-2])
        for key in ("requests", "limits"):
            if (holder.get(key) or {}).pop(path[-1], None) is not None:
                holder[key][self.contract.gpu_resource] = 1
        return 1

    def priority(self, finding: Finding, path: Path) -> int:
        """Sets a priority class of the team's."""
        if "use " not in finding.hint:
            return self.value(finding, path)
        edit.put(self.obj, path, self.team.priority_classes[-1])
        return 1

    def gone(self, finding: Finding, path: Path) -> int:
        """Removes what the hint says to remove."""
        return int(edit.drop(self.obj, path))

    def tolerations(self, finding: Finding, path: Path) -> int:
        """Tolerates the taint of GPU nodes; or removes a selector of nodes that don't exist."""
        if path[-1] != "tolerations":
            return int(edit.drop(self.obj, path))
        pool = self.contract.gpu_pools[0]
        edit.put(self.obj, path, [*(edit.get(self.obj, path) or []), *pool.tolerations])
        return 1

    def scratch(self, finding: Finding, path: Path) -> int:
        """Replaces a host's or an NFS server's folder by an empty one."""
        volume = path[: max((index for index, part in enumerate(path) if isinstance(part, int)), default=-1) + 1]
        held = edit.get(self.obj, volume)
        if not isinstance(held, dict) or "name" not in held:
            return 0
        edit.put(self.obj, volume, {"name": held["name"], "emptyDir": {}})
        return 1

    def claim(self, finding: Finding, path: Path) -> int:
        """Sets a storage class of the teams'."""
        if "storageClassName" in finding.hint and "annotation" not in finding.reason:
            edit.put(self.obj, path, self.contract.shared_class)
            return 1
        return int(edit.drop(self.obj, path))

    def shape(self, finding: Finding, path: Path) -> int:
        """Renames a field to its right name, or removes it."""
        _, meant, name = finding.hint.partition("did you mean ")
        if meant:
            edit.put(self.obj, (*path[:-1], name), edit.get(self.obj, path))
        if meant or finding.hint == "remove it":
            return int(edit.drop(self.obj, path))
        if finding.hint.startswith("write it in quotes"):
            edit.put(self.obj, path, str(edit.get(self.obj, path)))
            return 1
        return 0

    def operator(self, finding: Finding, path: Path) -> int:
        """Corrects what an operator's admission refuses, where the hint says how."""
        if "restartPolicy" in finding.hint:
            edit.put(self.obj, path, "Never")
        elif "wait-master-enabled" in finding.hint:
            kept = [word for word in edit.get(self.obj, path) if "wait-master" not in word]
            edit.put(self.obj, path, kept)
        elif "rename the training container" in finding.hint:
            edit.put(self.obj, path, finding.hint.rpartition(" ")[2])
        elif finding.hint in ("remove minAvailable", "keep one of them", "keep only that policy"):
            return int(edit.drop(self.obj, path))
        elif "a name of its own" in finding.hint:
            edit.put(self.obj, path, f"{edit.get(self.obj, path) or 'task'}-{path[-2]}")
        else:
            return 0
        return 1


BY_CODE: dict[str, Callable[[Fixer, Finding, Path], int]] = {
    **dict.fromkeys(("p02", "p05", "p06", "p12", "p13", "p16"), Fixer.value),
    "p01": Fixer.amounts, "p03": Fixer.queue, "p07": Fixer.priority, "p09": Fixer.gone, "p10": Fixer.gone,
    "p11": Fixer.gone, "p15": Fixer.scratch, "p17": Fixer.picture, "p21": Fixer.bounds, "p22": Fixer.gang,
    "p24": Fixer.claim, "p30": Fixer.device, "TY105": Fixer.shape, "TY106": Fixer.version, "TY109": Fixer.operator,
    "TY408": Fixer.tolerations, "TY505": Fixer.namespace, "TY601": Fixer.security,
}  # fmt: skip
# Codes whose fix a person must decide, though the script does something plain: the image, amounts, data.
PERSONAL = frozenset(("p01", "p07", "p11", "p15", "p17", "p30", "TY106", "TY109"))
