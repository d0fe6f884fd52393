"""The tree as the writers see it: changes are kept separately until they are saved, so a check changes nothing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard import yaml_edit, yaml_lines


@dataclass(frozen=True, order=True)
class Difference:
    """A problem that no command can fix: the file, the problem, and what to change."""

    file: str
    what: str
    hint: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}. {self.hint}."


class Tree:
    """Files of a folder with changes on top.

    Attributes:
        changed: the changes, by file, in words.
        left: problems that the writers could not fix.
        made: generated files, changed or not.
    """

    def __init__(self, root: Path, *, dry: bool = False) -> None:
        self.root, self.dry = root, dry
        self.changed: dict[str, list[str]] = {}
        self.left: list[Difference] = []
        self.made: set[str] = set()
        self._texts: dict[str, str] = {}

    def differences(self) -> list[Difference]:
        """The results for a check: changes that would be written, and problems, sorted by file."""
        write = "run `bin/trainyard versions sync`"
        due = [Difference(file, f"it is not up to date ({', '.join(said)})", write)
               for file, said in self.changed.items()]  # fmt: skip
        return sorted({*due, *self.left})

    def leave(self, file: str, what: str, hint: str) -> None:
        """Record something that has to be changed by hand."""
        self.left.append(Difference(file, what, hint))

    def data(self, file: str) -> Any:
        """The data of a YAML file."""
        return yaml.load(self.read(file), yaml_lines.Loader)

    def put(self, file: str, data: Any) -> None:
        """Replace a YAML file's data: comments, quotes and order stay. Its changes are recorded already."""
        if data != self.data(file):
            self.write(file, yaml_edit.edited(self.read(file), file, [data]))

    def make(self, file: str, text: str) -> None:
        """Store the text of a generated file."""
        self.made.add(file)
        self.write(file, text, "made again")

    def exists(self, file: str) -> bool:
        """Whether the file exists, or will."""
        return file in self._texts or (self.root / file).exists()

    def read(self, file: str) -> str:
        """The text including changes so far."""
        return self._texts[file] if file in self._texts else (self.root / file).read_text()

    def write(self, file: str, text: str, what: str = "") -> None:
        """Store the new text, unless it is unchanged; without `what`, its changes are recorded already."""
        if not self.exists(file) or self.read(file) != text:
            self._texts[file] = text
            if what:
                self.note(file, what)

    def note(self, file: str, what: str) -> None:
        """Record a change."""
        said = self.changed.setdefault(file, [])
        if what not in said:
            said.append(what)

    def save(self) -> None:
        """Write the changes to the folder; not in a check."""
        if self.dry:
            return
        for file, text in self._texts.items():
            (self.root / file).parent.mkdir(parents=True, exist_ok=True)
            (self.root / file).write_text(text)
        self._texts = {}
