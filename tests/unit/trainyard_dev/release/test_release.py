"""What a release is made of: digests in the chart's values, a clean tree, and a page of six commands."""

from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard.shell import run
from trainyard_dev.e2e import walks
from trainyard_dev.release import artifacts, build, proof, signing, site

DIGEST = f"sha256:{'a' * 64}"
VALUES = """images:
  platform: trainyard/platform:0.4.0
  trainerTorch: trainyard/trainer-torch-cuda:0.4.0
  other: docker.io/volcanosh/vc-scheduler:v1
image:
  repository: trainyard/platform
  tag: 0.4.0
"""


def test_values_name_our_images_by_digest(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(VALUES)
    artifacts.pin(tmp_path, {"trainyard/platform:0.4.0": DIGEST})
    assert (tmp_path / "values.yaml").read_text() == VALUES.replace("platform:0.4.0", f"platform@{DIGEST}").replace(
        "tag: 0.4.0", f"tag: 0.4.0@{DIGEST}"
    )


def test_an_image_without_a_digest_ends_it(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("image: trainyard/strange:0.4.0\n")
    with pytest.raises(TrainyardError, match=r"has no image trainyard/strange:0\.4\.0"):
        artifacts.pin(tmp_path, {})


def test_a_changed_tree_is_not_released(tmp_path: Path) -> None:
    run(["git", "init", "-q", tmp_path])
    (tmp_path / "new.py").write_text("")
    with pytest.raises(TrainyardError, match=r"differs from its commit: \?\? new.py"):
        build.release(tmp_path / "out", tree=tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_tag_is_not_signed() -> None:
    signer = object.__new__(signing.Signer)
    with pytest.raises(TrainyardError, match="has no digest"):
        signer.sign(["registry.example.org/charts/trainyard:0.4.0"])


def test_the_page_takes_six_commands_and_the_flags_that_are_tested() -> None:
    commands = walks.read(proof.PAGE.read_text()).walk(proof.WALK).commands
    assert len(commands) <= proof.MOST_COMMANDS
    assert all(flag in commands[0] for flag in signing.VERIFY)
    assert site.PREFIX in proof.PAGE.read_text()


def test_no_release_is_an_error_with_the_command_to_run(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError) as raised:
        proof.newest(tmp_path)
    assert "make release" in raised.value.hint
