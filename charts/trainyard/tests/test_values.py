"""Wrong values are refused by name before anything is installed."""

from __future__ import annotations

import pytest
import yaml

from rendering import Rendering
from trainyard.contract import renamed
from trainyard_dev.chart import parts

POOLS = [
    "global.contract.nodePools[0].name=gpu",
    "global.contract.nodePools[0].kind=gpu",
    "global.contract.nodePools[0].gpu.resource=nvidia.com/gpu",
]


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["nodePrepp.enabled=true"], ["nodePrepp"]),
        (["nodePrep.period=3"], ["nodePrep", "period"]),
        (["nodePrep.periodSeconds=0"], ["periodSeconds", "minimum"]),
        (["global.contract.queus=x"], ["queus"]),
        ([*POOLS, "global.contract.nodePools[0].gpu.count=0"], ["gpu/count", "minimum"]),
        ([*POOLS, "global.contract.nodePools[0].gpu.cout=4"], ["cout"]),
        (["global.contract.images.platform=trainyard/platform:latest"], ["images/platform"]),
        (["global.contract.images.platform=trainyard/platform"], ["images/platform"]),
        (["volcano.custom.scheduler_config_overide=x"], ["scheduler_config_overide"]),
        (["volcano.bassic.image_registry=x"], ["bassic"]),
        (["nvidia-device-plugin.nvidiaDriveRoot=/x"], ["nvidiaDriveRoot"]),
        (["minio.persistance.size=1Gi"], ["persistance"]),
        (["minio.persistence.size=lots"], ["persistence/size"]),
        (["training-operator.schemes={mxjob}"], ["schemes"]),
        (["setup.timeoutSeconds=soon"], ["timeoutSeconds"]),
        (["global.contract.defaultQueue=nobody"], ["defaultQueue", "nobody"]),
        (["global.contract.storage.s3.mode=external"], ["storage.s3.endpoint"]),
        (["nodePrep.driverRoot=/other"], ["nvidiaDriverRoot", "/other"]),
        (["global.imageRegistry=docker.io"], ["global.imageRegistry", "leave it empty"]),
        (["global.imageRegistry=https://mirror.example"], ["imageRegistry"]),
        (["nvidia-device-plugin.tolerations[0].key=other"], ["tolerations", "nvidia.com/gpu=present:NoSchedule"]),
        (["minio.enabled=false"], ["minio.enabled"]),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) and "=" in value[-1] else "",
)
def test_wrong_value_is_refused_by_name(sets: list[str], words: list[str], render: Rendering) -> None:
    said = render.refusal(sets=sets)
    assert all(word in said for word in words), said


@pytest.mark.parametrize("rename", renamed.table(), ids=lambda rename: ".".join(rename.old))
def test_an_old_name_is_refused_with_the_present_one(rename: renamed.Rename, render: Rendering) -> None:
    """The chart takes the new name with each new word, and says both for each old one."""
    for old, new in (rename.values or {"x": "x"}).items():
        said = f"{rename.sentence(old)}; write {rename.new[-1]}: {new}, or let `trainyard values"
        assert said in render.refusal(sets=[f"{'.'.join(rename.old)}={old}"])
        if rename.values:
            assert render(sets=[f"{'.'.join(rename.new)}={new}"])


def test_an_old_name_set_to_null_is_none(render: Rendering) -> None:
    for rename in renamed.table():
        assert render(sets=[f"{'.'.join(rename.old)}=null"])


def test_csi_without_its_chart_is_refused_in_one_sentence(render: Rendering) -> None:
    assert "made without the csi-driver-nfs chart" in render.refusal(sets=["nfs.provisioner=csi"])


def test_unknown_profile_is_refused(render: Rendering) -> None:
    assert "use one of" in render.refusal(profile="laptop")


def test_every_own_value_is_described() -> None:
    """A comment stands above each key of the umbrella's own blocks and of our subcharts, or above its parent."""
    for chart in ("trainyard", *parts.own()):
        file = parts.chart_folder(chart) / "values.yaml"
        if not file.exists():
            continue
        lines = file.read_text().splitlines()
        bare = [
            line
            for before, line in zip(["", *lines], lines, strict=False)
            if line and not line.startswith((" ", "#")) and line.endswith(":") and not before.startswith("#")
        ]
        assert [line for line in bare if line not in ("global:",)] == [] or chart != "trainyard"


def test_dependencies_are_pinned_exactly() -> None:
    meta = yaml.safe_load((parts.UMBRELLA / "Chart.yaml").read_text())
    for dependency in meta["dependencies"]:
        assert dependency["version"].replace(".", "").isdigit(), dependency["name"]
        assert dependency["condition"] == f"{dependency['name']}.enabled"
