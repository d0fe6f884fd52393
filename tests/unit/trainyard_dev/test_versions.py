"""The file of pins, read as objects."""

from __future__ import annotations

from trainyard.paths import ROOT
from trainyard_dev.tools.cli import PURPOSES
from trainyard_dev.versions import load


def test_kubernetes_is_a_bare_number() -> None:
    assert load().kubernetes == load().raw["components"]["kubernetes"]
    assert load().kubernetes[0].isdigit()


def test_image_by_name() -> None:
    assert load().image("platform") == load().images["platform"].ref
    assert load().image("platform").startswith("docker.io/trainyard/platform:")


def test_every_tool_set_has_a_folder_and_a_known_purpose() -> None:
    for name, tool in load().tools.items():
        assert (ROOT / "tools" / (tool.of or name) / "go.mod").exists(), name
        assert tool.purpose in PURPOSES
        assert tool.packages


def test_no_two_sets_build_a_binary_of_one_name() -> None:
    names = [name for tool in load().tools.values() for _, name in tool.packages]
    assert len(names) == len(set(names))


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
