"""Pipelines and their versions: ConfigMaps that pack the compiled text."""

from __future__ import annotations

from typing import Any

from kfp_api import ids, listing, records, uploads
from kfp_api.call import Call, Json, text
from kfp_api.errors import Code, RefusalError, compiled, invalid, missing
from kfp_api.ids import Id
from kfp_api.records import PIPELINE, PIPELINE_KIND, VERSION_KIND, Record
from trainyard.errors import TrainyardError
from trainyard.kube import Kube
from trainyard.pipelines.ir import load
from trainyard.pipelines.ir.model import Pipeline

FIELDS = ("pipeline_id", "display_name", "created_at", "namespace")
VERSION_FIELDS = ("pipeline_version_id", "display_name", "created_at")
LONGEST_NAME, LONGEST_TEXT = 256, 2048


def _name(pipeline: str, version: str = "") -> str:
    """The name of a record, from the digests of an id."""
    return f"kfp-version-{pipeline}-{version}" if version else f"kfp-pipeline-{pipeline}"


def _json(team: str, record: Record) -> Json:
    return {
        "pipeline_id": str(Id(team, record.name.removeprefix("kfp-pipeline-"))),
        "display_name": record.get("name"),
        "name": record.get("name"),
        "description": record.get("description"),
        "created_at": record.created,
        "namespace": team,
    }


def _version_json(team: str, record: Record, *, whole: bool = True) -> Json:
    pipeline, _, version = record.name.removeprefix("kfp-version-").partition("-")
    found = {
        "pipeline_id": str(Id(team, pipeline)),
        "pipeline_version_id": f"{Id(team, pipeline)}.{version}",
        "display_name": record.get("name"),
        "name": record.get("name"),
        "description": record.get("description"),
        "created_at": record.created,
    }
    return found | ({"pipeline_spec": _spec(parsed(record))} if whole else {})


def parsed(record: Record) -> Pipeline:
    """The pipeline that a version holds. Raises RefusalError or UsageError for what a member wrote there instead."""
    return _loaded(uploads.plain(record.content()), record.get("name") or "pipeline")


def _loaded(text_: str, name: str = "pipeline") -> Pipeline:
    with compiled():
        return load.text(text_, name)


def _spec(pipeline: Pipeline) -> Json:
    """As KFP gives it: the two documents, if there is one of the platform, else the pipeline's alone."""
    return {"pipeline_spec": pipeline.spec, "platform_spec": pipeline.platform} if pipeline.platform else pipeline.spec


def _known(kube: Kube, place: Id) -> Record:
    found = records.find(kube, PIPELINE_KIND, _name(place.name))
    if found is None:
        raise missing("pipeline", str(place))
    return found


def version(call: Call, wanted: str) -> tuple[Id, Record]:
    """The version of an id, and its pipeline's id. Raises RefusalError."""
    pipeline, name = ids.version(wanted)
    found = records.find(call.caller.kube(pipeline.team), VERSION_KIND, _name(pipeline.name, name))
    if found is None:
        raise missing("pipeline version", wanted)
    return pipeline, found


def newest(call: Call, wanted: str) -> tuple[Id, Record]:
    """The newest version of a pipeline, which runs where none is named. Raises RefusalError."""
    place = ids.read("pipeline", wanted, ids.DIGEST)
    found = _versions(call.caller.kube(place.team), place)
    if not found:
        raise missing("version of pipeline", wanted)
    return place, max(found, key=lambda one: (one.created, one.name))


def list_(call: Call) -> Json:
    """GET pipelines."""

    def of(team: str) -> list[Json]:
        found = records.listed(call.caller.kube(team), PIPELINE_KIND)
        return [_json(team, one) for one in found if one.name == _name(ids.digest(one.get("name")))]  # others pretend

    teams = call.caller.chosen(call.query.get("namespace", ""))
    found = call.caller.of_all(of, teams)
    shown, total, token = listing.page(found, call.query, FIELDS)
    return {"pipelines": shown, "total_size": total, "next_page_token": token}


