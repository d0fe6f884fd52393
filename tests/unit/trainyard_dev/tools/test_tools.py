"""Binaries from pinned modules: what determines their place in the cache, and how a failing build ends."""

import dataclasses
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from demo_tools import GO, Program, left

from trainyard.errors import TrainyardError
from trainyard_dev.tools import build as tools
from trainyard_dev.tools import golang
from trainyard_dev.versions import ToolSet, Versions


@pytest.mark.parametrize(
    "change",
    [
        {"tags": ("no_zfs",)},
        {"cgo": True},
        {"stamp": {"example.org/demo.version": "v1.2.3"}},
        {"packages": (("example.org/demo", "other"),)},
        {"version": "v1.2.4"},
    ],
)
def test_pin_changes_with_flags(demo: ToolSet, change: dict[str, object]) -> None:
    assert tools.pin(dataclasses.replace(demo, **change)) != tools.pin(demo)


@pytest.mark.parametrize(("file", "counts"), [("go.mod", True), ("go.sum", True), ("main.go", True),
                                              ("main_test.go", False), ("README.md", False)])  # fmt: skip
def test_pin_changes_with_files_that_decide_the_binary(demo: ToolSet, file: str, counts: bool) -> None:
    before = tools.pin(demo)
    path = tools.source_dir(demo) / file
    path.write_text((path.read_text() if path.exists() else "") + "// more\n")
    assert (tools.pin(demo) != before) is counts


def test_pin_begins_with_the_version_and_stays_the_same(demo: ToolSet) -> None:
    assert tools.pin(demo).startswith("v1.2.3-")
    assert tools.pin(demo) == tools.pin(demo)


def test_build_caches_every_binary_and_passes_the_flags(
    demo: ToolSet, cache: Path, program: Program, tmp_path: Path
) -> None:
    program("go", f'echo "$PWD CGO=$CGO_ENABLED GOFLAGS=$GOFLAGS $*" >> {tmp_path}/calls\n{GO}')
    stamped = dataclasses.replace(demo, cgo=True, tags=("a", "b"), stamp={"x.version": "v1"})
    tools.build(stamped)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 1
    assert calls[0].endswith("/bin/ example.org/demo example.org/demo/ctl")
    assert calls[0].startswith(
        f"{tmp_path}/tree/tools/demo CGO=1 GOFLAGS=-mod=readonly -buildvcs=false build -trimpath -tags a,b"
    )
    assert "-s -w -X x.version=v1" in calls[0]
    assert tools.is_built(stamped)
    assert left(cache) == [tools.pin(stamped)]


