"""Files and patches of ours that are put into a copy of a module's source before it is built."""

import json
from pathlib import Path

import pytest
from demo_tools import GO, Program, left

from trainyard.errors import TrainyardError
from trainyard_dev.tools import build as tools
from trainyard_dev.versions import ToolSet

ADDED = "_source/pkg/lost_linux.go"


@pytest.fixture
def patched(demo: ToolSet, program: Program, tmp_path: Path) -> ToolSet:
    """A set that puts a file into its module's source; `go` shows what it would build from."""
    module = tmp_path / "module"
    (module / "pkg").mkdir(parents=True)
    (module / "pkg" / "there.go").write_text("package pkg\n")
    (module / "pkg" / "there.go").chmod(0o444)
    added = tools.source_dir(demo) / ADDED
    added.parent.mkdir(parents=True)
    added.write_text("package pkg // ours\n")
    program(
        "go",
        f"""
        if [ "$1" = list ]; then echo '{json.dumps({"Dir": str(module)})}'; exit; fi
        {{ echo "-- $PWD"; ls; tail -n 1 go.mod; ls ../source/pkg; }} >> {tmp_path}/calls
        {GO}""",
    )
    return demo


def test_files_that_a_module_lacks_are_put_into_a_copy_of_it(patched: ToolSet, cache: Path, tmp_path: Path) -> None:
    tools.build(patched)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert not any(line.startswith(f"-- {tmp_path}/tree") for line in calls)
    assert calls.count("lost_linux.go") == calls.count("there.go") == 1
    assert calls.count("replace example.org/demo => ../source") == 1
    assert "_source" not in calls
    assert left(cache) == [tools.pin(patched)]
    assert (tools.source_dir(patched) / "go.mod").read_text().endswith("require example.org/demo v1.2.3\n")
    assert sorted(p.name for p in (tmp_path / "module" / "pkg").iterdir()) == ["there.go"]


def test_pin_changes_with_files_that_are_put_in(patched: ToolSet) -> None:
    before = tools.pin(patched)
    (tools.source_dir(patched) / ADDED).write_text("package pkg // better\n")
    assert tools.pin(patched) != before


PATCH = """Why it is there.

--- a/pkg/there.go
+++ b/pkg/there.go
@@ -1 +1 @@
-package pkg
+package pkg // mended
"""


@pytest.fixture
def patch(patched: ToolSet) -> Path:
    """A change of the module's source, in a set that also adds a file."""
    made = tools.source_dir(patched) / "patches" / "01-mend.patch"
    made.parent.mkdir()
    made.write_text(PATCH)
    return made


def test_patches_change_the_copy_that_is_built(patched: ToolSet, patch: Path, program: Program, tmp_path: Path) -> None:
    module = json.dumps({"Dir": str(tmp_path / "module")})
    show = f"cat ../source/pkg/there.go >> {tmp_path}/built; ls >> {tmp_path}/built"
    program("go", f"""if [ "$1" = list ]; then echo '{module}'; exit; fi\n{show}\n{GO}""")
    tools.build(patched)
    assert (tmp_path / "built").read_text().splitlines()[:3] == ["package pkg // mended", "go.mod", "go.sum"]
    assert (tmp_path / "module" / "pkg" / "there.go").read_text() == "package pkg\n"


def test_patch_that_no_longer_fits_stops_the_build(patched: ToolSet, patch: Path, cache: Path) -> None:
    patch.write_text(PATCH.replace("-package pkg", "-package other"))
    with pytest.raises(
        TrainyardError, match=r"the source of demo changed: the lines .* pkg/there\.go .* 0 times"
    ) as failure:
        tools.build(patched)
    assert "Why it is there" in failure.value.hint and str(failure.value.where).endswith("01-mend.patch")
    assert left(cache) == []


def test_pin_changes_with_a_patch(patched: ToolSet, patch: Path) -> None:
    with_patch = tools.pin(patched)
    patch.write_text(PATCH.replace("mended", "mended better"))
    changed = tools.pin(patched)
    patch.unlink()
    assert len({with_patch, changed, tools.pin(patched)}) == 3
