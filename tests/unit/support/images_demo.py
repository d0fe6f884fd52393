"""A repository with one image, and an engine that only records calls, for the tests of images."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from trainyard_dev.images import build as images
from trainyard_dev.tools import build as tools
from trainyard_dev.versions import Image, ToolSet, Versions

DEMO = Image("demo", "site.invalid/trainyard/demo:0.1.0", "images/demo", "images/demo", own=True,
             inputs=("images/demo",))  # fmt: skip
TOOL = ToolSet("tool", "example.org/tool", "v1.0.0", "test", (("example.org/tool", "toolbin"),))


class FakeEngine:
    """An engine that records calls; `images` are the content of its store."""

    name = "podman"

    def __init__(self, name: str = "podman") -> None:
        self.name, self.calls, self.images = name, [], set()
        self.on_build: Callable[[Path], None] = lambda context: None

    def __call__(self, *argv: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
        words = [str(a) for a in argv]
        self.calls.append(words)
        if words[0] == "build":
            self.on_build(Path(words[-1]))
            self.images.add(words[words.index("-t") + 1])
        code = int(words[0] == "inspect" and "no-registry" in self.images)
        return subprocess.CompletedProcess(words, code, "127.0.0.1:4321\n" if words[0] == "port" else "", "")

    def has_image(self, ref: str) -> bool:
        return ref in self.images


def demo_tree(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one image and one tool set; images and tools are read there from now on."""
    (root / "images/demo").mkdir(parents=True)
    (root / "images/demo/Containerfile").write_text('FROM ${BASE}\nCMD ["@BINARY@"]\n')
    (root / "tools/tool").mkdir(parents=True)
    (root / "tools/tool/go.mod").write_text("module m\n")
    versions = Versions({"components": {"kubernetes": "1.34.2"}}, {"tool": TOOL}, {"demo": DEMO})
    for module in (images, tools):
        monkeypatch.setattr(module, "ROOT", root)
        monkeypatch.setattr(module, "load", lambda: versions)
    return root
