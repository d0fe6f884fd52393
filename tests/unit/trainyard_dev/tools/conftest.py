"""A tree with one set of tools."""

from pathlib import Path

import pytest
from demo_tools import DEMO

from trainyard_dev.tools import build as tools
from trainyard_dev.versions import ToolSet, Versions


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> ToolSet:
    """A tree with one set of two binaries, of which versions.yaml knows."""
    folder = tmp_path / "tree" / "tools" / "demo"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text("module m\n\ngo 1.25\n\nrequire example.org/demo v1.2.3\n")
    (folder / "go.sum").write_text("example.org/demo v1.2.3 h1:x\n")
    monkeypatch.setattr(tools, "ROOT", tmp_path / "tree")
    monkeypatch.setattr(tools, "load", lambda: Versions(raw={}, tools={"demo": DEMO}, images={}))
    return DEMO
