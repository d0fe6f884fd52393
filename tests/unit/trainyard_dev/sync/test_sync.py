"""`trainyard versions sync`: every copy is written in its place, and nothing else of the file changes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard_dev.sync import charts, invariants, modules, pages
from trainyard_dev.sync import cli as sync
from trainyard_dev.sync.tree import Difference

Program = Callable[[str, str], Path]
VERSIONS = """
trainyard: 0.3.0
components: {kubernetes: 1.35.4, volcano: 1.15.0, argo: 3.8.0, minio: 0.1.0, device-plugin: 0.18.0}
pull:
  node-image: docker.io/kindest/node:v{kubernetes}
  base-image: docker.io/library/debian:bookworm-2
  older-base-image: docker.io/library/debian:buster-2
tools:
  volcano: {module: volcano.sh/volcano, version: 'v{volcano}', packages: [{path: volcano.sh/volcano/cmd/s, name: s}]}
  own: {module: trainyard.io/tools/own, version: v1.0.0, packages: [{path: ., name: own}]}
images:
  s: {ref: 'docker.io/volcanosh/s:v{volcano}', dir: images/b, bin: [s]}
  plugin: {ref: 'nvcr.io/nvidia/plugin:v{device-plugin}', dir: images/b, bin: [s], release: '{volcano}'}
  pause: {ref: 'registry.k8s.io/pause:3.10.1', dir: images/b, bin: [s], also: ['registry.k8s.io/pause:3.10']}
  platform: {ref: 'site.invalid/trainyard/platform:{trainyard}', dir: images/b, own: true}
  node: {ref: 'localhost/trainyard/node:{trainyard}', dir: images/c, older: true, local: true}
