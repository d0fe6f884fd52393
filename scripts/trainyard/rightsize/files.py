"""A member's own file: the places of its jobs' requests, and the same text with other requests.

Comments, order and every other character are preserved. Supports manifests of all kinds of jobs, and trainyard.yaml.
"""

import copy
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainyard import yaml_edit, yaml_lines
from trainyard.errors import UsageError
from trainyard.kinds import check, registry
from trainyard.kinds.spec import MPI, JobSpec
from trainyard.policy.cel import number
from trainyard.policy.lint import pods
from trainyard.rightsize.proposal import Amounts
from trainyard.rightsize.quantity import CPU, MEMORY, text

Object = dict[str, Any]
Key = tuple[str, str]  # role, container
RESOURCES = (CPU, MEMORY)
MAIN = {kind.container for kind in registry.KINDS}  # containers that run the command
WORKERS = "*"  # all roles that run the command of trainyard.yaml
HINT = "pass the manifest of a job, or trainyard.yaml; pipelines set resources in their Python code"
SETTINGS = {"cpu": str(JobSpec.cpu), "memory": str(JobSpec.memory)}  # defaults of trainyard.yaml


@dataclass
class Place:
    """Place of requests: one container, or several that share one block of the file. `line` is its first line.

    `job` is the job's name, `kind` its kind. `apply` writes new requests and limits to the data of the file.
    """

    job: str
    kind: str
    keys: list[Key]
    line: int
    requests: Mapping[str, float]
    limits: Mapping[str, float]
    apply: Callable[[Amounts], None]
    namespace: str = ""
    least: Mapping[str, float] = field(default_factory=dict)  # lower bounds of a proposal, by resource


@dataclass
class File:
    """One parsed file: its `places` in order, and the data that `edited` writes."""

    name: str
    text: str
    documents: list[Any]
    places: list[Place]

    def edited(self) -> str:
        """The text with the applied changes. Raises TrainyardError if the text can't be edited."""
        return yaml_edit.edited(self.text, self.name, self.documents)


def read(name: str, content: str, job: str = "") -> File:
    """All places of a file with a job's requests.

    Args:
        job: the name of a trainyard.yaml's job, if the file has none.

    Raises:
        UsageError: it is not YAML, or has no such place.
    """
    places: list[Place] = []
    documents = []
    for document in yaml_lines.documents(content, name):
        data = copy.deepcopy(document.data)
        documents.append(data)
        if not isinstance(data, dict):
            raise UsageError("not an object", where=name, hint=HINT)
        if "apiVersion" not in data and "kind" not in data:
            check.validation_errors(document, name)
            places.append(_settings(data, document, job))
        elif data.get("kind") == "List" and isinstance(data.get("items"), list):
            for index, item in enumerate(data["items"]):
                places += _of_object(item, document, ("items", index))
        else:
            places += _of_object(data, document, ())
    if not places:
        raise UsageError("no job in the file requests resources", where=name, hint=HINT)
    return File(name, content, documents, places)


def difference(name: str, old: str, new: str) -> str:
    """A patch from one text to the other, for `git apply` and `patch -p1`; "" if they are equal."""
    path = Path(name)
    shown = path.name if path.is_absolute() else path.as_posix()
    lines = [[f"{line}\n" for line in one.splitlines()] for one in (old, new)]
    return "".join(difflib.unified_diff(lines[0], lines[1], f"a/{shown}", f"b/{shown}"))


