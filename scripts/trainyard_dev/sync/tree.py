"""The tree as the writers see it: what they write is kept apart until it is saved, so that a check changes nothing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard import yaml_edit, yaml_lines


@dataclass(frozen=True, order=True)
class Difference:
    """What no command writes: the file, what is wrong there, and what to change."""

    file: str
    what: str
    hint: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}. {self.hint}."


class Tree:
    """Files of a folder with changes on top.

    Attributes:
        changed: what was changed, by file, in words.
        left: what could not be written.
        made: the files that were made as a whole, changed or not.
    """

    def __init__(self, root: Path, *, dry: bool = False) -> None:
        self.root, self.dry = root, dry
        self.changed: dict[str, list[str]] = {}
        self.left: list[Difference] = []
        self.made: set[str] = set()
        self._texts: dict[str, str] = {}

    def differences(self) -> list[Difference]:
        """What a check has to report: what would be written, and what could not be, sorted by file."""
        write = "run `bin/trainyard versions sync`"
        due = [Difference(file, f"it is not up to date ({', '.join(said)})", write)
               for file, said in self.changed.items()]  # fmt: skip
        return sorted({*due, *self.left})

    def leave(self, file: str, what: str, hint: str) -> None:
        """Note what somebody has to change by hand."""
        self.left.append(Difference(file, what, hint))

    def data(self, file: str) -> Any:
        """What a YAML file says."""
        return yaml.load(self.read(file), yaml_lines.Loader)

    def put(self, file: str, data: Any) -> None:
        """Let a YAML file say this: comments, quotes and order stay. Its changes are noted already."""
        if data != self.data(file):
            self.write(file, yaml_edit.edited(self.read(file), file, [data]))

    def make(self, file: str, text: str) -> None:
        """Keep the text of a file that is made as a whole."""
        self.made.add(file)
        self.write(file, text, "made again")

    def exists(self, file: str) -> bool:
        """Whether the file is there, or will be."""
        return file in self._texts or (self.root / file).exists()

    def read(self, file: str) -> str:
        """The text as it is with the changes so far."""
        return self._texts[file] if file in self._texts else (self.root / file).read_text()

    def write(self, file: str, text: str, what: str = "") -> None:
        """Keep the new text, unless it is the one that is there; without `what`, its changes are noted already."""
        if not self.exists(file) or self.read(file) != text:
            self._texts[file] = text
            if what:
                self.note(file, what)

    def note(self, file: str, what: str) -> None:
        """Note a change."""
        said = self.changed.setdefault(file, [])
        if what not in said:
            said.append(what)

    def save(self) -> None:
        """Put the changes into the folder; not in a check."""
        if self.dry:
            return
        for file, text in self._texts.items():
            (self.root / file).parent.mkdir(parents=True, exist_ok=True)
            (self.root / file).write_text(text)
        self._texts = {}
