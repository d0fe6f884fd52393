"""Committed files of results: the commit that they are about, and atomic writes."""

from collections.abc import Iterable
from pathlib import Path

from trainyard.shell import run


def commit(root: Path, written: Iterable[str]) -> str:
    """The commit of a tree in 12 characters, with `, changed` where tracked files differ from it.

    Args:
        written: files that the run itself writes, which don't count as changes.
    """
    head = run(["git", "rev-parse", "--short=12", "HEAD"], cwd=root, check=False).stdout.strip()
    looked = ["git", "status", "--porcelain", "--untracked-files=no", "--", ".", *(f":!{file}" for file in written)]
    return f"{head}, changed" if run(looked, cwd=root, check=False).stdout.strip() else head


def write(path: Path, text: str) -> None:
    """Writes the file atomically, by way of a temporary one; creates missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)
