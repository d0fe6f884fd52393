"""Folders of tools and images: at the top, or in the folder of the only component that has them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

TOOLS, IMAGES = "tools", "images"


def find(root: Path, sort: str, name: str) -> str:
    """The folder of a tool set or an image below the root: `charts/<component>/tools/<name>`, else `tools/<name>`."""
    own = sorted(root.glob(f"charts/*/{sort}/{name}/"))
    return own[0].relative_to(root).as_posix() if own else f"{sort}/{name}"


def each(root: Path, sort: str, file: str) -> list[Path]:
    """Lists this file of every tool set or image that has it."""
    return sorted([*root.glob(f"{sort}/*/{file}"), *root.glob(f"charts/*/{sort}/*/{file}")])


def matching(root: Path, patterns: Iterable[str]) -> Iterator[str]:
    """Yields each path, and the matches of a pattern with `*`."""
    for one in patterns:
        yield from sorted(file.relative_to(root).as_posix() for file in root.glob(one)) if "*" in one else [one]
