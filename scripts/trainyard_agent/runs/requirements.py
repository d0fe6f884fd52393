"""A folder's requirements, with the files that they include: checked line by line before anything is installed.

The sender of the code reads them to refuse invalid ones early; the pod reads the same lines to install them.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field

from trainyard_agent.say import PlatformError

Read = Callable[[str], str]  # a name below the folder -> its text; FileNotFoundError for a missing file
DEPTH = 8  # levels of files that include files
NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?")
REMARK = re.compile(r"(^|\s)#.*$")
OPTION = re.compile(r"(-[A-Za-z]|--[a-z-]+)(?:[\s=]+(.*))?$")
SHORT = {"-r": "--requirement", "-c": "--constraint", "-e": "--editable", "-i": "--index-url", "-f": "--find-links"}
KEPT = ("--pre", "--prefer-binary", "--require-hashes")
SITE = ("--index-url", "--extra-index-url", "--find-links", "--no-index", "--trusted-host", "--only-binary")
ALIEN = re.compile(r"://|^\.{0,2}/|^~|^file:|\.(whl|tar\.gz|zip)(\s|;|$)")


class RequirementError(PlatformError):
    """A line that no pod can install. `where` is `FILE:LINE`."""

    def __init__(self, where: str, what: str, hint: str) -> None:
        self.where, self.what, self.hint = where, what, hint
        super().__init__(f"{where}: {what}. {hint}.")


@dataclass(frozen=True)
class Line:
    """One requirement. `name` is normalized as indexes compare it: lower-case letters, with hyphens."""

    where: str
    text: str
    name: str


@dataclass
class Requirements:
    """Everything to install. `ignored` are (place, option) that the site decides, not the folder."""

    lines: list[Line] = field(default_factory=list)
    constraints: list[Line] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    ignored: list[tuple[str, str]] = field(default_factory=list)

    def digest(self, *more: str) -> str:
        """A digest of these requirements, independent of their files and order. `more`: further inputs."""
        texts = [sorted({line.text for line in found}) for found in (self.lines, self.constraints)]
        return hashlib.sha256(json.dumps([*texts, sorted(self.options), *more]).encode()).hexdigest()

    def text(self) -> str:
        """All requirements as one file."""
        return "".join(f"{one}\n" for one in [*self.options, *(line.text for line in self.lines)])

    def plan(self) -> dict[str, list[dict[str, str]]]:
        """The lines as plain data, for a program in another image."""
        return {
            "lines": [asdict(line) for line in self.lines],
            "constraints": [asdict(line) for line in self.constraints],
        }


def canonical(name: str) -> str:
    """A project's normalized name, as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read(read_text: Read, name: str) -> Requirements:
    """The requirements of a file and of the files that it includes. Raises RequirementError."""
    found = Requirements()
    _file(read_text, name, found, constraint=False, above=(), where="")
    return found


def _file(
    read_text: Read, name: str, found: Requirements, *, constraint: bool, above: tuple[str, ...], where: str
) -> None:
    try:
        text = read_text(name)
    except FileNotFoundError:
        hint = "correct the name, or remove the line" if where else "check that .trainyardignore does not name it"
        raise RequirementError(where or name, f"no file {name} in the folder", hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise RequirementError(where or name, f"{name} can't be read: {error}", "write it as text in UTF-8") from None
    if name in above or len(above) >= DEPTH:
        raise RequirementError(where, f"{name} includes itself through other files", "remove the line")
    for number, line in _joined(text):
        at = f"{name}:{number}"
        if line.startswith("-"):
            _option(read_text, line, at, found, constraint=constraint, above=(*above, name))
            continue
        match = NAME.match(line)
        if not match or ALIEN.search(line) or "@" in line.partition(";")[0].partition(" --")[0]:
            hint = "name a package and its version; a package of your own is imported from the folder that is sent"
            raise RequirementError(at, f"{line} is not a package of an index", hint)
        wanted = Line(at, line, canonical(match[1]))
        (found.constraints if constraint else found.lines).append(wanted)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """(number of the first line, text) without comments; lines that end with a backslash are joined with the next."""
    begun, parts = 0, list[str]()
    for number, raw in enumerate([*text.lstrip("\ufeff").splitlines(), ""], 1):
        line = REMARK.sub("", raw).rstrip()
        begun = begun if parts else number
        parts.append(line.removesuffix("\\").strip())
        if not line.endswith("\\"):
            if whole := " ".join(filter(None, parts)):
                yield begun, whole
            parts = []
    if whole := " ".join(filter(None, parts)):
        yield begun, whole


def _option(
    read_text: Read, line: str, at: str, found: Requirements, *, constraint: bool, above: tuple[str, ...]
) -> None:
    match = OPTION.match(line) or OPTION.match(f"{line[:2]} {line[2:]}")
    key, value = (SHORT.get(match[1], match[1]), (match[2] or "").strip()) if match else (line, "")
    if key in ("--requirement", "--constraint"):
        name = posixpath.normpath(posixpath.join(posixpath.dirname(above[-1]), value))
        if not value or name.startswith(("/", "..")) or "://" in value:
            raise RequirementError(at, f"{value or line} is not a file of the folder", "put the file beside the code")
        _file(read_text, name, found, constraint=constraint or key == "--constraint", above=above, where=at)
    elif key in KEPT:
        found.options = list(dict.fromkeys([*found.options, key]))
    elif key in SITE:
        found.ignored.append((at, line))
    elif key == "--editable":
        hint = "remove the line: what is in the folder is importable as it is"
        raise RequirementError(at, f"{line} would install a source folder", hint)
    else:
        raise RequirementError(at, f"{line} is an option that runs don't support", "remove the line")
