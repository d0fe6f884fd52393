"""Images pushed to a site's registry by the command line."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from trainyard_dev.versions import load


@pytest.fixture
def pushing(program: Callable[[str, str], Path], cache: Path, tmp_path: Path) -> Path:
    """Podman that has every image already and writes down what it tags and pushes."""
    calls = tmp_path / "calls"
    calls.touch()
    program("docker", "exit 1")
    program(
        "podman",
        f"""case "$1" in
        info) echo 5.0;;
        tag) echo "$1 $3" >> {calls};;
        push) echo "$1 $2" >> {calls}; [ ! -e {tmp_path}/refuse ] || {{ echo "unauthorized" >&2; exit 125; }};;
        esac""",
    )
    return calls


@pytest.mark.parametrize("cuda", [False, True])
def test_our_own_images_go_to_a_registry(pushing: Path, trainyard: Callable[..., Any], cuda: bool) -> None:
    """Images with CUDA, of several GB, only where they are requested."""
    more = ["--cuda"] if cuda else []
    ended = trainyard("images", "push", "registry.example.org/mirror/", "--images", "pull", *more)
    assert (ended.code, ended.err) == (0, "")
    own = [i.ref for i in load().images.values() if i.own and not i.local and (cuda or "-cuda:" not in i.ref)]
    due = [f"{verb} registry.example.org/mirror/{ref.partition('/')[2]}" for ref in own for verb in ("tag", "push")]
    assert pushing.read_text().splitlines() == due
    assert f"[{len(own)}/{len(own)}] registry.example.org/mirror/trainyard/" in ended.out


def test_every_image_goes_to_a_registry(pushing: Path, trainyard: Callable[..., Any]) -> None:
    assert trainyard("images", "push", "registry.example.org", "--images", "build", "--all").code == 0
    pushed = [line.partition(" ")[2] for line in pushing.read_text().splitlines() if line.startswith("push")]
    assert load().image("vc-scheduler").replace("docker.io", "registry.example.org") in pushed
    assert "registry.example.org/pause:3.10" in pushed
    assert len(pushed) == len(set(pushed))


def test_a_registry_that_refuses(pushing: Path, trainyard: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "refuse").touch()
    error = trainyard("images", "push", "registry.example.org", "--images", "pull").error()
    assert (
        "failed with code 125: unauthorized. check that you are allowed to push: `podman login registry.example.org`."
        in error
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["https://registry.example.org", "--images", "pull"], "write it without a scheme: registry.example.org"),
        (["registry.example.org", "--images", "pull", "--all"], "upstream's images are only built with --images build"),
    ],
)
def test_wrong_usage_of_push(words: list[str], says: str, pushing: Path, trainyard: Callable[..., Any]) -> None:
    ended = trainyard("images", "push", *words)
    assert ended.code == 2
    assert says in ended.error()


def test_a_mirror_that_is_a_url_is_refused_before_anything_is_built(
    trainyard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainyard_dev.mirror.cli._readable", lambda *_: pytest.fail("images were built"))
    ended = trainyard("images", "mirror", "https://registry.example.org")
    assert (ended.code, "write it without a scheme" in ended.err) == (2, True)


def test_an_image_that_is_not_known_is_refused_with_those_that_are(
    pushing: Path, trainyard: Callable[..., Any]
) -> None:
    ended = trainyard("images", "build", "absent")
    assert ended.code == 2 and "unknown image: absent" in ended.error()
    assert "trainer-torch-cuda" in ended.error()


@pytest.mark.parametrize("cuda", [False, True])
def test_a_copy_has_images_with_cuda_only_where_they_are_requested(
    trainyard: Any, monkeypatch: pytest.MonkeyPatch, cuda: bool
) -> None:
    """On-prem, whose GPUs compute. The rest of the command would build images."""
    refs: list[str] = []
    readable = lambda _, wanted, how: nullcontext(refs.extend(wanted) or [])  # noqa: E731
    monkeypatch.setattr("trainyard_dev.mirror.sources.readable", readable)
    ended = trainyard("images", "mirror", "registry.example.org", "--profile", "on-prem", *(["--cuda"] if cuda else []))
    large = {image.name: image for image in load().images.values() if image.large}
    line = "".join(f", {name} ({large[name].large} GB)" for name in sorted(large))[2:]
    assert ended.code == 0 and (f"Omitted: {line}. To include them, add --cuda.\n" in ended.out) is not cuda
    assert {image.ref for image in large.values()} & set(refs) == ({i.ref for i in large.values()} if cuda else set())
    assert load().image("trainer-torch") in refs
