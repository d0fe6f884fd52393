"""Images: their keys, their build contexts, the registry that nodes ask first, and where images come from."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.cluster import lifecycle, source
from trainyard.errors import TrainyardError, UsageError
from trainyard.images import build as images
from trainyard.images import registry
from trainyard.tools import build as tools
from trainyard.versions import Image, ToolSet, Versions, load

DEMO = Image("demo", "docker.io/trainyard/demo:0.1.0", "images/demo", "images/demo", own=True, inputs=("images/demo",))
TOOL = ToolSet("tool", "example.org/tool", "v1.0.0", "test", (("example.org/tool", "toolbin"),))


class FakeEngine:
    """Remembers what it was asked; `images` are what its store holds."""

    name = "podman"

    def __init__(self, name: str = "podman") -> None:
        self.name, self.calls, self.images = name, [], set()
        self.on_build: Callable[[Path], None] = lambda context: None

    def __call__(self, *argv: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
        words = [str(a) for a in argv]
        self.calls.append(words)
        if words[0] == "build":
            self.on_build(Path(words[-1]))
            self.images.add(words[words.index("-t") + 1])
        code = int(words[0] == "inspect" and "no-registry" in self.images)
        return subprocess.CompletedProcess(words, code, "127.0.0.1:4321\n" if words[0] == "port" else "", "")

    def has_image(self, ref: str) -> bool:
        return ref in self.images


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """A repository with one image and one tool set."""
    root = tmp_path / "tree"
    (root / "images/demo").mkdir(parents=True)
    (root / "images/demo/Containerfile").write_text('FROM ${BASE}\nCMD ["@BINARY@"]\n')
    (root / "tools/tool").mkdir(parents=True)
    (root / "tools/tool/go.mod").write_text("module m\n")
    versions = Versions({"components": {"kubernetes": "1.34.2"}}, {"tool": TOOL}, {"demo": DEMO})
    for module in (images, tools):
        monkeypatch.setattr(module, "ROOT", root)
        monkeypatch.setattr(module, "load", lambda: versions)
    return root


# keys


def test_the_key_changes_with_content_and_stays_otherwise(tree: Path) -> None:
    before = images.content_key(DEMO, "base:1")
    (tree / "images/demo/__pycache__").mkdir()
    (tree / "images/demo/__pycache__/x.pyc").write_text("x")
    (tree / "images/demo/Containerfile").touch()
    assert images.content_key(DEMO, "base:1") == before
    (tree / "images/demo/Containerfile").write_text("FROM scratch\n")
    assert images.content_key(DEMO, "base:1") != before


def test_the_key_changes_with_a_renamed_file(tree: Path) -> None:
    (tree / "images/demo/a").write_text("x")
    before = images.content_key(DEMO, "base:1")
    (tree / "images/demo/a").rename(tree / "images/demo/b")
    assert images.content_key(DEMO, "base:1") != before


def test_the_key_changes_with_base_reference_and_inputs(tree: Path) -> None:
    (tree / "shared").mkdir()
    (tree / "shared/a.py").write_text("1")
    wider = dataclasses.replace(DEMO, context=".", inputs=("images/demo", "shared"))
    keys = {
        images.content_key(DEMO, "base:1"),
        images.content_key(DEMO, "base:2"),
        images.content_key(dataclasses.replace(DEMO, ref="docker.io/trainyard/demo:0.2.0"), "base:1"),
        images.content_key(wider, "base:1"),
    }
    (tree / "shared/a.py").write_text("2")
    assert len({*keys, images.content_key(wider, "base:1")}) == 5


def test_the_key_changes_with_the_pin_of_a_binary_in_it(tree: Path) -> None:
    with_binary = dataclasses.replace(DEMO, bin=("toolbin",))
    with_file = dataclasses.replace(DEMO, files={"x": "tool:path"})
    before = [images.content_key(i, "b") for i in (DEMO, with_binary, with_file)]
    (tree / "tools/tool/go.mod").write_text("module m\n\nrequire x v1\n")
    after = [images.content_key(i, "b") for i in (DEMO, with_binary, with_file)]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, False]


def test_the_local_tag_holds_the_key(tree: Path) -> None:
    assert images.local_ref(DEMO, "b") == f"localhost/trainyard/build/demo:{images.content_key(DEMO, 'b')}"


# building


def test_what_the_engine_has_is_not_built_again(tree: Path) -> None:
    engine = FakeEngine()
    tag = images.build(engine, DEMO, "base:1")
    assert images.build(engine, DEMO, "base:1") == tag
    assert [call[0] for call in engine.calls] == ["build"]


def test_the_build_context_holds_binaries_and_module_files(
    tree: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tree / "module"
    (module / "files/sub").mkdir(parents=True)
    (module / "files/sub/a.txt").write_text("from the module")
    (tree / "images/demo/note").write_text("input")
    (tree / "toolbin").write_text("program")
    monkeypatch.setattr(images.tools, "binary", lambda name: tree / name)
    monkeypatch.setattr(images.tools, "module_dir", lambda name: module)
    image = dataclasses.replace(DEMO, bin=("toolbin",), files={"base": "tool:files", "one.txt": "tool:files/sub/a.txt"})
    seen: dict[str, str] = {}
    engine = FakeEngine()
    engine.on_build = lambda context: seen.update(
        {p.relative_to(context).as_posix(): p.read_text() for p in context.rglob("*") if p.is_file()}
    )
    images.build(engine, image, "base:1")
    assert seen == {
        "Containerfile": 'FROM ${BASE}\nCMD ["toolbin"]\n',
        "note": "input",
        "bin/toolbin": "program",
        "files/base/sub/a.txt": "from the module",
        "files/one.txt": "from the module",
    }
    assert "BASE=base:1" in engine.calls[0]
    assert "KUBERNETES_VERSION=1.34.2" in engine.calls[0]
    assert list((cache / "work").iterdir()) == []


def test_a_failing_image_build_leaves_no_context(tree: Path, cache: Path) -> None:
    def broken(context: Path) -> None:
        raise TrainyardError("`podman build …` failed with code 1")

    engine = FakeEngine()
    engine.on_build = broken
    with pytest.raises(TrainyardError):
        images.build(engine, DEMO, "b")
    assert list((cache / "work").iterdir()) == []
    assert engine.images == set()


def test_a_missing_containerfile_is_named(tree: Path) -> None:
    (tree / "images/demo/Containerfile").unlink()
    with pytest.raises(TrainyardError, match=r"^images/demo: the Containerfile is missing\.$"):
        images.build(FakeEngine(), DEMO, "b")


def test_the_base_needs_debootstrap(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(TrainyardError, match=r"debootstrap is not installed\. apt-get install -y debootstrap"):
        images.make_base(FakeEngine())


def test_the_base_is_made_slim_and_once(cache: Path, program: Callable[[str, str], Path]) -> None:
    program(
        "debootstrap",
        "for d; do :; done; mkdir -p $d/usr/share/man $d/var/cache/apt $d/bin; echo x > $d/usr/share/man/page",
    )
    kept: list[str] = []

    class Engine(FakeEngine):
        def __call__(self, *argv: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
            if argv[0] == "import":
                kept.extend(
                    subprocess.run(["tar", "-tf", argv[1]], capture_output=True, text=True, check=True).stdout.split()
                )
                self.images.add(str(argv[2]))
            return super().__call__(*argv, **kwargs)

    engine = Engine()
    assert images.make_base(engine) == images.BUILT_BASE == images.make_base(engine)
    assert "./bin/" in kept
    assert "./var/lib/apt/lists/partial/" in kept
    assert not any("man" in name for name in kept)
    assert [call[0] for call in engine.calls] == ["import"]


# registry


@pytest.mark.parametrize(
    ("ref", "split"),
    [
        ("registry.k8s.io/coredns/coredns:v1.12.1", ("coredns/coredns", "v1.12.1")),
        ("docker.io/trainyard/platform:0.1.0", ("trainyard/platform", "0.1.0")),
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


def test_pushed_counts_only_for_this_content_and_while_the_blobs_are_there(tree: Path, cache: Path) -> None:
    engine = FakeEngine()
    image = dataclasses.replace(DEMO, also=("docker.io/trainyard/demo:extra",))
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
    (tree / "images/demo/Containerfile").write_text("FROM scratch\n")
    assert not registry.is_pushed(image, "b")


def test_a_broken_note_of_pushes_means_push_again(tree: Path, cache: Path) -> None:
    registry.storage().joinpath("pushed.json").write_text("{half")
    assert not registry.is_pushed(DEMO, "b")


def test_docker_pushes_under_a_tag_of_its_own() -> None:
    engine = FakeEngine("docker")
    registry.push_as(engine, "local:1", "127.0.0.1:4321/a:1")
    assert engine.calls == [["tag", "local:1", "127.0.0.1:4321/a:1"], ["push", "127.0.0.1:4321/a:1"]]


@pytest.mark.parametrize(
    ("ref", "pushed", "told"),
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
def test_loading_an_image_of_a_user(ref: str, pushed: str, told: str) -> None:
    engine = FakeEngine()
    engine.images.add(ref)
    assert lifecycle.load_image(engine, ref) == told
    assert engine.calls[-1][-2:] == [ref, f"docker://127.0.0.1:4321/{pushed}"]


def test_loading_an_image_that_is_not_there() -> None:
    with pytest.raises(TrainyardError, match=r"podman has no image me/app:1\. build or pull it first: `podman images`"):
        lifecycle.load_image(FakeEngine(), "me/app:1")


def test_loading_an_image_without_a_cluster() -> None:
    engine = FakeEngine()
    engine.images = {"me/app:1", "no-registry"}
    with pytest.raises(TrainyardError, match=r"registry isn't running\. make a cluster with"):
        lifecycle.load_image(engine, "me/app:1")


# sources


@pytest.mark.parametrize("wanted", ["pull", "build"])
def test_a_source_that_was_asked_for(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "registry_answers", lambda: pytest.fail("the network was asked"))
    assert source.choose(wanted) == source.Source(wanted, "asked for")


@pytest.mark.parametrize(
    ("answers", "kind", "reason"),
    [(True, "pull", "registry.k8s.io answers"), (False, "build", "registry.k8s.io can't be reached")],
)
def test_the_source_follows_the_network(answers: bool, kind: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "registry_answers", lambda: answers)
    assert source.choose("auto") == source.Source(kind, reason)


def test_an_unknown_source() -> None:
    with pytest.raises(UsageError, match=r"unknown image source `push`\. use auto, pull or build"):
        source.choose("push")


def test_what_the_own_registry_serves() -> None:
    upstream = dataclasses.replace(DEMO, name="up", own=False)
    local = dataclasses.replace(DEMO, name="local", local=True)
    listed = [DEMO, upstream, local]
    assert [i.name for i in source.Source("pull", "").served(listed)] == ["demo"]
    assert [i.name for i in source.Source("build", "").served(listed)] == ["demo", "up"]


def test_pulled_bases_come_from_the_versions_file() -> None:
    pulled = source.Source("pull", "")
    assert pulled.base(FakeEngine()) == load().raw["pull"]["base-image"]
    assert pulled.node_image(FakeEngine(), "b") == load().raw["pull"]["node-image"]


REGISTRY = {"Docker-Distribution-Api-Version": "registry/2.0"}


@pytest.mark.parametrize(
    ("code", "headers", "answers"),
    [
        (200, REGISTRY, True),
        (401, REGISTRY, True),  # it wants a login for /v2/ and serves public images all the same
        (401, {}, False),  # a proxy that wants a login
        (200, {}, False),  # a log-in page of a hotel
        (403, {}, False),
        (403, REGISTRY, False),
        (407, {}, False),
        (503, REGISTRY, False),
    ],
)
def test_which_answer_counts_as_a_registry(site: SimpleNamespace, code: int, headers: dict[str, str], answers: bool,
                                           monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site.code, site.headers = code, headers
    assert source.registry_answers(site.url) is answers


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v2/", "http://no-such-host.invalid/v2/", "nonsense"])
def test_no_registry_there(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1,.invalid")
    assert source.registry_answers(url, seconds=0.5) is False


def test_the_note_of_pushes_names_images_and_keys(tree: Path, cache: Path) -> None:
    registry.push(FakeEngine(), DEMO, "b", "h:1")
    assert json.loads((cache / "registry/pushed.json").read_text()) == {"demo": images.content_key(DEMO, "b")}


# pushing to a site's registry


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


def test_our_own_images_go_to_a_registry(pushing: Path, trainyard: Callable[..., Any]) -> None:
    ended = trainyard("images", "push", "registry.example.org/mirror/", "--images", "pull")
    assert (ended.code, ended.err) == (0, "")
    own = [i.ref for i in load().images.values() if i.own and not i.local]
    due = [f"{verb} registry.example.org/mirror/{ref.partition('/')[2]}" for ref in own for verb in ("tag", "push")]
    assert pushing.read_text().splitlines() == due
    assert f"[{len(own)}/{len(own)}] registry.example.org/mirror/trainyard/" in ended.out


def test_every_image_goes_to_a_registry(pushing: Path, trainyard: Callable[..., Any]) -> None:
    assert trainyard("images", "push", "registry.example.org", "--images", "build", "--all").code == 0
    pushed = [line.partition(" ")[2] for line in pushing.read_text().splitlines() if line.startswith("push")]
    assert "registry.example.org/volcanosh/vc-scheduler:v1.14.1" in pushed
    assert "registry.example.org/pause:3.10" in pushed
    assert len(pushed) == len(set(pushed))


def test_a_registry_that_refuses(pushing: Path, trainyard: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "refuse").touch()
    fault = trainyard("images", "push", "registry.example.org", "--images", "pull").fault()
    assert (
        "failed with code 125: unauthorized. check that you may push there: `podman login registry.example.org`."
        in fault
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
    assert says in ended.fault()


def test_a_mirror_that_is_a_url_is_refused_before_anything_is_built(
    trainyard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainyard.images.cli._readable", lambda *_: pytest.fail("images were built"))
    ended = trainyard("images", "mirror", "https://registry.example.org")
    assert (ended.code, "write it without a scheme" in ended.err) == (2, True)
