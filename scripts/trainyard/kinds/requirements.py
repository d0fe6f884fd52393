"""Requirements of a folder: requirements.txt and the files that it includes, read before the code is sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.markers import InvalidMarker, Marker

from trainyard.errors import UsageError
from trainyard_agent.runs.requirements import Line, RequirementError, Requirements, read

FILE = "requirements.txt"
PYTHON = "3.13"  # version in the images' base
MARKERS = {
    "extra": "",
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": f"{PYTHON}.5",
    "python_version": PYTHON,
    "sys_platform": "linux",
}


@dataclass(frozen=True)
class Listed:
    """Requirements of a folder. `file` is "" if there are none; `files` maps names to texts, includes too."""

    file: str = ""
    found: Requirements = field(default_factory=Requirements)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """Normalized names of the packages that are installed for the images' Python."""
        return frozenset(one.name for one in self.found.lines if _counts(one))


def of_folder(folder: Path, wanted: str | None = None) -> Listed:
    """The requirements of a folder.

    Args:
        wanted: the setting; None: requirements.txt, if it exists; "": no requirements.

    Raises:
        UsageError: a file is missing, or a line can't be installed in a pod.
    """
    if wanted == "" or (wanted is None and not (folder / FILE).is_file()):
        return Listed()
    name, texts = wanted or FILE, dict[str, str]()

    def text(one: str) -> str:
        texts[one] = (folder / one).read_text(encoding="utf-8")
        return texts[one]

    try:
        return Listed(name, read(text, name), texts)
    except RequirementError as error:
        raise UsageError(error.what, where=error.where, hint=error.hint) from None


def _counts(line: Line) -> bool:
    """Whether a line applies to the images' Python; `; sys_platform == "win32"` does not."""
    marker = line.text.partition(" --")[0].partition(";")[2].strip()
    try:
        return not marker or Marker(marker).evaluate(MARKERS)
    except InvalidMarker:
        return True  # pip reports the error
