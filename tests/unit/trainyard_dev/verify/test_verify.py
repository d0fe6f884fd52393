"""`trainyard verify`: each kind of differing copy is found, named by file, with what to change."""

import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainyard_dev.sync import images, invariants, modules, pages
from trainyard_dev.verify import cli as verify

BASE = "docker.io/library/debian:bookworm-1"
VERSIONS = """
trainyard: 0.1.0
components: {kubernetes: 1.34.2, volcano: 1.14.1}
pull:
  node-image: docker.io/kindest/node:v1.34.2
  base-image: docker.io/library/debian:bookworm-1
  older-base-image: docker.io/library/debian:buster-1
tools:
  kubernetes:
    module: k8s.io/kubernetes
    version: v1.34.2
    packages: [{path: p, name: kubelet}]
    stamp: {x.gitVersion: v1.34.2, x.gitMajor: '1'}
  volcano: {module: volcano.sh/volcano, version: v1.14.1, packages: [{path: p, name: vc-scheduler}]}
  router: {module: example.org/fork, version: v2.2.1, packages: [{path: p, name: router}]}
  pause: {module: trainyard.io/tools/pause, version: v3.10.1, packages: [{path: ., name: pause}]}
images:
  vc-scheduler: {ref: 'docker.io/volcanosh/vc-scheduler:v1.14.1', dir: images/b, bin: [vc-scheduler]}
  pause: {ref: 'registry.k8s.io/pause:3.10.1', dir: images/b, bin: [pause], also: ['registry.k8s.io/pause:3.10']}
  platform: {ref: 'site.invalid/trainyard/platform:0.1.0', dir: images/b, own: true}
"""
FILES = {
    "versions.yaml": VERSIONS,
    "tools/kubernetes/go.mod": "module m\nrequire k8s.io/kubernetes v1.34.2 // main\n",
    "tools/kubernetes/go.sum": "k8s.io/kubernetes v1.34.2 h1:x=\n",
    "tools/volcano/go.mod": "module m\n\nrequire (\n\tvolcano.sh/volcano v1.14.1\n\tother v1 // indirect\n)\n",
    "tools/volcano/go.sum": "volcano.sh/volcano v1.14.1 h1:x=\n",
    "tools/router/go.mod": "module m\nrequire o.example v2.2.1\nreplace o.example => example.org/fork v2.2.1\n",
    "tools/router/go.sum": "example.org/fork v2.2.1 h1:x=\n",
    "tools/pause/go.mod": "module trainyard.io/tools/pause\n",
    "pyproject.toml": '[project]\nversion = "0.1.0"\ndependencies = ["click>=8,<9", "Kfp_Kubernetes>=2.0,<2.1"]\n'
    '[project.optional-dependencies]\ntest = ["pytest==9.0"]\n',
    "requirements.lock": "# made\nclick==8.1\nkfp-kubernetes==2.0\npytest==9.0\nextra==1.0\n",
    "images/b/Containerfile": f"ARG BASE={BASE}\nFROM ${{BASE}} AS build\nRUN x\nFROM scratch\nCOPY a b\n",
    "images/requirements.yaml": "sets: {store: [minio]}\nimages: {b: {sets: [store], packages: [numpy]}}\n"
    "versions: {minio: 7.2, numpy: 1.24}\notherwise: [{images: [b], why: x, versions: {numpy: 1.26}}]\n",
    "images/b/requirements.txt": "# pins\nminio==7.2 \\\n    --hash=sha256:0\nnumpy==1.26 --hash=sha256:1\n",
    "charts/trainyard/Chart.yaml": "version: 0.1.0\nappVersion: 0.1.0\n"
    "dependencies: [{name: volcano, version: 1.14.0}, {name: nfs, version: 0.1.0}]\n",
    "charts/trainyard/values.yaml": "x: {image: {repository: trainyard/platform, tag: 0.1.0}}\n",
    "charts/trainyard/templates/a.yaml": "image: {{ .Values.global.imageRegistry }}/{{ .Values.x }}\n",
    "charts/nfs/Chart.yaml": "version: 0.1.0\nappVersion: 4.3\n",
    "charts/nfs/values.yaml": "",
    "manifests/jobs/a.yaml": "containers:\n  - image: site.invalid/trainyard/platform:0.1.0  # ours\n    args: [sh]\n",
    "scripts/a.py": 'x = f"docker.io/{path}:{tag}"\nu = "https://quay.io/v2/"\ny = "site.invalid/trainyard/{n}:1"\n',
    "README.md": "Images are site.invalid/trainyard/<name>:0.1.0, such as site.invalid/trainyard/platform:0.1.0.\n",
}
INSTALLED = {"click": "8.1", "kfp-kubernetes": "2.0", "pytest": "9.0", "extra": "1.0"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree on which everything agrees."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def installed(name: str) -> str:
    if name not in INSTALLED:
        raise importlib.metadata.PackageNotFoundError(name)
    return INSTALLED[name]


@pytest.fixture(autouse=True)
def pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages of the small tree are installed, and no page is made: those of this repository are its own."""
    monkeypatch.setattr(invariants.python, "__defaults__", (installed,))
    monkeypatch.setattr(pages, "write", lambda tree: None)


def found(tree: Path) -> list[str]:
    """Every difference as a line."""
    return [str(one) for one in verify.differences(tree)[0]]


def change(tree: Path, file: str, old: str, new: str) -> None:
    path = tree / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_a_tree_that_agrees(tree: Path) -> None:
    assert found(tree) == []


CHANGES = [
    # file, text there, what it becomes, the whole message
    ("versions.yaml", "volcano: 1.14.1", "volcano: 1.14.0",
     "versions.yaml: components.volcano is 1.14.0, tools.volcano.version is v1.14.1. use one version."),
    ("versions.yaml", "gitVersion: v1.34.2", "gitVersion: v1.34.1",
     "versions.yaml: tools.kubernetes.stamp x.gitVersion is v1.34.1. write v1.34.2."),
    ("versions.yaml", "    stamp:", "    family: nothing\n    stamp:",
     "versions.yaml: tools.kubernetes.family is nothing. name the tool set of the other versions."),
    ("versions.yaml", "pause:3.10.1", "pause:3.9",
     "versions.yaml: images.pause has the tag 3.9. use the version of its contents: 3.10.1."),
    ("versions.yaml", "bin: [vc-scheduler]", "bin: [vc-nothing]",
     "versions.yaml: images.vc-scheduler needs vc-nothing, which no tool set builds. add it under tools."),
    ("versions.yaml", "kindest/node:v1.34.2", "kindest/node:v1.34.0",
     "versions.yaml: pull.node-image is docker.io/kindest/node:v1.34.0. use the tag v1.34.2."),
    ("tools/router/go.mod", "replace o.example => example.org/fork v2.2.1", "",
     "tools/router/go.mod: example.org/fork is not required. write: require example.org/fork v2.2.1."),
    ("tools/pause/go.mod", "tools/pause", "tools/paus",
     "tools/pause/go.mod: the module's name differs from versions.yaml. write: module trainyard.io/tools/pause."),
    ("pyproject.toml", "click>=8,<9", "click>=8",
     "pyproject.toml: `click>=8` lacks a lower or upper bound. write NAME>=LEAST,<NEXT."),
    ("pyproject.toml", "click>=8,<9", "click>=8.2,<9",
     "requirements.lock: click is 8.1. pyproject.toml allows <9,>=8.2: use one version."),
    ("requirements.lock", "kfp-kubernetes==2.0\n", "",
     "requirements.lock: Kfp_Kubernetes is absent. pyproject.toml allows <2.1,>=2.0: use one version."),
    ("requirements.lock", "extra==1.0", "extra~=1.0",
     "requirements.lock:5: `extra~=1.0` is not an exact pin. write NAME==VERSION."),
    ("requirements.lock", "extra==1.0", "extra==1.1",
     "requirements.lock: extra 1.1 is pinned, 1.0 is installed. run the command with bin/trainyard."),
    ("requirements.lock", "extra==1.0", "extra==1.0\nmore==1.0",
     "requirements.lock: more 1.0 is pinned, absent is installed. run the command with bin/trainyard."),
    ("images/b/requirements.txt", "numpy==1.26", "numpy",
     "images/b/requirements.txt:4: `numpy --hash=sha256:1` is not an exact pin. write NAME==VERSION with its hash."),
    ("images/b/requirements.txt", "minio==7.2", "minio==7.1",
     "images/b/requirements.txt: minio is 7.1, must be 7.2. run `bin/trainyard versions wheels`."),
    ("images/b/requirements.txt", "minio==7.2", "Mini_O==7.2",
     "images/b/requirements.txt: mini-o is 7.2, must be absent. run `bin/trainyard versions wheels`."),
    ("images/requirements.yaml", "[numpy]", "[numpy, click]",
     "images/b/requirements.txt: click is absent, must be 8.1. run `bin/trainyard versions wheels`."),
    ("images/requirements.yaml", "[numpy]", "[numpy, other]",
     "images/requirements.yaml: other of b has no version. add it under `versions`."),
    ("images/requirements.yaml", "1.26", "1.24",
     "images/requirements.yaml: numpy 1.24 of b does not differ. remove it."),
    ("images/requirements.yaml", "{numpy: 1.26}", "{numpy: 1.26, click: 8.0}",
     "images/requirements.yaml: b does not have click, which `otherwise` lists. remove it."),
    ("images/requirements.yaml", "minio: 7.2,", "minio: 7.2, click: 8.1,",
     "images/requirements.yaml: click is also in requirements.lock. remove it from `versions`."),
    ("images/requirements.yaml", "{b: {sets: [store], packages: [numpy]}}", "{}",
     "images/b/requirements.txt: images/requirements.yaml lacks the image. add it to that file."),
    ("images/requirements.yaml", "{b:", "{c: {packages: [click]}, b:",
     "images/c/requirements.txt: the file is missing. run `bin/trainyard versions wheels`."),
    ("images/b/Containerfile", "FROM scratch", "FROM alpine:3",
     "images/b/Containerfile:4: it is based on alpine:3. use FROM ${BASE}, scratch or a stage of the same file."),
    ("charts/trainyard/Chart.yaml", "name: volcano", "name: volcanoes",
     "charts/trainyard/Chart.yaml: the component volcanoes has no pin. add it under components in versions.yaml."),
    ("charts/trainyard/templates/a.yaml", "image:", "image: ghcr.io/other/thing:1\nother:",
     "charts/trainyard/templates/a.yaml:1: the image ghcr.io/other/thing:1 is not in versions.yaml. "
     "add it under images in versions.yaml, or use an image from there."),
    ("manifests/jobs/a.yaml", "site.invalid/trainyard/platform:0.1.0", "example.org/own/thing:1",
     "manifests/jobs/a.yaml:2: the image example.org/own/thing:1 is not in versions.yaml. "
     "add it under images in versions.yaml, or use an image from there."),
    ("manifests/jobs/a.yaml", "[sh]", "[x, --image, busybox:latest]",
     "manifests/jobs/a.yaml:3: an image has tag latest. use an exact tag."),
    ("tools/router/go.mod", "fork v2.2.1", "fork v2.2.0",
     "tools/router/go.mod: it is not up to date (example.org/fork v2.2.1). run `bin/trainyard versions sync`."),
    ("manifests/jobs/a.yaml", "image: site.invalid/trainyard/platform:0.1.0", "image: site.invalid/trainyard/platform",
     "manifests/jobs/a.yaml: it is not up to date (image references). run `bin/trainyard versions sync`."),
    ("images/b/Containerfile", "debian:bookworm-1", "other:1",
     f"images/b/Containerfile:1: the default base is docker.io/library/other:1. write ARG BASE={BASE}."),
    ("charts/trainyard/values.yaml", "repository: trainyard/platform", "repository: some/thing",
     "charts/trainyard/values.yaml: x.image.tag is from some/thing, which is not in versions.yaml. "
     "add it under images in versions.yaml, or use an image from there."),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "message"), CHANGES, ids=[c[3][:60] for c in CHANGES])
def test_a_difference_is_found(tree: Path, file: str, old: str, new: str, message: str) -> None:
    change(tree, file, old, new)
    assert message in found(tree)


def test_only_the_changed_copy_is_named(tree: Path) -> None:
    change(tree, "tools/volcano/go.mod", "v1.14.1", "v1.14.2")
    assert [line.partition(":")[0] for line in found(tree)] == ["tools/volcano/go.mod"]


@pytest.mark.parametrize("file", ["tools/volcano/go.mod", "tools/volcano/go.sum"])
def test_missing_files(tree: Path, file: str) -> None:
    (tree / file).unlink()
    assert found(tree) == [
        f"{file}: it is not up to date (volcano.sh/volcano v1.14.1). run `bin/trainyard versions sync`."
    ]


def test_a_further_version_of_a_set_makes_no_image(tree: Path) -> None:
    old = "  volcano: {module: volcano.sh/volcano, version: v1.14.1,"
    new = old.replace("volcano: {", "volcano-2: {family: volcano, ").replace("v1.14.1", "v2.0.0")
    new += " packages: [{path: p, name: vc-scheduler}]}"
    change(tree, "versions.yaml", old, f"{new}\n{old}")
    (tree / "tools/volcano-2").mkdir()
    (tree / "tools/volcano-2/go.mod").write_text("module m\nrequire volcano.sh/volcano v2.0.0\n")
    (tree / "tools/volcano-2/go.sum").write_text("volcano.sh/volcano v2.0.0 h1:x=\n")
    assert found(tree) == []
    change(tree, "versions.yaml", "vc-scheduler:v1.14.1", "vc-scheduler:v2.0.0")
    assert any("images.vc-scheduler has the tag v2.0.0. use the version" in line for line in found(tree))


def test_a_tool_folder_nobody_builds(tree: Path) -> None:
    (tree / "tools/stray").mkdir()
    (tree / "tools/stray/go.mod").write_text("module m\n")
    assert found(tree) == ["tools/stray: versions.yaml lacks a tool set with this name. add it, or remove the folder."]


def test_latest_in_versions(tree: Path) -> None:
    change(tree, "versions.yaml", "node:v1.34.2", "node:latest")
    assert "versions.yaml: the image docker.io/kindest/node:latest has no exact tag. name one." in found(tree)


def test_effective_modules() -> None:
    text = "require a v1\nrequire (\n b v2 // indirect\n\n c v3\n)\nreplace b => d v9 // why\nreplace c v3 => ./local\n"
    assert modules.effective_modules(text) == {"a": "v1", "d": "v9", "./local": ""}


@pytest.mark.parametrize("text", [
    "see https://docker.io/some/page:1", "site.invalid/trainyard/<name>:0.1.0", "docker.io/${NAME}:1",
    "site.invalid/trainyard/*:0.1.0", "mirror.docker.io/x/y:1", "the host docker.io has images",
])  # fmt: skip
def test_what_only_looks_like_a_reference(text: str) -> None:
    assert list(images.in_text("docs/a.md", text, set())) == []


def test_the_command_lists_everything_at_once(
    tree: Path, trainyard: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "ROOT", tree)
    assert trainyard("verify").out == (
        "every copy of a pin matches versions.yaml, and every generated file is up to date\n"
        "files were not counted: this is not a git checkout\n"
    )
    change(tree, "pyproject.toml", '"0.1.0"', '"0.1.1"')
    change(tree, "versions.yaml", "gitVersion: v1.34.2", "gitVersion: v1.34.1")
    ended = trainyard("verify")
    assert ended.code == 1
    assert [line.partition(":")[0] for line in ended.out.splitlines()] == ["pyproject.toml", "versions.yaml"]
    assert ended.error() == "2 differences. fix the files listed above."


def test_a_broken_versions_file(tree: Path, trainyard: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "ROOT", tree)
    (tree / "versions.yaml").unlink()
    assert "versions.yaml: the file can't be read" in trainyard("verify").error()
