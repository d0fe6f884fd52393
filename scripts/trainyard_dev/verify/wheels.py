"""Whether images pin what the list of their Python packages says; part of `trainyard verify`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainyard_dev.images import packages

WRITE = "run `bin/trainyard versions wheels`"


def differences(root: Path) -> Iterator[packages.Finding]:
    """Files of images that pin something else than the list and the lock say, and what the list says in vain."""
    files = {file.parent.name for file in (root / "images").glob("*/requirements.txt")}
    if not (root / packages.LIST).exists():
        if files:
            yield packages.LIST, "the file is missing", "list what the images hold"
        return
    made = packages.wishes(root, packages.locked(root))
    yield from made.findings
    for image in sorted(files - made.images.keys()):
        yield packages.file_of(image), f"{packages.LIST} does not name the image", "add it there"
    for image, wanted in made.images.items():
        if image not in files:
            yield packages.file_of(image), "the file is missing", WRITE
            continue
        have = {
            name: version for name, (version, _) in packages.pins((root / packages.file_of(image)).read_text()).items()
        }
        for name in sorted(have.keys() | wanted.pins.keys()):
            held, due = have.get(name, "absent"), wanted.pins.get(name, "absent")
            if held != due:
                yield packages.file_of(image), f"{name} is {held}, due is {due}", WRITE
