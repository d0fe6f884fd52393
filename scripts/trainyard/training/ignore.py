"""Which files of a folder are code: the rules of .gitignore, read from .trainyardignore."""

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
    """The rules of some lines; the last that fits decides."""

    def __init__(self, lines: Iterable[str]) -> None:
        # By `re`: RE2 takes no name that is not UTF-8.
        self._rules = GitIgnoreSpec([rule for line in lines for rule in _rules(line)], backend="simple")

    def leaves_out(self, path: str, *, folder: bool) -> bool:
        """Whether a file or folder is left out; ask for folders first: what is in one that is out is out, too.

        Args:
            path: below the folder, with slashes between.
            folder: whether it is one.
        """
        return bool(self._rules.check_file(f"{path}/" if folder else path).include)


def _rules(line: str) -> Iterable[GitIgnoreSpecPattern]:
    """A line as a rule; none where it can never fit."""
    try:
        return GitIgnoreSpec.from_lines([line]).patterns
    except (ValueError, re.error):
        return []


def lines_of(text: str) -> list[str]:
    """What is always left out, and the lines of an ignore file after it, which may take some of it back."""
    return [*ALWAYS, *text.splitlines()]
