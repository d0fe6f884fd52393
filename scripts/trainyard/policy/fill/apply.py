"""Applies the table to an object without an API server: variables by our evaluator of CEL, patches in Python."""

import functools
import json
from dataclasses import dataclass, field
from typing import Any

from trainyard.contract import Contract, Team
from trainyard.errors import TrainyardError
from trainyard.policy import cel
from trainyard.policy.fill import render
from trainyard.policy.fill.table import Entry, Group, groups
from trainyard.policy.offline import RESOURCES, Variables, annotations_of

Object = dict[str, Any]


@dataclass(frozen=True)
class Filled:
    """A filled-in object: `names` as in the annotation, `images` as (old, new)."""

    obj: Object
    names: tuple[str, ...] = ()
    images: tuple[tuple[str, str], ...] = field(default=())


def lists(contract: Contract, team: Team) -> Object:
    """Parameters of the fill policies; {} if the API server fills nothing in for the team."""
    found: Object = (contract.raw.get("policies") or {}).get("fill") or {}
    return found if found.get("served") and team.fills else {}


def group_of(obj: Object) -> Group | None:
    """The group of kinds that an object belongs to; None if nothing is filled in for it."""
    api = str(obj.get("apiVersion", "")).rpartition("/")[0]
    resource = RESOURCES.get((api, str(obj.get("kind"))), "")
    return next((group for group in groups() if group.looks_at(api, resource)), None)


def filled(obj: Object, contract: Contract, team: Team, user: str = "member") -> Filled:
    """A copy of the object as the API server would admit it from a member of the team; other kinds are unchanged.

    Raises:
        TrainyardError: the object doesn't have the shape of its kind, so the result is unknown.
    """
    group = group_of(obj)
    if group is None:
        return Filled(obj)
    try:
        return _filled(obj, group, _scope(obj, group, contract, team, user))
    except cel.CelError as error:
        name = f"{obj.get('kind')} {(obj.get('metadata') or {}).get('name', '')}".strip()
        hint = "run `trainyard lint` to see what is wrong with it"
        raise TrainyardError(f"nothing can be filled in: {error}", where=name, hint=hint) from None


@functools.cache
def _variables(group: Group) -> dict[str, str]:
    return render.variables(group)


def _scope(obj: Object, group: Group, contract: Contract, team: Team, user: str) -> Object:
    scope: Object = {
        "object": cel.place(obj),
        "oldObject": None,
        "request": {
            "operation": "CREATE",
            "namespace": team.name,
            "kind": {"kind": obj["kind"]},
            "userInfo": {"username": user},
        },
        "namespaceObject": {"metadata": {"annotations": annotations_of(team)}},
    }
    lists = (contract.raw.get("policies") or {}).get("fill") or {}
    scope["variables"] = Variables(_variables(group), scope, {"params": contract.parameters, "site": lists})
    return scope


def _filled(obj: Object, group: Group, scope: Object) -> Filled:
    made: Object = _apart(obj)
    known = scope["variables"]
    changes, names, images = [], [], []
    for entry in group.entries:
        if entry.way == "remove":  # computed by the API server; no manifest has it
            continue
        places = known.cel_select(render.fills(entry))
        for item in known.cel_select(entry.place) if places else []:
            if item["at"] not in places:
                continue
            inner = {**scope, "p": item}
            value = _plain(cel.compile(entry.value)(inner)) if entry.value else None
            changes.append((item["at"], _path(entry, inner), entry.way, value))
            names.append(entry.name)
            if entry.place == render.IMAGES:
                images.append((str(item["t"]["image"]), str(value)))
    for at, path, way, value in changes:
        _change(_walk(made, at), path, way, value)
    _tell(made, names, images)
    return Filled(made, tuple(dict.fromkeys(names)), tuple(dict.fromkeys(images)))


def _tell(made: Object, names: list[str], images: list[tuple[str, str]]) -> None:
    """Adds what was filled in to the annotations that a policy would write."""
    if not names:
        return
    _change(made, ("metadata", "annotations"), "add", dict((made.get("metadata") or {}).get("annotations") or {}))
    notes = made["metadata"]["annotations"]
    known = [one for one in str(notes.get(render.TOLD, "")).split(", ") if one]
    notes[render.TOLD] = ", ".join(dict.fromkeys([*known, *names]))
    if images:
        notes[render.STANDS_IN] = ", ".join(dict.fromkeys(f"{old} -> {new}" for old, new in images))


def _path(entry: Entry, scope: Object) -> tuple[str, ...]:
    return tuple(str(cel.compile(part[1:])(scope)) if part.startswith("=") else part for part in entry.path)


def _apart(value: Any) -> Any:
    """A deep copy that shares no parts, as an alias of YAML does."""
    if isinstance(value, dict):
        return {key: _apart(one) for key, one in value.items()}
    return [_apart(one) for one in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """A value of the evaluator without its paths."""
    return json.loads(json.dumps(value))


def _walk(node: Any, pointer: str) -> Any:
    for key in pointer.split("/")[1:]:
        name = key.replace("~1", "/").replace("~0", "~")
        node = node[int(name)] if isinstance(node, list) else node[name]
    return node


def _change(node: Any, path: tuple[str, ...], way: str, value: Any) -> None:
    *around, last = path
    for key in (*around, ""):
        if not isinstance(node, dict):
            raise cel.CelError(f"there is no map around {last}")
        if key and node.get(key) is None:
            node[key] = {}
        node = node[key] if key else node
    if way == "append":
        node[last] = [*(node.get(last) or []), value]
    else:
        node[last] = value