"""
# file, before, after
COPIES = [
    ("pyproject.toml",
     '[project]\nversion = "0.2.0"\ndependencies = ["click==8.2", "Kfp_x==2.0"]  # why\n[tool.x]\nversion = "1"\n',
     '[project]\nversion = "0.3.0"\ndependencies = ["click==8.2", "Kfp_x==2.0"]  # why\n[tool.x]\nversion = "1"\n'),
    ("requirements.lock", "# made\nclick==8.1 ; x\nkfp-x==1.9\nother==1\n",
     "# made\nclick==8.2 ; x\nkfp-x==2.0\nother==1\n"),
    ("scripts/trainyard/__init__.py", '"""x"""\n\n__version__ = "0.2.0"\n', '"""x"""\n\n__version__ = "0.3.0"\n'),
    ("README.md",
     "helm install trainyard out/charts/trainyard-0.2.0.tgz, image mirror.example/x/trainyard/platform:0.2.0.\n"
     "0.2.0 is what site.invalid/trainyard/platform:0.2.0. says, and site.invalid/trainyard/<name>:0.2.0\n",
     "helm install trainyard out/charts/trainyard-0.3.0.tgz, image mirror.example/x/trainyard/platform:0.3.0.\n"
     "0.2.0 is what site.invalid/trainyard/platform:0.3.0. says, and site.invalid/trainyard/<name>:0.2.0\n"),
    ("docs/queues.md", "The scheduler is Volcano 1.14.1 with it. Volcano 1.14.1 forgets.\n",
     "The scheduler is Volcano 1.15.0 with it. Volcano 1.14.1 forgets.\n"),
    ("manifests/gitops/app.yaml", "spec:\n  targetRevision: 0.2.0  # ours\n",
     "spec:\n  targetRevision: 0.3.0  # ours\n"),
    ("manifests/jobs/a.yaml",
     "a: [docker.io/volcanosh/s:v1.14.1, registry.k8s.io/pause:3.9, registry.k8s.io/pause:3.10, ghcr.io/no/x:1]\n",
     "a: [docker.io/volcanosh/s:v1.15.0, registry.k8s.io/pause:3.10.1, registry.k8s.io/pause:3.10, ghcr.io/no/x:1]\n"),
    ("images/b/Containerfile", "ARG BASE=docker.io/library/debian:bookworm-1\nFROM ${BASE}\n",
     "ARG BASE=docker.io/library/debian:bookworm-2\nFROM ${BASE}\n"),
    ("images/c/Containerfile", "ARG BASE=docker.io/library/debian:buster-1\nFROM ${BASE}\n",
     "ARG BASE=docker.io/library/debian:buster-2\nFROM ${BASE}\n"),
    ("policies/a.cases.yaml", "image: site.invalid/trainyard/platform:0.2.0\n",
     "image: site.invalid/trainyard/platform:0.3.0\n"),
    ("charts/trainyard/values.yaml",
     "global:\n  images:\n    platform: trainyard/platform:0.2.0  # ours\n    other: else/thing:1\n"
     "volcano: {basic: {image_tag_version: \"v1.14.1\"}}\n"
     "plugin:\n  image: {repository: nvcr.io/nvidia/plugin, tag: v0.17.4}\n",
     "global:\n  images:\n    platform: trainyard/platform:0.3.0  # ours\n    other: else/thing:1\n"
     "volcano: {basic: {image_tag_version: \"v1.15.0\"}}\n"
     "plugin:\n  image: {repository: nvcr.io/nvidia/plugin, tag: v0.18.0}\n"),
    ("charts/trainyard/profiles/kind.yaml", "image: {repository: volcanosh/s, tag: v1.14.1}\n",
     "image: {repository: volcanosh/s, tag: v1.15.0}\n"),
    ("charts/trainyard/Chart.yaml",
     "version: 0.2.0\nappVersion: 0.2.0\ndependencies:\n  - {name: volcano, version: 1.14.0}\n"
     "  - {name: argo, version: 3.7.2}\n"
     "  - {name: minio, version: 0.2.0}\n  - {name: nvidia-device-plugin, version: 0.17.4}\n"
     "  - {name: nfs, version: 0.2.0}\n",
     "version: 0.3.0\nappVersion: 0.3.0\ndependencies:\n  - {name: volcano, version: 1.15.1}\n"
     "  - {name: argo, version: 3.8.0}\n"
     "  - {name: minio, version: 0.3.0}\n  - {name: nvidia-device-plugin, version: 0.18.0}\n"
     "  - {name: nfs, version: 0.3.0}\n"),
    ("charts/argo/Chart.yaml", "# Argo's own\nversion: 3.7.2\nappVersion: v3.7.2\n",
     "# Argo's own\nversion: 3.8.0\nappVersion: v3.8.0\n"),
    ("charts/minio/Chart.yaml", "version: 0.2.0\nappVersion: 0.0.9\n", "version: 0.3.0\nappVersion: 0.1.0\n"),
    ("charts/nfs/Chart.yaml", 'version: 0.2.0\nappVersion: "4.3"\n', 'version: 0.3.0\nappVersion: "4.3"\n'),
    ("charts/trainyard/releases.yaml", "releases:\n  0.2.0:\n    trainyard: 0.2.0\n",
     "releases:\n  0.2.0:\n    trainyard: 0.2.0\n  0.3.0:\n    trainyard: 0.3.0\n    volcano: 1.15.0\n    argo: 3.8.0\n"
     "    minio: 0.1.0\n    nvidia-device-plugin: 0.18.0\n    nfs: '4.3'\n"),
]  # fmt: skip
# What no command writes: images that are pinned nowhere.
LEFT = [
    "charts/trainyard/values.yaml: global.images.other is else/thing:1, which is not in versions.yaml. "
    "add it under images in versions.yaml, or use an image from there.",
    "manifests/jobs/a.yaml:1: the image ghcr.io/no/x:1 is not in versions.yaml. "
    "add it under images in versions.yaml, or use an image from there.",
]
RELEASES, SET = "charts/trainyard/releases.yaml", "charts/volcano/tools/volcano"
GO_MOD = "module m\n\nrequire volcano.sh/volcano v1.15.0\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree in which every copy is of an earlier version; only go.mod is up to date."""
    root = tmp_path / "tree"
    monkeypatch.setattr(pages, "write", lambda tree: None)
    files = {
        "versions.yaml": VERSIONS,
        f"{SET}/go.mod": GO_MOD,
        f"{SET}/go.sum": "volcano.sh/volcano v1.15.0 h1:x\n",
        "tools/own/go.mod": "module trainyard.io/tools/own\n",
    }
    for name, text in [*files.items(), *((name, before) for name, before, _ in COPIES)]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def written(root: Path, **more: Any) -> Any:
    return sync.write(root, upstream=lambda name: "1.15.1" if name == "volcano" else None, **more)


@pytest.mark.parametrize(("file", "before", "after"), COPIES, ids=[name for name, _, _ in COPIES])
def test_a_copy_is_written_in_its_place(tree: Path, file: str, before: str, after: str) -> None:
    made = written(tree)
    assert (tree / file).read_text() == after
    assert file in made.changed
    assert sorted(map(str, made.left)) == LEFT


def test_a_second_time_nothing_is_left_to_write(tree: Path) -> None:
    written(tree)
    assert written(tree).changed == {}


