"""Upstream's charts are changed in their copies, and only as long as they are as reviewed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev import patches
from trainyard_dev.chart import adapt, parts

CSI = """\
kind: ClusterRole
metadata:
  name: a
{{ include "nfs.labels" . | indent 2 }}
rules:
  - apiGroups: [""]
    resources: ["nodes"]
    verbs: ["get"]
  - apiGroups: [""]
    resources: ["secrets"]
    verbs: ["get"]
---
"""


RIGHTS = {file.stem.partition("-rights-")[2]: file for file in sorted(patches.of("volcano").glob("*-rights-*.patch"))}


@pytest.fixture
def volcano(tmp_path: Path) -> Path:
    """A copy of Volcano's chart with all patches but those of rights."""
    folder = tmp_path / "volcano"
    run(["cp", "-r", "--no-preserve=mode", parts.chart_folder("volcano"), folder])
    for file in sorted(patches.of("volcano").glob("*.patch")):
        if file not in RIGHTS.values():
            patches.apply(file, folder)
    return folder


def test_rights_of_every_component_are_replaced() -> None:
    assert list(RIGHTS) == ["scheduler", "controllers", "admission", "admission-init"]


@pytest.mark.parametrize("component", RIGHTS)
def test_rights_are_replaced_and_the_rest_stays(volcano: Path, component: str) -> None:
    file = volcano / f"templates/{component}.yaml"
    before = file.read_text()
    patches.apply(RIGHTS[component], volcano)
    text = file.read_text()
    assert text.count("\nrules:\n") >= 1
    assert text.startswith(before.split("\nrules:\n")[0])
    assert text.endswith(before.split("\nroleRef:\n")[-1])


@pytest.mark.parametrize("component", RIGHTS)
@pytest.mark.parametrize("where", ["first", "last"])
def test_a_release_with_other_rights_stops_the_packaging(volcano: Path, component: str, where: str) -> None:
    file = volcano / f"templates/{component}.yaml"
    head, rules, tail = re.split(r"(^rules:\n.*?)(?=^---$)", file.read_text(), maxsplit=1, flags=re.M | re.S)
    new = '  - apiGroups: ["new"]\n'
    rules = rules.replace("rules:\n", f"rules:\n{new}") if where == "first" else rules + new
    file.write_text(head + rules + tail)
    with pytest.raises(
        TrainyardError, match=f"{component}.patch: the volcano chart changed: .*then recreate the patch"
    ):
        patches.apply(RIGHTS[component], volcano)


@pytest.mark.parametrize("component", RIGHTS)
def test_rights_are_rules_of_rbac(component: str) -> None:
    added = [line[1:] for line in RIGHTS[component].read_text().splitlines() if line.startswith("+") and line[1] != "+"]
    plain = re.sub(r"\{\{.*?\}\}", "x", "\n".join(line for line in added if not line.startswith("{{")))
    found = [doc["rules"] for doc in yaml.safe_load_all(f"rules:\n{plain}") if "rules" in doc]
    assert found
    for rule in (rule for rules in found for rule in rules):
        assert {"apiGroups", "resources", "verbs"} <= set(rule) <= {
            "apiGroups", "resources", "verbs", "resourceNames",
        }, component  # fmt: skip


def test_an_adapted_line_that_is_gone_stops_the_packaging(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates/daemonset-device-plugin.yml").write_text("kind: DaemonSet\n")
    for entry in adapt.DROPPED["nvidia-device-plugin"]:
        (tmp_path / entry).mkdir(parents=True)
    with pytest.raises(TrainyardError) as caught:
        adapt.adapt("nvidia-device-plugin", tmp_path)
    assert str(caught.value) == (
        "charts/nvidia-device-plugin/patches/01-no-token.patch: the nvidia-device-plugin chart changed: the lines that "
        "it changes in templates/daemonset-device-plugin.yml (upstream's line 51) are there 0 times. check if "
        '"It asks the API for nothing unless its configuration comes from a ConfigMap" is still needed, then recreate '
        "the patch (charts/README.md)."
    )


@pytest.mark.parametrize("part", sorted(folder.parent.name for folder in ROOT.glob("charts/*/patches")))
def test_git_makes_the_same_of_every_patch(tmp_path: Path, part: str) -> None:
    """They stay plain diffs, which any tool applies."""
    patched, gits = tmp_path / "patched", tmp_path / "git"
    for folder in (patched, gits):
        run(["cp", "-r", "--no-preserve=mode", parts.chart_folder(part), folder])
        for file in (f for f in folder.rglob("*") if f.is_file()):
            file.write_bytes(file.read_bytes().replace(b"\r\n", b"\n"))  # as packaging reads them
    patches.apply_all(patches.of(part), patched)
    files = sorted(patches.of(part).glob("*.patch"))
    assert files
    run(["git", "init", "--quiet", gits])
    run(["git", "apply", *files], cwd=gits)
    shutil.rmtree(gits / ".git")
    assert contents(patched) == contents(gits)
    assert contents(patched) != contents(parts.chart_folder(part))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def test_the_csi_driver_gets_no_secrets_and_keeps_its_helpers_to_itself(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "rbac.yaml").write_text(CSI)
    adapt.adapt("csi-driver-nfs", tmp_path)
    text = (tmp_path / "templates" / "rbac.yaml").read_text()
    assert "secrets" not in text
    assert '"nodes"' in text
    assert '"csi-nfs.labels"' in text


def test_a_csi_driver_with_other_rules_stops_the_packaging(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "rbac.yaml").write_text(CSI.replace('["secrets"]', '["secrets", "nodes"]'))
    with pytest.raises(TrainyardError, match="its rule for Secrets was not found"):
        adapt.adapt("csi-driver-nfs", tmp_path)
