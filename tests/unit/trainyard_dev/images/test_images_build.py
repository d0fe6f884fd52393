"""Images: their cache keys, their build contexts, and their base."""

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from images_demo import DEMO, FakeEngine

from trainyard.errors import TrainyardError
from trainyard_dev.images import base
from trainyard_dev.images import build as images


def test_the_key_changes_with_content_and_stays_otherwise(image_tree: Path) -> None:
    before = images.content_key(DEMO, "base:1")
    (image_tree / "images/demo/__pycache__").mkdir()
    (image_tree / "images/demo/__pycache__/x.pyc").write_text("x")
    (image_tree / "images/demo/Containerfile").touch()
    assert images.content_key(DEMO, "base:1") == before
    (image_tree / "images/demo/Containerfile").write_text("FROM scratch\n")
    assert images.content_key(DEMO, "base:1") != before


def test_the_key_changes_with_a_renamed_file(image_tree: Path) -> None:
    (image_tree / "images/demo/a").write_text("x")
    before = images.content_key(DEMO, "base:1")
    (image_tree / "images/demo/a").rename(image_tree / "images/demo/b")
    assert images.content_key(DEMO, "base:1") != before


def test_the_key_changes_with_base_reference_and_inputs(image_tree: Path) -> None:
    (image_tree / "shared").mkdir()
    (image_tree / "shared/a.py").write_text("1")
    wider = dataclasses.replace(DEMO, context=".", inputs=("images/demo", "shared"))
    keys = {
        images.content_key(DEMO, "base:1"),
        images.content_key(DEMO, "base:2"),
        images.content_key(dataclasses.replace(DEMO, ref="site.invalid/trainyard/demo:0.2.0"), "base:1"),
        images.content_key(wider, "base:1"),
    }
    (image_tree / "shared/a.py").write_text("2")
    assert len({*keys, images.content_key(wider, "base:1")}) == 5


def test_the_key_changes_with_the_pin_of_a_binary_in_it(image_tree: Path) -> None:
    with_binary = dataclasses.replace(DEMO, bin=("toolbin",))
    with_file = dataclasses.replace(DEMO, files={"x": "tool:path"})
    before = [images.content_key(i, "b") for i in (DEMO, with_binary, with_file)]
    (image_tree / "tools/tool/go.mod").write_text("module m\n\nrequire x v1\n")
    after = [images.content_key(i, "b") for i in (DEMO, with_binary, with_file)]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, False]


def test_the_local_tag_holds_the_key(image_tree: Path) -> None:
    assert images.local_ref(DEMO, "b") == f"localhost/trainyard/build/demo:{images.content_key(DEMO, 'b')}"


def test_what_the_engine_has_is_not_built_again(image_tree: Path) -> None:
    engine = FakeEngine()
    tag = images.build(engine, DEMO, "base:1")
    assert images.build(engine, DEMO, "base:1") == tag
    assert [call[0] for call in engine.calls] == ["build"]


def test_the_build_context_holds_binaries_and_module_files(
    image_tree: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = image_tree / "module"
    (module / "files/sub").mkdir(parents=True)
    (module / "files/sub/a.txt").write_text("from the module")
    (image_tree / "images/demo/note").write_text("input")
    (image_tree / "toolbin").write_text("program")
    monkeypatch.setattr(images.tools, "binary", lambda name, arch: image_tree / name)
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


def test_a_failing_image_build_leaves_no_context(image_tree: Path, cache: Path) -> None:
    def broken(context: Path) -> None:
        raise TrainyardError("`podman build …` failed with code 1")

    engine = FakeEngine()
    engine.on_build = broken
    with pytest.raises(TrainyardError):
        images.build(engine, DEMO, "b")
    assert list((cache / "work").iterdir()) == []
    assert engine.images == set()


def test_a_missing_containerfile_is_named(image_tree: Path) -> None:
    (image_tree / "images/demo/Containerfile").unlink()
    with pytest.raises(TrainyardError, match=r"^images/demo: the Containerfile is missing\.$"):
        images.build(FakeEngine(), DEMO, "b")


def test_an_image_on_the_older_suite_gets_the_base_of_that_suite(image_tree: Path) -> None:
    older, engine = dataclasses.replace(DEMO, older=True), FakeEngine()
    for image, due in ((DEMO, base.UPDATED_BASE), (older, f"localhost/trainyard/{base.OLDER}-updated:{base.DAY}")):
        images.build(engine, image, base.UPDATED_BASE)
        assert f"BASE={due}" in engine.calls[-1]
    assert images.content_key(DEMO, base.UPDATED_BASE) != images.content_key(older, base.UPDATED_BASE)


def test_the_base_needs_debootstrap(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(TrainyardError, match=r"debootstrap is not installed\. apt-get install -y debootstrap"):
        base.make_base(FakeEngine())


@pytest.mark.parametrize("suite", [base.SUITE, base.OLDER])
def test_the_base_is_made_slim_and_once(suite: str, cache: Path, program: Callable[[str, str], Path]) -> None:
    program(
        "debootstrap",
        "suite=$3; for d; do :; done; mkdir -p $d/usr/share/man $d/var/cache/apt $d/bin $d/etc/apt\n"
        "echo x > $d/usr/share/man/page\n"
        "echo deb http://mirror.example/debian $suite main > $d/etc/apt/sources.list",
    )
    program(
        "chroot",
        f'grep -q "mirror.example/debian-security {suite}-security main" $1/etc/apt/sources.list'
        ' && echo "$4" > $1/bin/ran',
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
    assert base.make_base(engine, suite) == f"localhost/trainyard/{suite}:{base.DAY}" == base.make_base(engine, suite)
    assert "./bin/ran" in kept, "it was brought up to date, with the security archive in its list"
    assert "./var/lib/apt/lists/partial/" in kept
    assert not any("man" in name for name in kept)
    assert [call[0] for call in engine.calls] == ["import"]
