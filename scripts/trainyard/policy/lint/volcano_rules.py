"""Requirements of Volcano's own admission for its Jobs, and effects of its plugins on their pods."""

from collections.abc import Iterator
from typing import Any

from trainyard.contract import Contract, Team
from trainyard.policy.lint.pods import Object, Path, Pod, mapping
from trainyard.policy.lint.report import Issue

PLUGINS = ("env", "hcclrank", "mpi", "pytorch", "ray", "ssh", "svc", "tensorflow")
MPI_TASKS = {"master": "master", "worker": "worker"}  # argument of the plugin -> the task's usual name


def volcano(obj: Object, pods: list[Pod], contract: Contract, team: Team) -> Iterator[Issue]:
    """Duplicate names of tasks, unknown plugins, and contradicting policies."""
    if not _is_job(obj):
        return
    spec = obj["spec"]
    yield from _policies(spec.get("policies"), ("spec", "policies"))
    seen: set[str] = set()
    for index, task in enumerate(spec.get("tasks") or []):
        path: Path = ("spec", "tasks", index)
        name = str(task.get("name") or "")
        if name in seen:
            what = f"two tasks have the name {name or '(none)'}"
            yield "TY109", (*path, "name"), what, "give each a name of its own"
        seen.add(name)
        yield from _policies(task.get("policies"), (*path, "policies"))
        least, most = task.get("minAvailable"), task.get("replicas", 1)
        if isinstance(least, int) and isinstance(most, int) and least > most:
            what = f"task {name} has {most} replicas, but minAvailable is {least}"
            yield "TY109", (*path, "minAvailable"), what, "remove minAvailable"


def plugins(obj: Object, pods: list[Pod], contract: Contract, team: Team) -> Iterator[Issue]:
    """Plugins that don't exist, lack their tasks, or add containers that the rules would reject."""
    if not _is_job(obj):
        return
    names = {str(mapping(task).get("name")) for task in obj["spec"].get("tasks") or []}
    for plugin, given in (obj["spec"].get("plugins") or {}).items():
        at: Path = ("spec", "plugins", plugin)
        options = _options(given)
        if plugin not in PLUGINS:
            yield "TY109", at, f"Volcano has no plugin {plugin}", f"use one of {', '.join(PLUGINS)}"
        elif plugin == "mpi":
            for option, usual in MPI_TASKS.items():
                if options.get(option, usual) not in names:
                    what = f"the plugin mpi needs a task {options.get(option, usual)}, which does not exist"
                    yield "TY109", at, what, f"set its name with --{option}=TASK"
        elif plugin == "pytorch" and options.get("wait-master-enabled", "false") != "false":
            image = options.get("wait-master-image", "busybox:1.36.1")
            what = f"the plugin pytorch adds a container of {image} to each worker, which Pod Security refuses"
            hint = "remove --wait-master-enabled: torch.distributed waits for its master by itself"
            yield "TY109", at, what, hint


def _is_job(obj: Object) -> bool:
    return str(obj.get("apiVersion")).startswith("batch.volcano.sh/") and obj.get("kind") == "Job"


def _options(given: Any) -> dict[str, str]:
    """Arguments of a plugin, parsed like Go's flag package: `--name=value`, or `--name` for true."""
    found = {}
    for word in given if isinstance(given, list) else []:
        name, equals, value = str(word).lstrip("-").partition("=")
        found[name] = value if equals else "true"
    return found


def _policies(given: Any, path: Path) -> Iterator[Issue]:
    """Lifecycle policies without an event or exit code, or that conflict with another."""
    events: set[str] = set()
    codes: set[int] = set()
    for index, one in enumerate(given if isinstance(given, list) else []):
        one, at = mapping(one), (*path, index)
        named = [*([one["event"]] if one.get("event") else []), *(one.get("events") or [])]
        code = one.get("exitCode")
        if bool(named) == (code is not None):
            what = f"a policy has {'both' if named else 'neither'} event {'and' if named else 'nor'} exitCode"
            yield "TY109", at, what, "set either event or exitCode"
        for event in map(str, named):
            if event in events:
                yield "TY109", at, f"two policies are for the event {event}", "keep one of them"
            events.add(event)
        if isinstance(code, int):
            if code == 0 or code in codes:
                what = "0 is the exit code of success" if code == 0 else f"two policies are for the exit code {code}"
                yield "TY109", (*at, "exitCode"), what, "use another exit code"
            codes.add(code)
    if "*" in events and len(events) > 1:
        yield "TY109", path, "a policy for every event (*) can't be combined with others", "keep only that policy"


RULES = (volcano, plugins)