def _of_object(obj: Any, document: yaml_lines.Document, prefix: tuple[str | int, ...]) -> Iterator[Place]:
    if not isinstance(obj, dict):
        return
    kind = registry.of_object(obj)
    if kind is None and obj.get("kind") not in ("Pod", "CronJob"):
        return
    meta = pods.mapping(obj.get("metadata"))
    job = str(meta.get("name") or str(meta.get("generateName") or "").rstrip("-"))
    found: dict[int, Place] = {}
    for pod in pods.pods(obj):
        for container, path in _containers(pod):
            if not isinstance(container.get("name"), str):
                continue
            resources = container.get("resources")
            same = id(resources) if isinstance(resources, dict) else id(container)
            key = (pod.role.lower(), container["name"])
            if same in found:
                found[same].keys.append(key)
                continue
            line = document.line(*prefix, *path)
            requests, limits = _amounts(resources, "requests"), _amounts(resources, "limits")
            found[same] = Place(
                job, str(obj["kind"]), [key], line, requests, limits, _writer(container),
                namespace=str(meta.get("namespace") or ""),
            )  # fmt: skip
    yield from found.values()


def _containers(pod: pods.Pod) -> Iterator[tuple[Object, tuple[str | int, ...]]]:
    """Containers that run for the pod's whole life, with their paths; of the init containers only sidecars."""
    for key in pods.CONTAINERS:
        for index, one in enumerate(pod.spec.get(key) or []):
            if isinstance(one, dict) and (key == "containers" or one.get("restartPolicy") == "Always"):
                yield one, (*pod.path, "spec", key, index)


def _amounts(resources: Any, key: str) -> dict[str, float]:
    given = pods.mapping(pods.mapping(resources).get(key))
    found = {name: number(given[name]) for name in RESOURCES if name in given}
    return {name: value for name, value in found.items() if value is not None}


def _writer(container: Object) -> Callable[[Amounts], None]:
    def apply(amounts: Amounts) -> None:
        resources = container.get("resources")
        if not isinstance(resources, dict):
            resources = container["resources"] = {}
        for key, new in (("requests", amounts.requests), ("limits", amounts.limits)):
            old = _amounts(resources, key)
            changed = {name: value for name, value in new.items() if name in RESOURCES and old.get(name) != value}
            if not changed:
                continue
            if not isinstance(resources.get(key), dict):
                resources[key] = {}
            for name, value in changed.items():
                resources[key][name] = _written(name, value, resources[key].get(name))

    return apply


def _settings(data: Object, document: yaml_lines.Document, job: str) -> Place:
    """The place in trainyard.yaml: one value for request and limit of memory, and a request of CPU."""
    amounts = {name: number(data.get(name, SETTINGS[name])) or 0.0 for name in RESOURCES}
    framework = str(data.get("framework") or "")
    container = registry.of_framework(framework).container if framework in registry.FRAMEWORKS else ""
    shared = number(data.get("sharedMemory", JobSpec.shared_memory)) or 0.0

    def apply(new: Amounts) -> None:
        for name in RESOURCES:
            value = new.requests.get(name)
            if value is not None and value != amounts[name]:
                data[name] = _written(name, value, data.get(name))

    line = document.line("memory") if "memory" in data else document.line("cpu") if "cpu" in data else document.line()
    role = WORKERS if framework != MPI else "worker"
    return Place(
        str(data.get("name") or job), framework, [(role, container)], line, amounts, {MEMORY: amounts[MEMORY]}, apply,
        namespace=str(data.get("team") or ""), least={MEMORY: shared},
    )  # fmt: skip


def _written(resource: str, value: float, old: Any) -> Any:
    """The value in the type of the old one: whole cores stay a number if they were one."""
    new = text(resource, value)
    return int(new) if new.isdigit() and not isinstance(old, str) else new


def matching(place: Place, known: Sequence[Key]) -> list[Key]:
    """The measured (role, container) that belong to a place."""
    found = []
    for role, container in place.keys:
        if role == WORKERS:
            found += [key for key in known if key[1] == container or (not container and key[1] in MAIN)]
        elif (role, container) in known:
            found.append((role, container))
        elif len(same := [key for key in known if key[1] == container]) == 1 and not role:
            found += same
        elif not container:
            found += [key for key in known if key[0] == role and key[1] in MAIN]
    return found
