"""Experiments: a label on runs, and a ConfigMap with what no label can say. `trainyard submit -e` makes some, too."""

from __future__ import annotations

from typing import Any

from kfp_api import ids, listing, records, workflows
from kfp_api.call import Call, Json, text
from kfp_api.errors import Code, RefusalError, missing
from kfp_api.ids import Id
from kfp_api.records import EXPERIMENT_KIND, Record
from kfp_api.workflows import Header
from trainyard.kube import Kube
from trainyard.names import label as as_label

FIELDS = ("experiment_id", "display_name", "created_at", "last_run_created_at", "namespace", "storage_state")
LONGEST_NAME, LONGEST_TEXT = 256, 2048
AVAILABLE, ARCHIVED = "AVAILABLE", "ARCHIVED"


def label_of(name: str) -> str:
    """The label of a name's runs: the name itself, or, where no label may be so, what is left of it and a digest."""
    if ids.LABEL.fullmatch(name):
        return name
    return f"{as_label(name)[:46].strip('-_.') or 'experiment'}-{ids.digest(name)}"


def _name(label: str) -> str:
    """The name of a label's ConfigMap: labels differ where names of objects may not."""
    return f"kfp-experiment-{ids.digest(label)}"


def _json(team: str, label: str, record: Record | None, began: list[str]) -> Json:
    created = record.created if record else min(began, default="")
    found = {
        "experiment_id": str(Id(team, label)),
        "display_name": (record.get("name") if record else "") or label,
        "description": record.get("description") if record else "",
        "created_at": created,
        "namespace": team,
        "storage_state": (record.get("state") if record else "") or AVAILABLE,
    }
    return found | ({"last_run_created_at": max(began)} if began else {})


def all_of(kube: Kube) -> list[Json]:
    """All experiments of a team: those with a ConfigMap, and those that only runs name."""
    known = {
        label: one
        for one in records.listed(kube, EXPERIMENT_KIND)
        if ids.LABEL.fullmatch(label := one.get("label")) and one.name == _name(label)  # others only pretend
    }
    began: dict[str, list[str]] = {}
    for one in workflows.headers(kube):
        began.setdefault(one.experiment, []).append(one.created)
    return [_json(kube.namespace, label, known.get(label), began.get(label, []))
            for label in sorted({*known, *began} - {""})]  # fmt: skip


def list_(call: Call) -> Json:
    """GET experiments."""
    teams = call.caller.chosen(call.query.get("namespace", ""))
    found = call.caller.of_all(lambda team: all_of(call.caller.kube(team)), teams)
    shown, total, token = listing.page(found, call.query, FIELDS)
    return {"experiments": shown, "total_size": total, "next_page_token": token}


def chosen(call: Call) -> tuple[str, list[str]]:
    """The label of the experiment that a list of runs names, "" for none, and the teams to look in."""
    if wanted := call.query.get("experiment_id", ""):
        place = ids.read("experiment", wanted, ids.LABEL)
        return place.name, [place.team]
    return "", call.caller.chosen(call.query.get("namespace", ""))


def create(call: Call) -> Json:
    """POST experiments."""
    body = call.json()
    name = text(body, "display_name", LONGEST_NAME, needed=True)
    description = text(body, "description", LONGEST_TEXT)
    kube, label = call.caller.kube(call.caller.home(text(body, "namespace", 63))), label_of(name)
    data = {"name": name, "label": label, "description": description}
    taken = f"experiment {name} already exists in {kube.namespace}"
    made = records.create(kube, EXPERIMENT_KIND, _name(label), data, taken=taken)
    return _json(kube.namespace, label, made, [])


def get(call: Call) -> Json:
    """GET experiments/{id}."""
    return found(call, call.at["id"])


def found(call: Call, wanted: str) -> Json:
    """The experiment of an id. Raises RefusalError."""
    kube, label, record, runs = _known(call, wanted)
    return _json(kube.namespace, label, record, [one.created for one in runs])


def _known(call: Call, wanted: str) -> tuple[Kube, str, Record | None, list[Header]]:
    """The team, label, ConfigMap and runs of an id. Raises RefusalError for one that has neither of the last two."""
    place = ids.read("experiment", wanted, ids.LABEL)
    kube = call.caller.kube(place.team)
    record = records.find(kube, EXPERIMENT_KIND, _name(place.name))
    runs = workflows.headers(kube, experiment=place.name)
    if not (record or runs):
        raise missing("experiment", wanted)
    return kube, place.name, record, runs


def delete(call: Call) -> Any:
    """DELETE experiments/{id}. Its runs would go on naming it, so it must have none."""
    kube, label, record, runs = _known(call, call.at["id"])
    if runs:
        name = _json(kube.namespace, label, record, [])["display_name"]
        what = f"experiment {name} still has {len(runs)} runs; delete them first, or archive the experiment"
        raise RefusalError(Code.FAILED_PRECONDITION, what)
    records.remove(kube, _name(label))
    return {}


def _state(call: Call, state: str) -> Any:
    kube, label, record, runs = _known(call, call.at["id"])
    if record:
        records.change(kube, record.name, {"state": state})
    else:
        data = {"name": label, "label": label, "state": state}
        records.create(kube, EXPERIMENT_KIND, _name(label), data, taken="somebody else changed it; try again")
    if state == ARCHIVED:  # KFP archives the experiment's runs, and leaves them so
        call.caller.each(lambda one: workflows.archive(kube, one.name, True), runs)
    return {}


def archive(call: Call) -> Any:
    """POST experiments/{id}:archive."""
    return _state(call, ARCHIVED)


def unarchive(call: Call) -> Any:
    """POST experiments/{id}:unarchive."""
    return _state(call, AVAILABLE)


ROUTES = (
    ("POST", "/experiments/{id}:archive", archive),
    ("POST", "/experiments/{id}:unarchive", unarchive),
    ("GET", "/experiments", list_),
    ("POST", "/experiments", create),
    ("GET", "/experiments/{id}", get),
    ("DELETE", "/experiments/{id}", delete),
)