def test_go_lies_where_sudo_does_not_look(demo: ToolSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sudo make e2e` has no /usr/local/go/bin in PATH, where Go's own archive is unpacked."""
    (tmp_path / "go").write_text(f"#!/bin/bash\n{GO}\n")
    (tmp_path / "go").chmod(0o755)
    found = shutil.which
    monkeypatch.setattr(golang, "ELSEWHERE", str(tmp_path))
    monkeypatch.setattr(golang.shutil, "which", lambda name, path=None: found(name, path=path) if path else None)
    assert tools.binary("demo").read_text() == "built example.org/demo\n"


@pytest.mark.parametrize(("theirs", "used"), [("", "auto"), ("local", "local"), ("go1.26.8", "go1.26.8")])
def test_go_may_fetch_a_newer_one_unless_it_was_told(
    demo: ToolSet, program: Program, monkeypatch: pytest.MonkeyPatch, theirs: str, used: str, tmp_path: Path
) -> None:
    program("go", f'echo "$GOTOOLCHAIN" >> {tmp_path}/calls\n{GO}')
    monkeypatch.setenv("GOTOOLCHAIN", theirs)
    tools.binary("demo")
    assert (tmp_path / "calls").read_text().split() == [used]


@pytest.mark.parametrize("package", [".", "example.org/demo/v3"])
def test_a_package_that_go_calls_otherwise_is_built_by_itself(
    demo: ToolSet, program: Program, tmp_path: Path, package: str
) -> None:
    program("go", f'echo "$*" >> {tmp_path}/calls\n{GO}')
    mixed = dataclasses.replace(demo, packages=((package, "demo"), ("example.org/demo/ctl", "democtl")))
    tools.build(mixed)
    assert tools.is_built(mixed)
    assert [call.split()[-1] for call in (tmp_path / "calls").read_text().splitlines()] == [
        "example.org/demo/ctl",
        package,
    ]


def test_a_binary_is_built_once(demo: ToolSet, program: Program, tmp_path: Path) -> None:
    program("go", f"echo x >> {tmp_path}/calls\n{GO}")
    assert tools.binary("democtl").read_text() == "built example.org/demo/ctl\n"
    assert tools.binary("demo").exists()
    assert (tmp_path / "calls").read_text().count("x") == 1  # one call for both binaries, no second build


def test_two_processes_that_want_a_set_build_it_once(demo: ToolSet, program: Program, tmp_path: Path) -> None:
    program("go", f"echo x >> {tmp_path}/calls; sleep 0.3\n{GO}")
    with ThreadPoolExecutor(2) as both:
        assert len({path.read_text() for path in both.map(tools.binary, ["demo", "democtl"])}) == 2
    assert (tmp_path / "calls").read_text().count("x") == 1


def test_a_set_with_a_lost_binary_is_built_again(demo: ToolSet, program: Program) -> None:
    program("go", GO)
    tools.binary("demo")
    (tools.bin_dir(demo) / "democtl").unlink()
    assert not tools.is_built(demo)
    assert tools.binary("democtl").exists()


def test_ensure_counts_and_shows_what_it_builds(
    demo: ToolSet, program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    program("go", GO)
    assert tools.ensure(["host"]) == 0
    assert tools.ensure(["test"]) == 1
    shown = capsys.readouterr().out
    assert "(1 step)" in shown
    assert "[1/1] demo v1.2.3: demo, democtl … " in shown
    assert tools.ensure(["test"]) == 0


@pytest.fixture
def further(demo: ToolSet, program: Program, monkeypatch: pytest.MonkeyPatch) -> ToolSet:
    """A second version of `demo`, named first in versions.yaml, that builds one of its binaries."""
    newer = dataclasses.replace(demo, name="demo-2", family="demo", version="v2.0.1", packages=demo.packages[:1])
    folder = tools.ROOT / "tools" / "demo-2"
    folder.mkdir()
    (folder / "go.mod").write_text("module m\n\ngo 1.25\n\nrequire example.org/demo v2.0.1\n")
    sets = {"demo-2": newer, "demo": dataclasses.replace(demo, family="demo")}
    monkeypatch.setattr(tools, "load", lambda: Versions(raw={}, tools=sets, images={}))
    program("go", f'here=$(basename "$PWD")\n{GO.replace("built", "$here built")}')
    return newer


def test_two_versions_of_a_binary_lie_side_by_side(further: ToolSet, cache: Path) -> None:
    assert tools.binary("demo").parent.parent == cache / "tools" / "demo"
    for version in ("2", "2.0", "2.0.1", "v2.0.1"):
        assert tools.binary("demo", version) == cache / "tools" / "demo-2" / tools.pin(further) / "demo"
    assert tools.binary("demo", "1.2") == tools.binary("demo")
    assert tools.binary("demo", "2").read_text() == "demo-2 built example.org/demo\n"
    assert tools.binary("demo").read_text() == "demo built example.org/demo\n"


def test_a_version_that_no_set_builds(further: ToolSet) -> None:
    with pytest.raises(TrainyardError, match=r"no tool set builds `demo` 3\. use 2\.0\.1, 1\.2\.3, or add a set"):
        tools.binary("demo", "3")
    with pytest.raises(TrainyardError, match=r"no tool set builds `democtl` 2\. use 1\.2\.3, or add a set"):
        tools.binary("democtl", "2")


def test_unknown_binary(demo: ToolSet) -> None:
    with pytest.raises(TrainyardError, match=r"versions.yaml: no tool set builds `nothing`"):
        tools.binary("nothing")


@pytest.mark.parametrize(
    ("says", "hint"),
    [
        (
            "go: example.org/demo@v1.2.3: dial tcp: lookup modules.example.org: no such host",
            "the network is unreachable",
        ),
        ('Get \\"https://modules.example.org\\": proxyconnect tcp: i/o timeout', "the network is unreachable"),
        ("reading https://modules.example.org/demo/@v/v1.2.3.zip: 403 Forbidden", "the network is unreachable"),
        ("module lookup disabled by GOPROXY=off", "the network is unreachable"),
        ("verifying example.org/demo@v1.2.3: checksum mismatch", "upstream has moved a tag: Go's proxy keeps what"),
        ("write /tmp/x: no space left on device", "free some space"),
        ("./main.go:3:8: undefined: x", "run the same command again for the whole output"),
    ],
)
def test_a_failing_build_is_one_sentence_and_leaves_nothing(
    demo: ToolSet, cache: Path, program: Program, says: str, hint: str
) -> None:
    program(
        "go",
        f'case "$*" in *demo/ctl*) echo "go: downloading example.org/x v1" >&2; echo "{says}" >&2; exit 1;; esac\n{GO}',
    )
    with pytest.raises(TrainyardError) as caught:
        tools.build(demo)
    text = str(caught.value)
    assert text.startswith("tools/demo: building demo v1.2.3 failed: ")
    assert says.replace('\\"', '"') in text
    assert hint in text
    assert "downloading" not in text
    assert "\n" not in text
    assert left(cache) == []  # nor the first binary, which was fine


def test_a_failing_build_keeps_an_older_pin(demo: ToolSet, cache: Path, program: Program) -> None:
    program("go", GO)
    tools.build(demo)
    program("go", "exit 1")
    newer = dataclasses.replace(demo, tags=("x",))
    with pytest.raises(TrainyardError, match="code 1"):
        tools.build(newer)
    assert left(cache) == [tools.pin(demo)]


def test_an_interrupted_build_leaves_nothing(demo: ToolSet, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(golang, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tools.build(demo)
    assert left(cache) == []


def test_a_full_disk_is_one_sentence(
    demo: ToolSet, cache: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **kwargs: object) -> str:
        raise OSError(28, "No space left on device")

    program("go", GO)
    monkeypatch.setattr(tools.tempfile, "mkdtemp", full)
    with pytest.raises(
        TrainyardError, match=r"building demo failed: No space left on device\. free some space, or set"
    ):
        tools.build(demo)


def test_no_compiler(demo: ToolSet, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(golang, "ELSEWHERE", "/nowhere")
    with pytest.raises(TrainyardError, match=r"go is not installed\. run `trainyard doctor`"):
        tools.build(demo)
    assert left(cache) == []


@pytest.mark.skipif(not shutil.which("go"), reason="no Go compiler here")
def test_the_real_compiler_without_a_network(
    demo: ToolSet, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tools.source_dir(demo)
    (folder / "go.sum").write_text(
        "".join(f"example.org/demo v1.2.3{file} h1:{'A' * 43}=\n" for file in ("", "/go.mod"))
    )
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("GONOSUMDB", "*")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOCACHE", os.environ.get("GOCACHE") or str(tmp_path / "gocache"))
    with pytest.raises(
        TrainyardError, match=r"connection refused\. the network is unreachable: check `go env GOPROXY`"
    ):
        tools.build(demo)
    assert left(cache) == []


def test_module_dir_downloads_what_is_not_there(demo: ToolSet, program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "module"
    program(
        "go",
        f"""
        case "$1 $2" in
        "mod download") mkdir {folder};;
        "list -m") echo '{json.dumps({"Dir": str(folder)})}';;
        esac""",
    )
    assert not folder.exists()
    assert tools.module_dir("demo") == folder
    assert folder.exists()