def get(call: Call) -> Json:
    """GET pipelines/{id}."""
    place = ids.read("pipeline", call.at["id"], ids.DIGEST)
    return _json(place.team, _known(call.caller.kube(place.team), place))


def by_name(call: Call) -> Json:
    """GET pipelines/names/{name}."""
    name, team = call.at["name"], call.caller.home(call.query.get("namespace", ""))
    return _json(team, _known(call.caller.kube(team), Id(team, ids.digest(name))))


def _create(kube: Kube, name: str, description: str) -> Record:
    taken = f"pipeline {name} already exists in {kube.namespace}; upload a new version of it, or choose another name"
    data = {"name": name, "description": description}
    return records.create(kube, PIPELINE_KIND, _name(ids.digest(name)), data, taken=taken)


def _versions(kube: Kube, pipeline: Id) -> list[Record]:
    found = records.listed(kube, VERSION_KIND, **{PIPELINE: pipeline.name})
    return [one for one in found if one.name == _name(pipeline.name, ids.digest(one.get("name")))]  # others pretend


def _add(kube: Kube, pipeline: Record, name: str, description: str, content: str) -> Record:
    digest = pipeline.name.removeprefix("kfp-pipeline-")
    return records.create(
        kube, VERSION_KIND, _name(digest, ids.digest(name)), {"name": name, "description": description},
        content=content, owner=pipeline, labels={PIPELINE: digest},
        taken=f"pipeline {pipeline.get('name')} already has a version {name}; choose another name",
    )  # fmt: skip


def create(call: Call) -> Json:
    """POST pipelines: one without versions."""
    body = call.json()
    name, description = text(body, "display_name", LONGEST_NAME, needed=True), text(body, "description", LONGEST_TEXT)
    kube = call.caller.kube(call.caller.home(text(body, "namespace", 63)))
    return _json(kube.namespace, _create(kube, name, description))


def _given(query: Any, key: str, longest: int) -> str:
    return text({key: query.get(key, "")}, key, longest)


def _named(call: Call, own: str) -> str:
    return _given(call.query, "display_name", LONGEST_NAME) or _given(call.query, "name", LONGEST_NAME) or own


def upload(call: Call) -> Json:
    """POST pipelines/upload: a pipeline and its first version, which has the same name."""
    content = uploads.content(call.files)
    name = _named(call, _loaded(content).name)
    description = _given(call.query, "description", LONGEST_TEXT)
    kube = call.caller.kube(call.caller.home(call.query.get("namespace", "")))
    place = Id(kube.namespace, ids.digest(name))
    # An upload that was cut off between its two objects is completed by the next one.
    made = None if _versions(kube, place) else records.find(kube, PIPELINE_KIND, _name(place.name))
    made = made or _create(kube, name, description)
    _add(kube, made, name, description, content)
    return _json(kube.namespace, made)


def upload_version(call: Call) -> Json:
    """POST pipelines/upload_version."""
    place = ids.read("pipeline", call.query.get("pipelineid", ""), ids.DIGEST)
    content = uploads.content(call.files)
    own = _loaded(content).name
    name, kube = _named(call, own), call.caller.kube(place.team)
    made = _add(kube, _known(kube, place), name, _given(call.query, "description", LONGEST_TEXT), content)
    return _version_json(place.team, made)


def create_version(call: Call) -> Json:
    """POST pipelines/{id}/versions, with the pipeline in the body. A URL is not fetched."""
    place, body = ids.read("pipeline", call.at["id"], ids.DIGEST), call.json()
    if (body.get("package_url") or {}).get("pipeline_url") or body.get("code_source_url"):
        raise RefusalError(
            Code.UNIMPLEMENTED, "package_url is not fetched; upload the file with upload_pipeline_version"
        )
    content = uploads.documents(body.get("pipeline_spec"))
    name = text(body, "display_name", LONGEST_NAME) or _loaded(content).name
    kube = call.caller.kube(place.team)
    made = _add(kube, _known(kube, place), name, text(body, "description", LONGEST_TEXT), content)
    return _version_json(place.team, made)


