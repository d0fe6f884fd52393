"""Packing a folder: the same code gives the same archive, and ignore files work as in git."""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from trainyard.errors import UsageError
from trainyard.training import detect, pack
from trainyard.training.ignore import FILE, Ignore
from trainyard.training.transfer.folder import scan

TREE = (
    "train.py",
    "README.md",
    "a b.txt",
    "data/x.bin",
    "data/keep/y.bin",
    "data/keep.txt",
    "src/data/z.bin",
    "src/deep/er/log.txt",
    "src/log.txt",
    "logs/1.txt",
    "logs/2.txt",
    "build/out/a.o",
    "src/build/b.o",
    "x[1].txt",
    "#hash",
    "!bang",
    "file1.py",
    "file2.py",
    "filea.py",
    "foo/bar/baz.txt",
    "foo/qux.txt",
    "trail ",
    "deep/a/b/c.txt",
    "*star",
)
RULES = (
    ["*.bin"],
    ["/data"],
    ["data/"],
    ["data"],
    ["data/*", "!data/keep.txt"],
    ["data/", "!data/keep.txt"],
    ["**/log.txt"],
    ["src/**"],
    ["src/**/log.txt"],
    ["logs/?.txt", "!logs/2.txt"],
    ["build/"],
    ["/build/"],
    ["file[0-9].py"],
    ["file[!0-9].py"],
    ["x\\[1\\].txt"],
    ["\\#hash", "\\!bang"],
    ["#hash"],
    ["foo/*"],
    ["foo/bar"],
    ["foo/**/baz.txt"],
    ["trail\\ "],
    ["trail  "],
    ["a b.txt"],
    ["*", "!*.py"],
    ["*", "!*/", "!*.py"],
    ["deep/**/c.txt"],
    ["**/a/**"],
    ["/*", "!/src"],
    ["\\*star"],
    ["src/*.txt"],
    ["", "   ", "# remark"],
    ["[abc", "x[1].txt"],
    ["f*/b?r"],
    ["**"],
    ["!train.py"],
)


def packed(folder: Path, tmp_path: Path, name: str = "out.tar.gz", **more: tuple[str, ...]) -> pack.Pack:
    return pack.pack(folder, tmp_path / name, **more)


def names(archive: pack.Pack) -> list[str]:
    with tarfile.open(archive.path) as tar:
        return tar.getnames()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in TREE:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


@pytest.mark.parametrize("lines", RULES, ids=lambda lines: " ".join(lines) or "blank")
def test_ignore_files_mean_what_git_understands(folder: Path, tmp_path: Path, lines: list[str]) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / ".gitignore").write_text("\n".join(lines) + "\n")
    listed = subprocess.run(
        ["git", "-C", folder, "ls-files", "-z", "--others", "--exclude-standard"], capture_output=True, check=True
    )
    expected = sorted(set(listed.stdout.decode().split("\0")) - {"", ".gitignore"})
    ignore = Ignore(lines)
    found = []
    for where, below, files in os.walk(folder):
        prefix = os.path.relpath(where, folder) + "/" if where != str(folder) else ""
        below[:] = [name for name in below if name != ".git" and not ignore.leaves_out(prefix + name, folder=True)]
        found += [prefix + name for name in files if not ignore.leaves_out(prefix + name, folder=False)]
    assert sorted(set(found) - {".gitignore"}) == expected


def test_the_same_code_gives_the_same_archive(folder: Path, tmp_path: Path) -> None:
    first = packed(folder, tmp_path)
    for path in folder.rglob("*"):
        os.utime(path, (5, 5))
    second = packed(folder, tmp_path, "again.tar.gz")
    assert (first.sha256, first.size, first.files) == (second.sha256, second.size, len(TREE))
    assert first.path.read_bytes() == second.path.read_bytes()
    (folder / "train.py").write_text("changed")
    assert packed(folder, tmp_path, "third.tar.gz").sha256 != first.sha256


def test_results_and_what_tools_leave_behind_are_no_code(folder: Path, tmp_path: Path) -> None:
    for name in ("results/run-1/model.pt", "__pycache__/a.pyc", ".git/HEAD", ".venv/lib/x.py", "src/__pycache__/b.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / FILE).write_text("data/\n")
    found = names(packed(folder, tmp_path, without=("results",)))
    assert "train.py" in found and "src/data/z.bin" not in found
    assert not [name for name in found if name.startswith(("results", ".git/", ".venv", "data/")) or "pycache" in name]


def test_links_that_lead_out_of_the_folder_are_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("secret")
    (folder / "deep").mkdir(exist_ok=True)
    (folder / "deep" / "key").symlink_to(tmp_path / "key.pem")
    (folder / "inside.py").symlink_to("train.py")
    found = packed(folder, tmp_path)
    assert found.outside == ["deep/key"] and {"deep/key", "inside.py"} <= set(names(found))
    assert scan(folder).outside == ["deep/key"]


def test_links_to_files_are_packed_as_files_and_links_to_folders_are_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (folder / "linked.py").symlink_to(folder / "train.py")
    (folder / "elsewhere").symlink_to(tmp_path / "outside")
    (folder / "broken").symlink_to(tmp_path / "none")
    found = packed(folder, tmp_path)
    assert "linked.py" in names(found) and found.left_out == ["broken", "elsewhere"]


def test_programs_stay_programs(folder: Path, tmp_path: Path) -> None:
    (folder / "train.py").chmod(0o700)
    with tarfile.open(packed(folder, tmp_path).path) as tar:
        modes = {info.name: info.mode for info in tar}
        assert {(info.uid, info.gid, info.mtime) for info in tar.getmembers()} == {(0, 0, 0)}
    assert (modes["train.py"], modes["README.md"]) == (0o755, 0o644)


def test_too_much_and_nothing_are_refused(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="the folder contains no code"):
        packed(tmp_path / "empty", tmp_path)
    monkeypatch.setattr(pack, "MOST", 1 << 20)
    (folder / "weights.pt").write_bytes(b"x" * (3 << 20))
    with pytest.raises(UsageError, match=r"the largest: weights.pt \(3 MiB\).*code may have 1 MiB"):
        packed(folder, tmp_path)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("import torch.nn as nn", "pytorch"),
        ("from tensorflow import keras", "tensorflow"),
        ("import torch\nimport horovod.torch as hvd", "mpi"),
        ("def f():\n    from mpi4py import MPI", "mpi"),
        ("import numpy", "job"),
        ("from .torch import x", "job"),
        ("import torch oops", "job"),
    ],
)
def test_the_framework_is_found_by_imports(tmp_path: Path, text: str, kind: str) -> None:
    (tmp_path / "train.py").write_text(text)
    (tmp_path / "other.py").write_text("import tensorflow")
    assert detect.framework(tmp_path, ["python", "train.py"])[0] == kind


def test_names_and_scripts_are_guessed(tmp_path: Path) -> None:
    project = tmp_path / "2024_My Digits!"
    project.mkdir()
    assert detect.job_name(project) == "my-digits" and detect.script(project) == ""
    (project / "only.py").write_text("")
    assert detect.script(project) == "only.py"
    (project / "main.py").write_text("")
    assert detect.script(project) == "main.py"
