"""Checks of a new training image before it counts as built."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.images import imports
from trainyard_dev.versions import Image, load

TORCH: Image = load().images["trainer-torch"]


class Machine:
    """An engine whose containers are processes of this Python; keeps what it was told to remove."""

    def __init__(self) -> None:
        self.removed: list[str] = []

    def __call__(self, *argv: str, **more: Any) -> Any:
        if argv[0] == "rmi":
            return self.removed.append(argv[-1])
        return subprocess.run([sys.executable, *argv[argv.index("-c") :]], capture_output=True, text=True, check=True)


def said(monkeypatch: pytest.MonkeyPatch, modules: list[str], lacks: tuple[str, ...]) -> None:
    one = imports.Trainer(TORCH.name, "torch", (), dict.fromkeys(modules, ""), lacks)
    monkeypatch.setattr(imports, "trainers", lambda: (one,))


def test_what_fails_and_what_is_not_said_is_told_and_the_image_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    machine: Any = Machine()
    said(monkeypatch, ["yaml", "no_such_module"], ("yaml.loader", "yaml.nothing", "no_such.part"))
    with pytest.raises(TrainyardError) as raised:
        imports.check(machine, TORCH, "localhost/torch:1")
    assert "cannot be imported: {'no_such_module': \"No module named 'no_such_module'\"}" in raised.value.what
    assert "installed, but listed as omitted: ['yaml.loader']" in raised.value.what
    assert raised.value.where == TORCH.dir and machine.removed == ["localhost/torch:1"]


def test_an_image_that_has_what_is_said_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    machine: Any = Machine()
    said(monkeypatch, ["yaml"], ())
    monkeypatch.setattr(imports, "LOOK", imports.LOOK.replace("/trainyard/", "/nowhere/"))
    imports.check(machine, TORCH, "localhost/torch:1")
    assert machine.removed == []


def test_an_image_that_trains_nothing_is_not_asked() -> None:
    imports.check(None, load().images["registry"], "localhost/registry:1")  # type: ignore[arg-type]


def test_what_is_said_of_an_image_is_part_of_its_content(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from trainyard_dev.images.build import content_key

    before = content_key(TORCH, "base:1")
    said(monkeypatch, ["torch"], ())
    assert content_key(TORCH, "base:1") != before and json.dumps(before)
