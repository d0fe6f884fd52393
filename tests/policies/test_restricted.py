"""Pod Security's level "restricted", asked of a real API server: the platform's pods and what operators add to jobs."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from trainyard.chart import helm
from trainyard.components import all_components
from trainyard.paths import ROOT
from trainyard_agent.runs import launcher
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.install import complete_namespace
from trainyard_dev.chart import options, package

SPACE = "restricted-probe"
# Kept with their reasons; charts/trainyard/tests/test_rights.py compares them with what is rendered.
OPEN = {entry["pod"] for one in all_components() for entry in one.unrestricted}
# What training-operator adds to launchers of MPIJobs.
DELIVERY = {"name": "kubectl-delivery", "image": "site.invalid/trainyard/kubectl-delivery:0.2.0"}


@pytest.fixture(scope="module")
def space(server: ApiServer) -> Iterator[str]:
    """A namespace that enforces the level and nothing else."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE, "labels": labels}}
    assert server.apply(made).ok
    complete_namespace(server, SPACE)
    yield SPACE
    server.call("DELETE", f"/api/v1/namespaces/{SPACE}")


def refusal(server: ApiServer, space: str, spec: dict[str, Any]) -> str:
    """What the level says against a pod; accounts, claims, secrets and priority classes are not looked for."""
    left_out = ("serviceAccount", "serviceAccountName", "priorityClassName")
    bare = {key: value for key, value in spec.items() if key not in left_out}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": bare}
    bare.setdefault("restartPolicy", "Always")
    # A StatefulSet's claims become volumes of its pods.
    volumes = list(bare.get("volumes") or [])
    mounts = {mount["name"] for container in spec["containers"] for mount in container.get("volumeMounts") or []}
    bare["volumes"] = volumes + [
        {"name": name, "emptyDir": {}} for name in sorted(mounts - {volume["name"] for volume in volumes})
    ]
    return server.create(pod, namespace=space, dry_run=True).message


def test_the_platforms_pods_are_restricted_but_those_that_are_listed(
    server: ApiServer, space: str, objects: list[dict[str, Any]]
) -> None:
    reported = {
        f"{obj['kind']} {obj['metadata']['name']}": refusal(server, space, spec)
        for obj in objects
        for spec in helm.pod_specs(obj)
    }
    assert len(reported) > 12
    assert {name for name, message in reported.items() if message} == OPEN
    # The test's API server takes no privileged container at all, and says so first.
    words = ("violates PodSecurity", "privileged: Forbidden")
    assert {
        name: message for name, message in reported.items() if message and not any(w in message for w in words)
    } == {}


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    """What the profile with everything in the cluster installs, options included."""
    return package.render("kind", sets=options.switched())


def pods_of(node: Any) -> Iterator[dict[str, Any]]:
    """Every pod spec inside a job of whatever kind."""
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
        if isinstance(value, dict) and "containers" in value:
            yield value
        else:
            yield from pods_of(value)


def jobs() -> dict[str, list[dict[str, Any]]]:
    files = sorted((ROOT / "manifests" / "jobs").glob("*.yaml"))
    return {file.stem: list(pods_of(list(yaml.safe_load_all(file.read_text())))) for file in files}


@pytest.mark.parametrize("name", jobs())
def test_example_jobs_are_restricted(server: ApiServer, space: str, name: str) -> None:
    specs = jobs()[name]
    assert specs
    assert [refusal(server, space, spec) for spec in specs] == [""] * len(specs)


def test_what_the_operator_adds_to_workers_is_restricted(
    server: ApiServer, space: str, objects: list[dict[str, Any]]
) -> None:
    [held] = [o for o in objects if o["kind"] == "ConfigMap" and "initContainer.yaml" in o.get("data", {})]
    text = held["data"]["initContainer.yaml"]
    for name in ("InitContainerImage", "MaxTries", "MasterAddr"):
        text = text.replace("{{." + name + "}}", "a")
    added = yaml.safe_load(text)
    assert added
    assert all({"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"] for container in added)
    for spec in jobs()["pytorchjob"]:
        assert refusal(server, space, spec | {"initContainers": added}) == ""


@pytest.mark.parametrize("pod_level", [True, False], ids=["settings of the pod", "settings of each container"])
def test_what_the_operator_adds_to_launchers_is_closed_by_the_webhook(
    server: ApiServer, space: str, pod_level: bool
) -> None:
    spec = copy.deepcopy(jobs()["mpijob"][0])
    if not pod_level:
        settings = spec.pop("securityContext")
        for container in spec["containers"]:
            container["securityContext"] |= {"runAsNonRoot": True, "seccompProfile": settings["seccompProfile"]}
    spec["initContainers"] = [*spec.get("initContainers", []), dict(DELIVERY)]
    assert 'container "kubectl-delivery" must set' in refusal(server, space, spec)
    for change in launcher.patch({"spec": spec}):
        _, _, _, index, key = change["path"].split("/")
        spec["initContainers"][int(index)][key] = change["value"]
    assert refusal(server, space, spec) == ""