def list_versions(call: Call) -> Json:
    """GET pipelines/{id}/versions."""
    place = ids.read("pipeline", call.at["id"], ids.DIGEST)
    kube = call.caller.kube(place.team)
    _known(kube, place)
    found = [_version_json(place.team, one, whole=False) for one in _versions(kube, place)]
    shown, total, token = listing.page(found, call.query, VERSION_FIELDS)
    whole = call.caller.each(lambda one: _or_short(call, one), shown)
    return {"pipeline_versions": whole, "total_size": total, "next_page_token": token}


def _or_short(call: Call, known: Json) -> Json:
    """A version with its pipeline; without it, where it is deleted meanwhile or a member wrote something else."""
    try:
        return _whole(call, known["pipeline_version_id"])
    except (RefusalError, TrainyardError):
        return known


def get_version(call: Call) -> Json:
    """GET pipelines/{id}/versions/{version}."""
    if call.at["version"].rpartition(".")[0] != call.at["id"]:
        raise missing("pipeline version", call.at["version"])
    return _whole(call, call.at["version"])


def _whole(call: Call, wanted: str) -> Json:
    place, found = version(call, wanted)
    return _version_json(place.team, found)


def delete(call: Call) -> Any:
    """DELETE pipelines/{id}. As on KFP's server, one with versions needs `cascade`."""
    place = ids.read("pipeline", call.at["id"], ids.DIGEST)
    kube = call.caller.kube(place.team)
    known = _known(kube, place)
    versions = _versions(kube, place)
    if versions and call.query.get("cascade", "").lower() != "true":
        what = f"pipeline {known.get('name')} still has {len(versions)} versions; delete them first"
        raise RefusalError(Code.FAILED_PRECONDITION, what)
    call.caller.each(lambda one: records.remove(kube, one.name), versions)  # a pipeline of its name may follow at once
    records.remove(kube, known.name)
    return {}


def delete_version(call: Call) -> Any:
    """DELETE pipelines/{id}/versions/{version}. Runs that began with it keep what they need."""
    place, found = version(call, call.at["version"])
    if str(place) != call.at["id"]:
        raise missing("pipeline version", call.at["version"])
    records.remove(call.caller.kube(place.team), found.name)
    return {}


def of_run(call: Call, body: Json) -> tuple[Pipeline, str, Json]:
    """The pipeline that a new run names or brings, its team ("" if only brought), and what to note about it."""
    reference = body.get("pipeline_version_reference") or {}
    if reference:
        if not isinstance(reference, dict):
            raise invalid("pipeline_version_reference is not an object")
        wanted, of = text(reference, "pipeline_version_id", 400), text(reference, "pipeline_id", 400)
        if not (wanted or of):
            raise invalid("pipeline_version_reference names neither pipeline_version_id nor pipeline_id")
        place, found = version(call, wanted) if wanted else newest(call, of)
        if of and of != str(place):
            raise missing("pipeline version", f"{wanted} of pipeline {of}")
        shown = _version_json(place.team, found, whole=False)
        return parsed(found), place.team, {key: shown[key] for key in ("pipeline_id", "pipeline_version_id")}
    if not body.get("pipeline_spec"):
        raise invalid("neither pipeline_spec nor pipeline_version_reference is given; pass one of them")
    return _loaded(uploads.documents(body["pipeline_spec"])), "", {}


ROUTES = (
    ("POST", "/pipelines/upload", upload),
    ("POST", "/pipelines/upload_version", upload_version),
    ("GET", "/pipelines", list_),
    ("POST", "/pipelines", create),
    ("GET", "/pipelines/names/{name}", by_name),
    ("GET", "/pipelines/{id}", get),
    ("DELETE", "/pipelines/{id}", delete),
    ("GET", "/pipelines/{id}/versions", list_versions),
    ("POST", "/pipelines/{id}/versions", create_version),
    ("GET", "/pipelines/{id}/versions/{version}", get_version),
    ("DELETE", "/pipelines/{id}/versions/{version}", delete_version),
)