def test_a_component_that_a_release_lacks_is_added_to_it(tree: Path) -> None:
    written(tree)
    file = tree / RELEASES
    whole = file.read_text()
    for broken in (whole.replace("    argo: 3.8.0\n", ""), whole.replace("argo: 3.8.0", "argo: 3.7.2")):
        file.write_text(broken + "  0.4.0:\n    trainyard: 0.4.0\n")
        assert written(tree).changed == {RELEASES: ["argo 3.8.0"]}
        found = yaml.safe_load(file.read_text())["releases"]
        assert found == yaml.safe_load(whole)["releases"] | {"0.4.0": {"trainyard": "0.4.0"}}


def test_a_check_names_the_same_files_and_changes_none(tree: Path) -> None:
    assert set(written(tree, dry=True).changed) == {name for name, _, _ in COPIES}
    assert [name for name, before, _ in COPIES if (tree / name).read_text() != before] == []


def test_the_command(tree: Path, trainyard: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "ROOT", tree)
    monkeypatch.setattr(sync, "_upstream", lambda name: None)
    monkeypatch.setattr(invariants, "differences", lambda root, raw: [])
    ended = trainyard("versions", "sync", "--check")
    assert ended.code == 1
    assert f"copies differ in {len(COPIES)} files. run `bin/trainyard versions sync`." in ended.error()
    assert "requirements.lock: click 8.2, kfp-x 2.0\n" in ended.out
    assert f"{len(LEFT)} differences that you must fix by hand" in trainyard("versions", "sync").error()
    assert trainyard("versions", "sync", "--check").out == "every copy matches versions.yaml\n"
    monkeypatch.setattr(
        invariants, "differences", lambda root, raw: [Difference("a file", "it lacks a thing", "add it")]
    )
    ended = trainyard("versions", "sync")
    assert "left: a file: it lacks a thing. add it.\n" in ended.out
    assert ended.error() == "3 differences that you must fix by hand. fix the files listed above."


GO = """case "$1 $2" in
"list -m") echo '{"GoMod": "%(mods)s/'"${4##*@}"'.mod"}';;
"list -deps") [ -z "%(error)s" ] || { echo "go: %(error)s." >&2; exit 1; }
  echo "volcano.sh/volcano v1.15.0 h1:new" > go.sum;;
esac
echo "$(basename "$PWD") $*" >> %(mods)s/calls"""
OLD = "module m\nreplace (\n\ta => a v1\n\tb => b v1\n\tc => c v1\n\td => ./d\n\tgone => gone v1\n)\n"
NEW = "module m\nreplace (\n\ta => a v1\n\tb => b v2\n\tc => c v2\n\td => ./d\n\tfurther => further v1\n)\n"
OURS = "replace (\n\ta => a v1.1\n\tb => b v1\n\td => d v1\n\tgone => gone v1\n)\n"


@pytest.fixture
def calls(tree: Path, tmp_path: Path, program: Program) -> Callable[..., list[str]]:
    """The calls of Go for a set whose go.mod has an earlier version, and whose upstream's replacements moved."""
    (tmp_path / "v1.14.1.mod").write_text(OLD)
    (tmp_path / "v1.15.0.mod").write_text(NEW)
    (tree / f"{SET}/go.mod").write_text(GO_MOD.replace("v1.15.0", "v1.14.1") + OURS)
    (tree / f"{SET}/go.sum").write_text("old\n")

    def made(error: str = "") -> list[str]:
        program("go", GO % {"mods": tmp_path, "error": error})
        written(tree)
        return [call for call in (tmp_path / "calls").read_text().splitlines() if call.startswith("volcano ")]

    return made


def test_go_writes_its_own_files(calls: Callable[..., list[str]], tree: Path) -> None:
    assert calls() == [
        "volcano mod edit -require=volcano.sh/volcano@v1.15.0 -replace=b=b@v2 -replace=further=further@v1 "
        "-dropreplace=gone",
        "volcano list -deps -tags  volcano.sh/volcano/cmd/s",
    ]
    assert (tree / f"{SET}/go.sum").read_text() == "volcano.sh/volcano v1.15.0 h1:new\n"


def test_a_set_with_lines_of_its_own_is_tidied(calls: Callable[..., list[str]], tree: Path) -> None:
    (tree / f"{SET}/main.go").write_text("package main\n")
    assert calls()[-1] == "volcano mod tidy"


def test_a_version_that_nobody_has_is_reported_and_the_sums_stay(calls: Callable[..., list[str]], tree: Path) -> None:
    calls(error="dial tcp: no such host")
    made = written(tree)
    assert f"{SET}: go: dial tcp: no such host. fix the cause, then run the same command again." in map(str, made.left)
    assert (tree / f"{SET}/go.sum").read_text() == "old\n"


