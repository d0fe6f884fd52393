"""The file of pins, read as objects."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.errors import TrainyardError, UsageError
from trainyard.paths import ROOT
from trainyard_dev import versions
from trainyard_dev.tools import build
from trainyard_dev.tools.build import source_dir
from trainyard_dev.tools.cli import PURPOSES
from trainyard_dev.versions import is_version, load, read, resolved


def test_kubernetes_is_a_bare_number() -> None:
    assert load().kubernetes == load().raw["components"]["kubernetes"]
    assert load().kubernetes[0].isdigit()


def test_image_by_name() -> None:
    assert load().image("platform") == load().images["platform"].ref
    assert load().image("platform").startswith("site.invalid/trainyard/platform:")


def test_every_tool_set_has_a_folder_and_a_known_purpose() -> None:
    for name, tool in load().tools.items():
        assert (source_dir(tool) / "go.mod").exists(), name
        assert tool.purpose in PURPOSES
        assert tool.packages


def test_no_two_sets_build_a_binary_of_one_name() -> None:
    names = [name for tool in load().tools.values() if tool.default for _, name in tool.packages]
    assert len(names) == len(set(names))


def test_a_further_version_is_of_a_family_and_builds_what_that_builds() -> None:
    further = [tool for tool in load().tools.values() if not tool.default]
    assert "kubernetes-1.35" in [tool.name for tool in further]
    for tool in further:
        family = load().tools[tool.family]
        names = [{name for _, name in one.packages} for one in (tool, family)]
        assert names[0] <= names[1], tool.name
        assert not is_version(family.version, tool.version), tool.name


@pytest.mark.parametrize(
    ("wanted", "is_it"), [("1.34", True), ("1.34.2", True), ("v1.34.2", True), ("1.3", False), ("1.34.20", False)]
)
def test_a_version_by_its_beginning(wanted: str, is_it: bool) -> None:
    assert is_version("v1.34.2", wanted) is is_it


def test_every_image_has_its_inputs() -> None:
    for image in load().images.values():
        assert (ROOT / image.dir / "Containerfile").is_file(), image.name
        for entry in image.inputs:
            assert (ROOT / entry).exists(), f"{image.name}: {entry}"
            assert (ROOT / entry).is_relative_to(ROOT / image.context), f"{image.name}: {entry}"


def test_files_of_images_come_from_known_tool_sets() -> None:
    for image in load().images.values():
        for source in image.files.values():
            assert source.split(":")[0] in load().tools, image.name


def test_defaults() -> None:
    pause = load().images["pause"]
    assert (pause.own, pause.local, pause.context, pause.inputs) == (False, False, pause.dir, (pause.dir,))
    assert load().tools["kind"].tags == ()


def pins(**tools: dict[str, Any]) -> dict[str, Any]:
    """A small file of pins."""
    return {"trainyard": "0.2.0", "components": {"kubernetes": "1.34.2", "argo": "3.7.2"}, "tools": tools, "images": {}}


@pytest.mark.parametrize(
    ("text", "stands_for"),
    [
        ("v{kubernetes}", "v1.34.2"),
        ("x:{etcd}-0", "x:3.6.5-0"),
        ("{kubernetes.major}+{kubernetes.minor}", "1+34"),
        ("{kube-1.35} {kube-1.35.minor}", "1.35.4 35"),
        ("{trainyard}", "0.2.0"),
        ("${BASE} {}", "${BASE} {}"),
    ],
)
def test_a_version_in_place_of_its_name(text: str, stands_for: str) -> None:
    raw = pins(argo={"version": "v{argo}"}, etcd={"version": "v3.6.5"}, **{"kube-1.35": {"version": "v1.35.4"}})
    found = resolved(raw | {"pull": {"a": [text]}})
    assert found["pull"] == {"a": [stands_for]}
    assert found["tools"]["argo"]["version"] == "v3.7.2"


def test_a_name_that_is_no_pin() -> None:
    with pytest.raises(TrainyardError, match=r"versions.yaml: \{nothing\} names no version\. use a component"):
        resolved(pins() | {"pull": {"a": "x:{nothing}"}})


def test_no_version_of_a_component_is_repeated() -> None:
    """Components' pins are referenced elsewhere, never repeated; a digest is next to its tag."""
    written = yaml.safe_load((ROOT / "versions.yaml").read_text())
    components = {str(version) for version in written.pop("components").values()} | {written.pop("trainyard")}
    del written["previous"]
    written["published"] = {name: entry["by"] for name, entry in written["published"].items()}
    text = yaml.safe_dump(written)
    assert [version for version in components if version in text] == []


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match="the file can't be read"):
        read(tmp_path)


def test_another_kubernetes_under_the_test_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    own = versions.load()
    newest = max(tool.number for tool in own.tools.values() if tool.family == "kubernetes")
    monkeypatch.setenv(versions.CLUSTER, ".".join(newest.split(".")[:2]))
    try:
        versions.load.cache_clear()
        other = versions.load()
    finally:
        versions.load.cache_clear()
    assert newest == other.kubernetes != own.kubernetes
    assert other.image("kube-proxy").endswith(f":v{newest}") and other.image("node").endswith(f":v{newest}")
    assert (
        other.tools["kubernetes"].version
        == f"v{newest}"
        == other.tools["kubernetes"].stamp["k8s.io/component-base/version.gitVersion"]
    )
    assert build.source_dir(other.tools["kubernetes"]).name == f"kubernetes-{'.'.join(newest.split('.')[:2])}"
    # The digest on record is of the other version's image.
    assert other.exact("node-image").endswith(f":v{newest}")
    assert own.tools["etcd"] == other.tools["etcd"]


def test_a_kubernetes_that_no_set_has() -> None:
    raw = yaml.safe_load((ROOT / versions.FILE).read_text())
    first = min(spec["version"][1:] for spec in raw["tools"].values() if spec.get("family") == "kubernetes")
    with pytest.raises(UsageError, match=rf"no tool set builds Kubernetes 1\.12.*use {re.escape(first)},"):
        versions.with_cluster(raw, "1.12")
