"""Finds where a folder's code saves its results to a literal path that is deleted with the pod."""

import ast
import posixpath
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainyard.kinds import imports, registry

METHODS = ("save", "save_checkpoint", "save_model", "save_pretrained", "save_weights")
SECOND = [kind.modules[0] for kind in registry.KINDS if kind.saves_second]
PLACES = ("f", "path", "filepath", "fname", "save_directory", "output_dir")


@dataclass(frozen=True)
class Saved:
    """One call that saves, and the path as written."""

    place: str
    file: str
    line: int

    def advice(self, results: str) -> tuple[str, str]:
        """The problem, and how to fix it."""
        what = f"{self.file}:{self.line} saves {self.place}, which is lost with the pod"
        named = f"save it below {results}/, given by TRAINYARD_RESULTS" if results else "set a folder with --results"
        return what, named


def lost(folder: Path, command: Sequence[str], kept: Sequence[str], mounts: Collection[str]) -> list[Saved]:
    """Calls of the command's script, and of the files that it imports, that save to a path that isn't kept.

    Args:
        kept: folders below the code that are uploaded to the store: results and checkpoints.
        mounts: mount paths of claims.
    """
    found = list[Saved]()
    for path in imports.files_of(folder, command):
        try:
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        if "chdir(" in text:
            continue  # its relative paths are unknown
        name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
        found += [Saved(place, name, line) for place, line in _calls(tree) if _goes(place, kept, mounts)]
    return sorted(found, key=lambda one: (one.file, one.line))


def _calls(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in METHODS:
            continue
        of = node.func.value
        second = isinstance(of, ast.Name) and of.id in SECOND
        given = [*node.args[second : second + 1], *(word.value for word in node.keywords if word.arg in PLACES)]
        for one in given[:1]:
            if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value:
                yield one.value, node.lineno


def _goes(place: str, kept: Sequence[str], mounts: Collection[str]) -> bool:
    path = posixpath.normpath(place)
    stays = mounts if path.startswith("/") else [posixpath.normpath(one) for one in kept if one]
    return "://" not in place and not any(path == one or path.startswith(f"{one.rstrip('/')}/") for one in stays)
