"""Parts of the check of right sizes that need no cluster: its file, and where values of the platform are applied."""

import pytest

from trainyard.rightsize import files, values
from trainyard_dev.e2e.checks import rightsize as checked


def test_the_file_is_one_job_whose_runs_have_one_name_and_it_asks_for_both() -> None:
    [place] = files.read(checked.FILE.name, checked.FILE.read_text()).places
    assert (place.job, place.kind, place.keys) == (checked.JOB, "PyTorchJob", [("master", "pytorch")])
    assert place.limits["cpu"] > place.requests["cpu"], "a limit that the patch could make too low"
    assert place.limits["memory"] == place.requests["memory"]


RESOURCES = {"requests": {"cpu": "20m", "memory": "48Mi"}, "limits": {"memory": "1Gi"}}
POD = {"containers": [{"name": "a"}, {"name": "b", "resources": RESOURCES}], "initContainers": [{"name": "c"}]}


@pytest.mark.parametrize(
    "manifest",
    [
        {"kind": "Deployment", "spec": {"template": {"spec": POD}}},
        {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": POD}}}}},
    ],
)
def test_containers_of_every_workload_are_found(manifest: dict[str, object]) -> None:
    assert [one["name"] for one in checked._containers(manifest)] == ["a", "b", "c"]


def test_what_holds_no_pods_has_no_containers() -> None:
    for spec in ({}, {"template": "text"}, {"jobTemplate": {"spec": {}}}):
        assert checked._containers({"kind": "Other", "spec": spec}) == []


def test_a_value_reaches_a_container_when_all_of_its_amounts_do() -> None:
    found = checked._resources({"minio": {"resources": RESOURCES}, "nfs": {"ganesha": {"resources": {"limits": {}}}}})
    assert [path for path, _ in found] == ["minio.resources", "nfs.ganesha.resources"]
    assert checked._within(RESOURCES, RESOURCES | {"requests": {"cpu": "20m", "memory": "48Mi", "x": 1}})
    assert not checked._within(RESOURCES, {"requests": RESOURCES["requests"]})
    assert not checked._within({"requests": {"cpu": 1}}, {"requests": {"cpu": "1100m"}})


def test_the_option_s_containers_have_values_of_their_own() -> None:
    for container in ("prometheus", "alertmanager", "kube-state-metrics", "node-exporter", "exporter", "usage"):
        assert values.place(container).startswith("monitoring.")
