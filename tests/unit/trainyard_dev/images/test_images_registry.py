"""The registry that nodes use first: names in it, pushed images, and images of a user."""

import dataclasses
import json
from pathlib import Path

import pytest
from images_demo import DEMO, FakeEngine

from trainyard.errors import TrainyardError
from trainyard_dev.cluster import lifecycle
from trainyard_dev.images import build as images
from trainyard_dev.images import registry
from trainyard_dev.versions import load


@pytest.mark.parametrize(
    ("ref", "split"),
    [
        ("registry.k8s.io/coredns/coredns:v1.12.1", ("coredns/coredns", "v1.12.1")),
        ("site.invalid/trainyard/platform:0.1.0", ("trainyard/platform", "0.1.0")),
        ("registry.k8s.io/pause:3.10", ("pause", "3.10")),
        ("localhost:5000/a/b:1", ("a/b", "1")),
    ],
)
def test_repository(ref: str, split: tuple[str, str]) -> None:
    assert registry.repository(ref) == split


def test_no_two_images_meet_under_one_name_in_the_mirror() -> None:
    served = [i for i in load().images.values() if not i.local]
    names = [registry.repository(ref) for image in served for ref in (image.ref, *image.also)]
    assert len(names) == len(set(names))


def test_mirror_config_asks_the_own_registry_for_every_host(tmp_path: Path) -> None:
    assert registry.mirror_config(tmp_path) == tmp_path
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.toml")] == ["_default/hosts.toml"]
    text = (tmp_path / "_default/hosts.toml").read_text()
    assert text.startswith('[host."http://trainyard-registry:5000"]\n')
    assert '"pull", "resolve"' in text
    assert "push" not in text


def test_pushed_counts_only_for_this_content_and_while_the_blobs_are_there(image_tree: Path, cache: Path) -> None:
    engine = FakeEngine()
    image = dataclasses.replace(DEMO, also=("site.invalid/trainyard/demo:extra",))
    assert not registry.is_pushed(image, "b")
    registry.push(engine, image, "b", "127.0.0.1:4321")
    targets = [call[-1] for call in engine.calls if call[0] == "push"]
    assert targets == [f"docker://127.0.0.1:4321/trainyard/demo:{tag}" for tag in ("0.1.0", "extra")]
    assert not registry.is_pushed(image, "b")  # nothing arrived in the storage
    for tag in ("0.1.0", "extra"):
        link = cache / f"registry/docker/registry/v2/repositories/trainyard/demo/_manifests/tags/{tag}/current/link"
        link.parent.mkdir(parents=True)
        link.write_text("sha256:x")
    assert registry.is_pushed(image, "b")
    assert not registry.is_pushed(image, "another base")
    (image_tree / "images/demo/Containerfile").write_text("FROM scratch\n")
    assert not registry.is_pushed(image, "b")


def test_the_note_of_pushes_names_images_and_keys(image_tree: Path, cache: Path) -> None:
    registry.push(FakeEngine(), DEMO, "b", "h:1")
    assert json.loads((cache / "registry/pushed.json").read_text()) == {"demo": images.content_key(DEMO, "b")}


def test_a_broken_note_of_pushes_means_push_again(image_tree: Path, cache: Path) -> None:
    registry.storage().joinpath("pushed.json").write_text("{half")
    assert not registry.is_pushed(DEMO, "b")


def test_docker_pushes_under_a_tag_of_its_own() -> None:
    engine = FakeEngine("docker")
    registry.push_as(engine, "local:1", "127.0.0.1:4321/a:1")
    assert engine.calls == [["tag", "local:1", "127.0.0.1:4321/a:1"], ["push", "127.0.0.1:4321/a:1"]]


@pytest.mark.parametrize(
    ("ref", "pushed", "wanted"),
    [
        ("docker.io/me/app:1", "me/app:1", "docker.io/me/app:1"),
        ("me/app:1", "me/app:1", "docker.io/me/app:1"),
        ("localhost/me/app:1", "me/app:1", "docker.io/me/app:1"),
        ("registry.example.org:5000/me/app:1", "me/app:1", "docker.io/me/app:1"),
        ("localhost:5000/me/app:1", "me/app:1", "docker.io/me/app:1"),
        # Kubernetes reads app:1 as docker.io/library/app:1.
        ("app:1", "library/app:1", "docker.io/library/app:1"),
        ("localhost/app:1", "library/app:1", "docker.io/library/app:1"),
        ("me/app", "me/app:latest", "docker.io/me/app:latest"),
    ],
)
def test_loading_an_image_of_a_user(ref: str, pushed: str, wanted: str) -> None:
    engine = FakeEngine()
    engine.images.add(ref)
    assert lifecycle.load_image(engine, ref) == wanted
    assert engine.calls[-1][-2:] == [ref, f"docker://127.0.0.1:4321/{pushed}"]


def test_loading_an_image_that_is_not_there() -> None:
    with pytest.raises(TrainyardError, match=r"podman has no image me/app:1\. build or pull it first: `podman images`"):
        lifecycle.load_image(FakeEngine(), "me/app:1")


def test_loading_an_image_without_a_cluster() -> None:
    engine = FakeEngine()
    engine.images = {"me/app:1", "no-registry"}
    with pytest.raises(TrainyardError, match=r"registry is not running\. run `trainyard cluster up`"):
        lifecycle.load_image(engine, "me/app:1")
