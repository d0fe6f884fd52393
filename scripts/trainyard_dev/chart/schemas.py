"""JSON schemas for kubeconform, made from Kubernetes' own OpenAPI file and from the CRDs of a profile."""

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trainyard.paths import cache_dir
from trainyard.shell import run
from trainyard_dev import tools

INT_OR_STRING = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
QUANTITY = {"oneOf": [{"type": "string"}, {"type": "number"}]}
# Definitions that are strings in the OpenAPI file although numbers are accepted as well.
LOOSE = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
}


def kubernetes() -> Path:
    """A folder with a strict schema for each kind of the tested Kubernetes; made once per version."""
    tested = tools.tested_kubernetes()
    folder = cache_dir() / "schemas" / f"{tested.number}-4"
    if folder.exists():
        return folder
    source = tools.module_dir(tested.name) / "api" / "openapi-spec" / "swagger.json"
    definitions = json.loads(source.read_text())["definitions"]
    work = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    common = {name: _strict(body, LOOSE.get(name)) for name, body in definitions.items()}
    for name, body in definitions.items():
        for kind in body.get("x-kubernetes-group-version-kind", []):
            file = work / _file(kind["kind"], kind["group"], kind["version"])
            wanted = dict(common[name])
            wanted["properties"] = dict(wanted.get("properties", {})) | {
                "kind": {"const": kind["kind"]},
                "apiVersion": {"const": "/".join(filter(None, (kind["group"], kind["version"])))},
            }
            file.write_text(json.dumps(wanted | {"definitions": _named(wanted, common)}))
    work.rename(folder)
    return folder


def custom(crds: Iterable[dict[str, Any]], folder: Path) -> Path:
    """Write a strict schema for each served version of the CRDs to `folder`; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    for crd in crds:
        spec = crd["spec"]
        for version in spec["versions"]:
            schema = _closed(version["schema"]["openAPIV3Schema"])
            schema["properties"] = dict(schema.get("properties", {})) | {"metadata": {"type": "object"}}
            (folder / _file(spec["names"]["kind"], spec["group"], version["name"])).write_text(json.dumps(schema))
    return folder


def check(manifests: Path, *folders: Path) -> tuple[int, list[str]]:
    """Run kubeconform strictly over a file of manifests.

    Returns:
        how many objects were valid, and one line for each invalid one (including kinds without a schema).
    """
    where = [word for folder in folders for word in ("-schema-location", f"{folder}/{{{{.ResourceKind}}}}-"
             "{{.Group}}-{{.ResourceAPIVersion}}.json")]  # fmt: skip
    done = run([tools.binary("kubeconform"), "-strict", "-output", "json", "-summary", *where, manifests], check=False)
    answer = json.loads(done.stdout)
    bad = [f"{item['kind']} {item['name']}: {item['msg']}" for item in answer.get("resources") or []]
    return int(answer["summary"]["valid"]), bad


def _file(kind: str, group: str, version: str) -> str:
    """The file name that kubeconform expects; for it, the group of a core kind is the version."""
    return f"{kind}-{group or version}-{version}.json".lower()


def _strict(body: dict[str, Any], replacement: dict[str, Any] | None) -> dict[str, Any]:
    """One definition that refuses unknown fields."""
    if replacement:
        return replacement
    done = dict(body)
    if "properties" in done:
        done["additionalProperties"] = False
        # Go writes creationTimestamp and empty lists as null.
        done["properties"] = {key: _nullable(value) for key, value in done["properties"].items()}
    return done


def _nullable(value: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in value:
        return {"oneOf": [{"$ref": value["$ref"]}, {"type": "null"}]}
    kind = value.get("type")
    return value | {"type": [kind, "null"]} if isinstance(kind, str) else value


def _named(schema: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    """The definitions that a schema uses, directly or not: with all of them kubeconform takes seconds."""
    found: dict[str, Any] = {}
    left = [schema]
    while left:
        for name in re.findall(r'"#/definitions/([^"]+)"', json.dumps(left.pop())):
            if name not in found:
                found[name] = common[name]
                left.append(common[name])
    return found


def _closed(node: Any) -> Any:
    """A CRD's schema that refuses unknown fields, except where the CRD itself preserves them."""
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("x-kubernetes-int-or-string"):
        return dict(QUANTITY)
    done = {key: _closed(value) for key, value in node.items()}
    is_map = isinstance(node.get("properties"), dict) and node.get("type") == "object"
    if is_map and not (node.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in node):
        done["additionalProperties"] = False
    if node.get("nullable") and isinstance(done.get("type"), str):
        done["type"] = [done["type"], "null"]
    return done
