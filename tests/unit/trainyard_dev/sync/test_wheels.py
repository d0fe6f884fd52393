"""`trainyard versions wheels`: new hashes are queried, and each requirement is present or excluded."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.sync import wheels

LIST = """
sets: {store: [minio, urllib3]}
images:
  a: {sets: [store], packages: [jax], without: [scipy]}
  b: {packages: [horovod], source: true}
versions: {jax: 1.10, horovod: 0.28}
otherwise: [{images: [a], why: x, versions: {urllib3: '2.8'}}]
"""
A = """# JAX
# for the CPU.
jax==1.10 --hash=sha256:11
minio==7.2 --hash=sha256:12
urllib3==2.8 --hash=sha256:13
"""
REQUIRES = {
    "jax": ("scipy>=1", "urllib3<3", "tpu; extra == 'tpu'", "old; python_version < '3.10'"),
    "minio": ("urllib3>=1",),
}


class Index:
    """A hash for each package, and a note of what was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, str], bool]] = []
        self.requires: dict[str, tuple[str, ...]] = dict(REQUIRES)

    def __call__(self, pins: Mapping[str, str], source: bool) -> dict[str, wheels.Release]:
        self.asked.append((dict(pins), source))
        return {name: wheels.Release(f"sha256:{len(name)}f", self.requires.get(name, ())) for name in pins}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "requirements.lock").write_text("# made\nminio==7.2\nurllib3==2.7\n")
    for image in "ab":
        (tmp_path / "images" / image).mkdir(parents=True)
    (tmp_path / "images/requirements.yaml").write_text(LIST)
    (tmp_path / "images/a/requirements.txt").write_text(A)
    (tmp_path / "images/b/requirements.txt").write_text("horovod==0.28 \\\n    --hash=sha256:7f\n")
    return tmp_path


def test_what_is_pinned_already_stays_to_the_byte(tree: Path) -> None:
    index = Index()
    assert wheels.compile_all(tree, index) == ([], [])
    assert index.asked == []
    assert (tree / "images/a/requirements.txt").read_text() == A


def test_the_lock_moves_an_image(tree: Path) -> None:
    index = Index()
    (tree / "requirements.lock").write_text("minio==7.3\nurllib3==2.7\n")
    assert [one[0] for one in wheels.outdated(tree)] == ["images/a/requirements.txt"]
    assert wheels.compile_all(tree, index) == (["images/a/requirements.txt"], [])
    assert index.asked == [({"minio": "7.3"}, False)]
    assert (tree / "images/a/requirements.txt").read_text() == (
        "# JAX\n# for the CPU.\njax==1.10 \\\n    --hash=sha256:11\n"
        "minio==7.3 \\\n    --hash=sha256:5f\nurllib3==2.8 \\\n    --hash=sha256:13\n"
    )
    assert list(wheels.outdated(tree)) == []


def test_all_hashes_are_asked_anew(tree: Path) -> None:
    index = Index()
    written, unmet = wheels.compile_all(tree, index, again=True)
    assert (written, unmet) == (["images/a/requirements.txt"], [])
    assert index.asked == [({"jax": "1.10", "minio": "7.2", "urllib3": "2.8"}, False), ({"horovod": "0.28"}, True)]


@pytest.mark.parametrize(
    ("wish", "line"),
    [
        ("numpy", "a: jax requires numpy, which is absent"),
        ("urllib3<2", "a: jax requires urllib3<2, which is 2.8"),
        ("linux; sys_platform == 'linux'", "a: jax requires linux, which is absent"),
    ],
)
def test_what_a_package_asks_for_and_nobody_brings(tree: Path, wish: str, line: str) -> None:
    index = Index()
    index.requires["jax"] = (wish,)
    assert wheels.compile_all(tree, index, again=True)[1] == [line]


def test_a_new_image_needs_no_file(tree: Path) -> None:
    (tree / "images/b/requirements.txt").unlink()
    wheels.compile_all(tree, Index())
    assert (tree / "images/b/requirements.txt").read_text() == (
        "# What images/requirements.yaml says of b.\nhorovod==0.28 \\\n    --hash=sha256:7f\n"
    )


def test_a_list_that_is_wrong_writes_nothing(tree: Path) -> None:
    (tree / "images/requirements.yaml").write_text(LIST.replace("jax: 1.10, ", ""))
    with pytest.raises(TrainyardError, match="jax of a has no version"):
        wheels.compile_all(tree, Index())


def test_the_repository_is_written_already(trainyard: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "ask", lambda pins, source: pytest.fail(f"asked for {pins}"))
    assert trainyard("versions", "wheels").out == "every image pins its packages\n"


def test_what_nobody_brings_is_an_error(
    tree: Path, trainyard: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index()
    index.requires["jax"] = ("numpy",)
    monkeypatch.setattr("trainyard_dev.sync.cli.ROOT", tree)
    monkeypatch.setattr(wheels, "ask", index)
    ended = trainyard("versions", "wheels", "--all")
    assert ended.code == 1
    assert ended.out == "written: images/a/requirements.txt\na: jax requires numpy, which is absent\n"
    assert "list them under `without`" in ended.error()


@pytest.mark.parametrize(("python", "taken"), [(">=3.9", True), ("", True), ("<3.13,>=3.9", False)])
def test_a_package_that_is_not_for_the_images_python(python: str, taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip is told not to compare with the Python that runs it, so the comparison is ours."""

    def pip(argv: list[str], **_: Any) -> None:
        [report] = [Path(word.partition("=")[2]) for word in argv if word.startswith("--report=")]
        package = {
            "metadata": {"name": "One_Two", "version": "1.0", "requires_python": python},
            "download_info": {"archive_info": {"hashes": {"sha256": "ab"}}},
        }
        report.write_text(json.dumps({"install": [package]}))

    monkeypatch.setattr(wheels, "run", pip)
    if taken:
        assert wheels.ask({"one-two": "1.0"}, source=False)["one-two"].hash == "sha256:ab"
        return
    with pytest.raises(TrainyardError, match=r"one-two requires Python <3\.13,>=3\.9.*images have Python 3\.13"):
        wheels.ask({"one-two": "1.0"}, source=False)
