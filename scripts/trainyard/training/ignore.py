"""Selection of a folder's code files: the rules of .gitignore, read from .trainyardignore."""

import re
from collections.abc import Iterable

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

FILE = ".trainyardignore"
ALWAYS = (
    ".git/", ".hg/", ".svn/", "__pycache__/", "*.py[co]", ".venv/", "venv/", "*.egg-info/", ".ipynb_checkpoints/",
    ".mypy_cache/", ".pytest_cache/", ".ruff_cache/", "node_modules/", ".DS_Store",
)  # fmt: skip


class Ignore:
    """Ignore rules of some lines; the last matching rule decides."""

    def __init__(self, lines: Iterable[str]) -> None:
        # Uses `re`: RE2 accepts no name that is not UTF-8.
        self._rules = GitIgnoreSpec([rule for line in lines for rule in _rules(line)], backend="simple")

    def leaves_out(self, path: str, *, folder: bool) -> bool:
        """Whether a file or folder is ignored; check folders first, since all in an ignored folder is ignored.

        Args:
            path: path below the folder, with slashes.
            folder: whether the path is a folder.
        """
        return bool(self._rules.check_file(f"{path}/" if folder else path).include)


def _rules(line: str) -> Iterable[GitIgnoreSpecPattern]:
    """A line as a rule; empty if it can never match."""
    try:
        return GitIgnoreSpec.from_lines([line]).patterns
    except (ValueError, re.error):
        return []


def lines_of(text: str) -> list[str]:
    """The rules that always apply, then the lines of an ignore file, which may revoke some of them."""
    return [*ALWAYS, *text.splitlines()]
