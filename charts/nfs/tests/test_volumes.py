"""Workspaces, the shared volume and static NFS volumes: rendered objects for teams, and refused values."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rendering import Objects, Rendering
from trainyard.chart import helm
from trainyard.errors import TrainyardError
from trainyard.shell import run
from trainyard_dev import tools
from trainyard_dev.chart import parts

TEAMS = [{"name": "vision", "gid": 20001}, {"name": "speech", "gid": 20002}]
IMAGES = {
    "name": "imagenet",
    "server": "10.0.0.7",
    "path": "/exports/imagenet",
    "readOnly": True,
    "size": "1Ti",
    "teams": ["vision"],
}
SCRATCH = IMAGES | {"name": "scratch", "readOnly": False, "teams": ["*"], "gid": 30000, "mountOptions": ["nfsvers=4.2"]}
ADDRESS, EXPORT = "10.96.0.49", "/shared"


def values(volumes: list[dict[str, Any]], **storage: Any) -> dict[str, Any]:
    return {"global": {"contract": {"teams": TEAMS, "storage": {"volumes": volumes, **storage}}}}


@pytest.fixture(scope="module")
def objects(render: Rendering) -> Objects:
    """Two teams and two volumes of other servers."""
    return render(values([IMAGES, SCRATCH]), profile="on-prem")


def named(objects: Objects, kind: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Objects of a kind by namespace and name."""
    return {
        (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in objects if obj["kind"] == kind
    }


def test_the_shared_class_has_what_it_had(objects: Objects) -> None:
    """A class's parameters can't be changed: an upgrade from 0.1.0 would fail."""
    shared = named(objects, "StorageClass")["", "trainyard-shared"]
    assert shared["parameters"] == {
        "subDir": "${pvc.metadata.namespace}/${pvc.metadata.name}",
        "onDelete": "archive",
        "gid": "20000",
    }
    assert shared["reclaimPolicy"] == "Delete"


def test_the_workspace_class_of_the_csi_driver_keeps_its_files() -> None:
    """Rendered from the part alone: the driver's chart is not in the tests' package."""
    chosen = ("provisioner=csi", "mode=external", "server=nas.example", "path=/e")
    words = [word for given in chosen for word in ("--set", given)]
    helm = [
        tools.binary("helm"),
        "template",
        "trainyard",
        parts.chart_folder("nfs"),
        "--kube-version",
        tools.tested_kubernetes().number,
    ]
    made = [obj for obj in yaml.safe_load_all(run([*helm, *words]).stdout) if obj]
    assert {obj["kind"] for obj in made} == {"StorageClass"}
    workspace = named(made, "StorageClass")["", "trainyard-workspace"]
    assert workspace["reclaimPolicy"] == "Retain"
    assert workspace["parameters"] == {
        "server": "nas.example",
        "share": "/e",
        "subDir": "${pvc.metadata.namespace}/${pvc.metadata.name}",
        "onDelete": "retain",
    }


@pytest.mark.parametrize(
    "sets", [[], ["nfs.subDir=all/${pv.metadata.name}", "nfs.onDelete=delete"]], ids=["", "others"]
)
def test_the_workspace_class_keeps_and_finds_again(render: Rendering, sets: list[str]) -> None:
    found = named(render(profile="on-prem", sets=sets), "StorageClass")["", "trainyard-workspace"]
    assert found["reclaimPolicy"] == "Retain"
    assert found["parameters"] == {
        "subDir": "${pvc.metadata.namespace}/${pvc.metadata.name}",
        "onDelete": "retain",
        "existing": "adopt",
        "gid": "20000",
    }


def test_the_platform_writes_the_shared_volume(objects: Objects) -> None:
    claim = named(objects, "PersistentVolumeClaim")[helm.NAMESPACE, "shared"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["spec"]["storageClassName"] == "trainyard-workspace"
    assert claim["spec"]["storageClassName"] in {name for _, name in named(objects, "StorageClass")}
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


@pytest.mark.parametrize("team", ["vision", "speech"])
def test_each_team_reads_the_shared_volume(objects: Objects, team: str) -> None:
    volume = named(objects, "PersistentVolume")["", f"trainyard-shared-{team}"]
    spec = volume["spec"]
    assert spec["nfs"] == {"server": ADDRESS, "path": f"{EXPORT}/{helm.NAMESPACE}/shared", "readOnly": True}
    # kubelet looks at the option alone.
    assert "ro" in spec["mountOptions"]
    assert volume["metadata"]["annotations"]["pv.beta.kubernetes.io/gid"] == "20000"
    claim = named(objects, "PersistentVolumeClaim")[team, "shared"]
    assert claim["spec"]["accessModes"] == spec["accessModes"] == ["ReadOnlyMany"]


def test_static_volumes_and_their_claims_are_meant_for_each_other(objects: Objects) -> None:
    claims = named(objects, "PersistentVolumeClaim")
    volumes = {
        key: volume
        for key, volume in named(objects, "PersistentVolume").items()
        if "trainyard.io/static-volume" in volume["metadata"]["labels"]
    }
    assert {name for _, name in volumes} == {
        "trainyard-shared-vision",
        "trainyard-shared-speech",
        "trainyard-imagenet.vision",
        "trainyard-scratch.vision",
        "trainyard-scratch.speech",
    }
    for (_, name), volume in volumes.items():
        spec, reference = volume["spec"], volume["spec"]["claimRef"]
        claim = claims[reference["namespace"], reference["name"]]
        assert claim["spec"]["volumeName"] == name
        assert claim["spec"]["storageClassName"] == spec["storageClassName"] == ""
        assert claim["spec"]["accessModes"] == spec["accessModes"]
        assert spec["persistentVolumeReclaimPolicy"] == "Retain"
        assert "uid" not in reference
        for obj in (claim, volume):
            assert obj["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
        # By these the provisioner makes it usable again, and the removal of a team finds it.
        assert volume["metadata"]["labels"]["trainyard.io/static-volume"] == reference["name"]
        assert volume["metadata"]["labels"]["trainyard.io/team"] == reference["namespace"]


def test_a_volume_of_another_server_is_as_its_values_say(objects: Objects) -> None:
    volumes = named(objects, "PersistentVolume")
    readonly, writable = volumes["", "trainyard-imagenet.vision"], volumes["", "trainyard-scratch.speech"]
    assert readonly["spec"]["nfs"] == {"server": "10.0.0.7", "path": "/exports/imagenet", "readOnly": True}
    assert readonly["spec"]["mountOptions"] == ["nfsvers=4.1", "hard", "ro"]
    assert "pv.beta.kubernetes.io/gid" not in readonly["metadata"]["annotations"]
    assert writable["spec"]["mountOptions"] == ["nfsvers=4.2"]
    assert writable["spec"]["accessModes"] == ["ReadWriteMany"]
    assert writable["metadata"]["annotations"]["pv.beta.kubernetes.io/gid"] == "30000"
    assert writable["spec"]["capacity"] == {"storage": "1Ti"}


def test_without_the_nfs_part_only_volumes_of_other_servers_are_left(render: Rendering) -> None:
    made = render(values([IMAGES]) | {"nfs": {"enabled": False}}, profile="on-prem")
    assert list(named(made, "PersistentVolume")) == [("", "trainyard-imagenet.vision")]
    assert (helm.NAMESPACE, "shared") not in named(made, "PersistentVolumeClaim")


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        (values([IMAGES | {"name": "shared"}]), 'every team has a claim "shared" already'),
        (values([IMAGES | {"name": "workspace"}]), 'every team has a claim "workspace" already'),
        (values([IMAGES, SCRATCH | {"name": "imagenet"}]), 'names "imagenet" twice'),
        (values([IMAGES | {"teams": ["visoin"]}]), '"imagenet" is for the team "visoin"'),
        (values([], workspaceClass="trainyard-shared"), 'workspaceClass and sharedClass are both "trainyard-shared"'),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_volumes_that_do_not_fit_are_reported(render: Rendering, given: dict[str, Any], reported: str) -> None:
    [error] = render.errors(given)
    assert error.startswith("global.contract.storage.")
    assert reported in error


def test_volumes_that_fit_are_taken(render: Rendering) -> None:
    assert render.errors(values([IMAGES, SCRATCH])) == []


@pytest.mark.parametrize(
    ("volume", "word"),
    [
        (IMAGES | {"path": "/exports/../etc"}, "path"),
        (IMAGES | {"path": "exports"}, "path"),
        (IMAGES | {"path": "/exports/.trainyard/claims"}, "path"),
        (IMAGES | {"server": "10.0.0.7:/etc other"}, "server"),
        (IMAGES | {"mountOptions": ["ro,exec"]}, "mountOptions"),
        (IMAGES | {"teams": []}, "teams"),
        (IMAGES | {"size": "lots"}, "size"),
        (IMAGES | {"readonly": True}, "readonly"),
        ({key: value for key, value in IMAGES.items() if key != "readOnly"}, "readOnly"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_hostile_or_misspelt_volume_is_refused_by_name(render: Rendering, volume: dict[str, Any], word: str) -> None:
    assert word in render.refusal(values([volume]))


@pytest.mark.parametrize("place", ["../x", "/etc", "a/../../b", ".trainyard/claims", "${pvc.annotations.path}", "a//b"])
def test_a_directory_that_leads_outside_is_refused(render: Rendering, place: str) -> None:
    with pytest.raises(TrainyardError, match="subDir"):
        render.errors({"nfs": {"subDir": place}})


def test_only_the_test_profile_lets_a_port_forward_in(rendered: dict[str, Objects]) -> None:
    """From 127.0.0.1 come all who may forward ports; in the profile kind it sees two directories of its own."""
    for profile, objects in rendered.items():
        config = named(objects, "ConfigMap")[helm.NAMESPACE, "trainyard-nfs"]["data"]["ganesha.conf"]
        open_exports = [
            part.split("Pseudo = ")[1].split(";")[0] for part in config.split("EXPORT {") if "127.0.0.1" in part
        ]
        assert open_exports == (["/kernel-check", "/kernel-check-ro"] if profile == "kind" else [])


def test_the_provisioner_may_do_no_more_than_it_does(objects: Objects) -> None:
    role = named(objects, "ClusterRole")["", "trainyard-nfs-provisioner"]
    rules = {tuple(rule["resources"]): sorted(rule["verbs"]) for rule in role["rules"]}
    assert rules == {
        ("persistentvolumes",): ["create", "delete", "get", "list", "patch", "watch"],
        ("persistentvolumeclaims",): ["get", "list", "watch"],
        ("namespaces",): ["get"],
        ("storageclasses",): ["get", "list", "watch"],
        ("events",): ["create", "patch"],
    }
