"""A store of models in a folder, with the same two calls as the others."""

import json
import shutil
from pathlib import Path
from typing import Any


class FolderStore:
    """A store with objects as files; `sent` are the places written, in order of age."""

    def __init__(self, root: Path) -> None:
        self.root, self.sent = root, list[str]()

    def cards(self, place: str) -> list[dict[str, Any]]:
        """Every card below a place."""
        below = self.root / place
        found = []
        for file in sorted(below.rglob("model.json")):
            name = file.relative_to(self.root).as_posix()
            changed = self.sent.index(name) if name in self.sent else 0
            where = file.parent.relative_to(below).as_posix()
            found.append(
                {"place": "" if where == "." else where, "changed": changed, "card": json.loads(file.read_text())}
            )
        return found

    def put(self, source: Path, place: str) -> bool:
        """Stores a copy of the file."""
        target = self.root / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        self.sent.append(place)
        return True
