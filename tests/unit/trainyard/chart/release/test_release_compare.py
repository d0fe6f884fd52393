"""The summary before an upgrade: what is added, changed, removed, kept, refused; images and CRD fields that move."""

import copy
import json
from typing import Any

import pytest

from trainyard.chart.release import compare
from trainyard.chart.release.compare import Change
from trainyard.errors import TrainyardError
from trainyard_dev.chart import summary
from trainyard_dev.chart.verdicts import Judgement


def obj(kind: str, name: str, spec: Any = None, version: str = "v1", **meta: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **meta}, "spec": spec or {}}


def deployment(image: str, **meta: Any) -> dict[str, Any]:
    template = {"metadata": {}, "spec": {"containers": [{"name": "main", "image": image, "args": ["a"]}]}}
    return obj("Deployment", "d", {"replicas": 1, "template": template}, "apps/v1", namespace="n", **meta)


def crd(name: str, fields: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"properties": {"spec": {"properties": fields}}}}
    spec = {"versions": [{"name": version, "schema": schema}]}
    return obj("CustomResourceDefinition", name, spec, "apiextensions.k8s.io/v1")


def test_objects_come_go_and_stay() -> None:
    keep = {"helm.sh/resource-policy": "keep"}
    old = [obj("Secret", "gone"), obj("PersistentVolumeClaim", "data", annotations=keep), obj("Service", "same")]
    new = [obj("Service", "same"), obj("Queue", "fresh", version="scheduling.volcano.sh/v1beta1")]
    assert [(c.kind, c.object) for c in compare.changes(old, new)] == [
        ("removed", "Secret gone"),
        ("added", "Queue.scheduling.volcano.sh fresh"),
        ("kept", "PersistentVolumeClaim data"),
    ]


def test_a_changed_field_is_named_and_restarts_are_reported() -> None:
    old, new = deployment("r/i:1"), deployment("r/i:2")
    (change,) = compare.changes([old], [new])
    assert change == Change("changed", "Deployment n/d", ("spec.template.spec.containers[main].image",), restarts=True)
    new = copy.deepcopy(old)
    new["spec"]["replicas"] = 2
    assert not compare.changes([old], [new])[0].restarts


def test_a_label_that_only_tells_the_chart_is_no_change() -> None:
    old, new = (deployment("r/i:1", labels={"helm.sh/chart": f"x-{n}"}) for n in (1, 2))
    assert compare.changes([old], [new]) == []


def test_a_field_that_nobody_can_change_is_refused() -> None:
    old = obj("StorageClass", "s", version="storage.k8s.io/v1") | {"parameters": {"onDelete": "archive"}}
    new = old | {"parameters": {"onDelete": "delete"}}
    (change,) = compare.changes([old], [new])
    assert change.refused == ("parameters.onDelete",)
    note = {"annotations": {"helm.sh/hook": "pre-upgrade"}}
    before, after = (obj("Job", "j", {"template": t}, "batch/v1", **note) for t in ("a", "b"))
    assert compare.changes([before], [after])[0].refused == ()


def test_images_that_move() -> None:
    assert compare.image_moves([deployment("r/i:1")], [deployment("r/i:2")]) == [("r/i", "1", "2")]
    assert compare.image_moves([deployment("r/i:1")], [deployment("r/j:1")]) == [("r/i", "1", ""), ("r/j", "", "1")]
    assert compare.image_moves([deployment("r/i:1")], [deployment("r/i:1")]) == []


def test_crd_fields_that_come_and_go() -> None:
    old = [crd("a", {"x": {"properties": {"y": {}}}, "gone": {}}), crd("b", {})]
    new = [crd("a", {"x": {"properties": {"y": {}, "z": {"properties": {"deep": {}}}}}}), crd("c", {})]
    assert compare.crd_changes(old, new) == {"a": "+v1 spec.x.z; -v1 spec.gone", "c": "added"}
    assert compare.crd_changes([crd("a", {})], [crd("a", {}, "v2")]) == {"a": "without version v1; with version v2"}


def test_crds_of_the_hook_are_read_from_its_bundle() -> None:
    bundle = {"a.json": json.dumps(crd("a", {})), "b.json": json.dumps(crd("b", {}))}
    objects = [obj("ConfigMap", "r-crds") | {"data": bundle}, obj("ConfigMap", "other") | {"data": {"x": "y"}}]
    assert [one["metadata"]["name"] for one in summary.moved_by_hook(objects, "r-crds")] == ["a", "b"]
    assert summary.moved_by_hook(objects[1:], "r-crds") == []


@pytest.fixture
def found() -> summary.Summary:
    judged = Judgement("volcano", "1.0", "2.0", "steps", "because", ("a healthy cluster",), ("drain the queues",))
    change = Change("changed", "Service n/s", ("spec.ports",))
    return summary.Summary("r", "n", 3, "0.1.0", "0.2.0", [judged], [("i", "1", "2")], {"c": "added"}, [change])


def test_the_table_has_all_of_it(found: summary.Summary) -> None:
    text = summary.table(found)
    parts = ["release r in n, revision 3: 0.1.0 -> 0.2.0", "steps    volcano", "1.0 -> 2.0", "i: 1 -> 2", "c: added"]
    for part in (*parts, "step:  drain the queues", "needs: a healthy cluster", "Service n/s: spec.ports"):
        assert part in text
    found.changes.append(Change("changed", "Service n/t", ("spec.ports",)))
    assert "  Service n/s: spec.ports\n  … and 1 more" in summary.table(found, most=1)
    assert found.data()["images"] == [{"image": "i", "before": "1", "after": "2"}]
    summary.refuse_blocked(found)


def test_a_blocked_component_refuses(found: summary.Summary) -> None:
    found.components.append(Judgement("minio", "1", "2", "blocked", "nobody knows"))
    with pytest.raises(
        TrainyardError,
        match=r"from 0.1.0 to 0.2.0 is blocked by minio\. upgrade through a version that its component\.yaml assesses",
    ):
        summary.refuse_blocked(found)


def test_a_change_that_can_t_be_made_refuses(found: summary.Summary) -> None:
    found.changes.append(Change("changed", "PriorityClass p", ("value",)))
    with pytest.raises(TrainyardError, match="value of PriorityClass p cannot be changed"):
        summary.refuse_blocked(found)
    assert "PriorityClass p (IMMUTABLE): value" in summary.table(found)
