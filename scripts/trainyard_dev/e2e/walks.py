"""The commands of a page that are run unchanged, by the person who types them. The page itself marks what isn't run.

A block of commands follows its mark: `<!-- walk: WHO -->`, or `<!-- not run: WHY -->`. Blocks of one walk are one
shell session, in the page's order.
"""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.shell import last_lines

MARK = re.compile(r"<!-- (walk|not run): (.+?) -->")
AT = "\x1e"  # before each command's output, with its number


@dataclass(frozen=True)
class Walk:
    """The commands that one person types, in order; a command may have several lines."""

    who: str
    commands: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    """The walks of a page, and (why, commands) of what isn't run."""

    walks: list[Walk]
    left_out: list[tuple[str, list[str]]]

    def walk(self, who: str) -> Walk:
        """The walk of that person. Raises TrainyardError if there is none."""
        for one in self.walks:
            if one.who == who:
                return one
        raise TrainyardError(f"no walk is marked `<!-- walk: {who} -->`", where="README.md")


def read(text: str) -> Page:
    """A page's commands. Raises TrainyardError with the line of a block without a mark or a mark without a block."""
    walks: dict[str, Walk] = {}
    left_out: list[tuple[str, list[str]]] = []
    mark: re.Match[str] | None = None
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if not line.strip():
            continue
        if not line.startswith("    "):
            if mark:
                raise TrainyardError(f"no commands follow {mark[0]}", where=f"line {at}")
            mark = MARK.fullmatch(line)
            continue
        first = at
        block = [line[4:]]
        while at < len(lines) and (lines[at].startswith("    ") or "\n".join(lines[at : at + 2]).startswith("\n    ")):
            block.append(lines[at][4:])
            at += 1
        if not mark:
            hint = "write `<!-- walk: WHO -->` or `<!-- not run: WHY -->` above the commands"
            raise TrainyardError("these commands lack a mark", where=f"line {first}", hint=hint)
        kind, what = mark.groups()
        mark = None
        if kind == "walk":
            walks.setdefault(what, Walk(what)).commands.extend(_commands(block))
        else:
            left_out.append((what, _commands(block)))
    return Page(list(walks.values()), left_out)


def run(walk: Walk, cwd: Path, env: Mapping[str, str], timeout: float) -> dict[str, str]:
    """Run a walk in one shell; returns each command's output, including standard error.

    Raises:
        TrainyardError: a command failed, or all took too long; the message names it, with its last lines.
    """
    script = ["set -eo pipefail"]
    for number, command in enumerate(walk.commands):
        script += [f"printf '\\036%d\\n' {number}", command]
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
        file.write("\n".join(script) + "\n")
        file.flush()
        code, output = _bash(file.name, cwd, env, timeout)
    said = _by_command(walk, output.decode(errors="replace"))
    if code:
        last = list(said)[-1] if said else walk.commands[0]
        why = f"did not end within {timeout:.0f} s" if code == 124 else f"ended with {code}"
        raise TrainyardError(f"`{plain(last)}` {why}: {last_lines(said.get(last, ''), 6)}", where="README.md")
    return said


def _bash(script: str, cwd: Path, env: Mapping[str, str], timeout: float) -> tuple[int, bytes]:
    """Exit code (124 after a timeout) and all output. All processes that it started are ended then."""
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(["bash", script], cwd=cwd, env=dict(env), start_new_session=True, **streams) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
            return process.returncode, output
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            output, _ = process.communicate()
            return 124, output


def plain(command: str) -> str:
    """A command without its comment, on one line."""
    joined = re.sub(r"\\\n\s*", "", command)
    return re.sub(r"\s{2,}#.*$", "", joined, flags=re.MULTILINE).strip()


def _commands(block: list[str]) -> list[str]:
    """Commands, with lines joined after a backslash; lines with only a comment are left out."""
    found: list[str] = []
    for line in block:
        if found and found[-1].endswith("\\"):
            found[-1] += f"\n{line}"
        elif line.strip() and not line.startswith("#"):
            found.append(line)
    return found


def _by_command(walk: Walk, output: str) -> dict[str, str]:
    parts = re.split(rf"{AT}(\d+)\n", output)[1:]
    return {walk.commands[int(number)]: text for number, text in zip(parts[::2], parts[1::2], strict=True)}
