"""Which files of a folder are code: the rules of .gitignore, read from .trainyardignore."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

FILE = ".trainyardignore"
ALWAYS = (
    ".git/",
    ".hg/",
    ".svn/",
    "__pycache__/",
    "*.py[co]",
    ".venv/",
    "venv/",
    "*.egg-info/",
    ".ipynb_checkpoints/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    "node_modules/",
    ".DS_Store",
)


@dataclass(frozen=True)
class Rule:
    """One line. `keeps`: it takes back what a line before it left out."""

    pattern: re.Pattern[str]
    keeps: bool
    folders_only: bool


class Ignore:
    """The rules of some lines; the last that fits decides."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.rules = [rule for line in lines if (rule := _rule(line))]

    def leaves_out(self, path: str, *, folder: bool) -> bool:
        """Whether a file or folder is left out; ask for folders first: what is in one that is out is out, too.

        Args:
            path: below the folder, with slashes between.
            folder: whether it is one.
        """
        for rule in reversed(self.rules):
            if (folder or not rule.folders_only) and rule.pattern.fullmatch(path):
                return not rule.keeps
        return False


def _rule(line: str) -> Rule | None:
    """A line as a rule; None for blank lines, remarks and what can never fit."""
    text = re.sub(r"(?<!\\)((?:\\\\)*)[ \t]+$", r"\1", line.rstrip("\r\n"))
    if not text or text.startswith("#"):
        return None
    keeps = text.startswith("!")
    text = text[1:] if keeps else text
    folders_only = text.endswith("/")
    text = text.rstrip("/") if folders_only else text
    if not text:
        return None
    anchored = "/" in text
    try:
        pattern = re.compile(("" if anchored else "(?:.*/)?") + _regex(text.removeprefix("/")), re.S)
    except re.error:
        return None
    return Rule(pattern, keeps, folders_only)


def _regex(text: str) -> str:
    """Shell pattern to regular expression; `**` alone between slashes stands for any number of folders."""
    found, at = "", 0
    while at < len(text):
        rest = text[at:]
        begins = at == 0 or text[at - 1] == "/"
        if begins and rest.startswith("**/"):
            found, at = found + "(?:.*/)?", at + 3
        elif begins and rest == "**":
            found, at = found + ".+", at + 2
        elif rest[0] == "*":
            found, at = found + "[^/]*", at + len(rest) - len(rest.lstrip("*"))
        elif rest[0] == "?":
            found, at = found + "[^/]", at + 1
        elif rest[0] == "[" and (close := _close(rest)):
            inner = rest[1:close].replace("\\]", "]").replace("\\", "\\\\")
            inner = f"^{inner[1:]}" if inner.startswith(("!", "^")) else inner
            found, at = found + f"(?!/)[{inner.replace('[', chr(92) + '[')}]", at + close + 1
        elif rest[0] == "\\" and len(rest) > 1:
            found, at = found + re.escape(rest[1]), at + 2
        else:
            found, at = found + re.escape(rest[0]), at + 1
    return found


def _close(text: str) -> int:
    """Where the bracket at the beginning of `text` is closed; 0 when it isn't."""
    at = 2 if text[1:2] in ("!", "^") else 1
    return max(0, text.find("]", at + 1))


def lines_of(text: str) -> list[str]:
    """What is always left out, and the lines of an ignore file after it, which may take some of it back."""
    return [*ALWAYS, *text.splitlines()]