def test_a_version_that_is_known_by_name_only_is_told(
    calls: Callable[..., list[str]], tree: Path, program: Program
) -> None:
    program("go", """echo '{"Version": "v1.15.0"}'""")
    made = written(tree)
    said = f"{SET}/go.mod: volcano.sh/volcano v1.14.1 is not available as a module. use another version"
    assert any(str(line).startswith(said) for line in made.left), made.left
    assert (tree / f"{SET}/go.sum").read_text() == "old\n"


def test_a_replacement_by_a_folder_is_somebody_s_choice(calls: Callable[..., list[str]], tree: Path) -> None:
    calls()
    (tree / f"{SET}/go.mod").write_text(GO_MOD.replace("v1.15.0", "v1.14.1") + OURS)
    taken = f"{SET}/go.mod: upstream replaces d with a local folder. find out the release."
    assert sorted(map(str, written(tree).left)) == sorted([*LEFT, taken])


def test_kubernetes_libraries_are_published_under_their_own_numbers(tmp_path: Path, program: Program) -> None:
    folder = "./staging/src/k8s.io"
    (tmp_path / "v1.35.4.mod").write_text(
        f"module k\nrequire k8s.io/api v0.0.0\nreplace k8s.io/api => {folder}/api\n"
        f"replace k8s.io/sample => {folder}/sample\nreplace x => y v1\n"
    )
    program("go", GO % {"mods": tmp_path, "error": ""})
    found = modules.upstream_replacements("k8s.io/kubernetes", "v1.35.4")
    assert found == {"k8s.io/api": ("k8s.io/api", "v0.35.4"), "x": ("y", "v1")}


def test_kubernetes_libraries_are_required_so_that_other_sets_share_what_is_compiled(
    tmp_path: Path, program: Program
) -> None:
    folder = "./staging/src/k8s.io"
    (tmp_path / "v1.34.2.mod").write_text(
        f"module k\nrequire k8s.io/gone v0\nreplace (\n\tk8s.io/gone => {folder}/gone\n\tx => y v1\n)\n"
    )
    (tmp_path / "v1.35.4.mod").write_text(
        f"module k\nrequire k8s.io/api v0\nreplace (\n\tk8s.io/api => {folder}/api\n\tx => y v2\n)\n"
    )
    (tmp_path / "go.mod").write_text("module m\nrequire k8s.io/kubernetes v1.34.2\nreplace x => y v1\n")
    program("go", GO % {"mods": tmp_path, "error": ""})
    assert modules._required(tmp_path, "k8s.io/kubernetes", "v1.34.2", "v1.35.4") == []
    assert (tmp_path / "calls").read_text().splitlines()[-1].partition("mod edit ")[2] == (
        "-require=k8s.io/kubernetes@v1.35.4 -require=k8s.io/api@v0.35.4 -droprequire=k8s.io/gone -replace=x=y@v2"
    )


def test_a_new_component_gets_its_chart_its_place_and_its_release(tree: Path) -> None:
    written(tree)
    for name, text in (("argo", "about: Argo.\n"), ("meter", "about: It counts.\noptional: true\n")):
        (tree / "charts" / name).mkdir(exist_ok=True)
        (tree / "charts" / name / "component.yaml").write_text(text)
    picture = tree / "docs/architecture.svg"
    picture.write_text('<svg>\n  <rect class="option" x="1"/>\n</svg>\n')
    versions = tree / "versions.yaml"
    versions.write_text(versions.read_text().replace("components: {", "components: {meter: 2.1.0, "))
    umbrella = tree / "charts/trainyard/Chart.yaml"
    umbrella.write_text("kubeVersion: '>=1.32.0-0'\n" + umbrella.read_text())
    made = written(tree)
    assert sorted(map(str, made.left)) == LEFT
    assert set(made.changed) == {"charts/meter/Chart.yaml", "charts/trainyard/Chart.yaml", RELEASES, charts.PICTURE}
    chart = yaml.safe_load((tree / "charts/meter/Chart.yaml").read_text())
    assert (chart["description"], chart["version"], chart["appVersion"]) == ("It counts.", "2.1.0", "v2.1.0")
    listed = yaml.safe_load(umbrella.read_text())["dependencies"]
    assert listed[-1] == {"name": "meter", "version": "2.1.0", "condition": "meter.enabled"}
    assert yaml.safe_load((tree / RELEASES).read_text())["releases"]["0.3.0"]["meter"] == "2.1.0"
    assert re.findall('x="(.+?)".+>(.+)</text>', picture.read_text()) == [("346", "meter")]
    assert modules._folder(tree, "meter") == "charts/meter/tools/meter"
    assert written(tree).changed == {}
