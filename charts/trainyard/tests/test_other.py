"""An upstream chart in another version: packaged with its own images, marked, and refused where Go lacks it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.chart import helm
from trainyard.errors import TrainyardError, UsageError
from trainyard_dev import tools
from trainyard_dev.chart import other, package


def answer(monkeypatch: pytest.MonkeyPatch, told: dict[str, str]) -> list[str]:
    """Go downloads nothing and tells this; what it was asked for."""
    words: list[str] = []
    real = other.golang.go

    def go(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
        if argv[:3] != ("mod", "download", "-json"):
            return real(*argv, **options)
        words.extend(argv)
        return subprocess.CompletedProcess(argv, 1 if "Error" in told else 0, json.dumps(told), "")

    monkeypatch.setattr(other.golang, "go", go)
    return words


def test_another_volcano_has_its_own_images_and_a_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = tmp_path / "module"
    path = Path("installer/helm/chart/volcano")
    shutil.copytree(tools.module_dir("volcano") / path, later / path)
    file = later / path / "Chart.yaml"
    file.chmod(0o644)
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"version": "1.14.9"}))
    others = other.asked(["volcano=v1.14.9"])
    asked = answer(monkeypatch, {"Dir": str(later)})
    chart = package.assemble(tmp_path / "chart", csi=False, others=others)
    assert asked[-1] == "volcano.sh/volcano@v1.14.9"
    meta = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert meta["annotations"][other.NOT_RUN] == "volcano 1.14.9"
    assert {one["name"]: one["version"] for one in meta["dependencies"]}["volcano"] == "1.14.9"
    images = {container["image"] for obj in package.render("kind", chart) for spec in helm.pod_specs(obj)
              for container in helm.containers(spec)}  # fmt: skip
    assert {tag for image in images if "/vc-" in image for tag in [image.rpartition(":")[2]]} == {"v1.14.9"}
    assert "not run here: volcano 1.14.9. The upgrade to it counts as blocked" in other.warning(others)


def test_a_version_that_go_does_not_give_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, {"Error": "volcano.sh/volcano@v1.14.4: not found: This module version is not available."})
    with pytest.raises(TrainyardError, match=r"Go cannot download volcano\.sh/volcano v1\.14\.4: .* is not available"):
        package.assemble(tmp_path, csi=False, others={"volcano": "1.14.4"})


@pytest.mark.parametrize("word", ["volcano", "argo=4.0.0", "nothing=1.0", "=1.0"])
def test_only_upstream_charts_may_be_asked_for(word: str) -> None:
    with pytest.raises(UsageError, match=r"is not PART=VERSION of an upstream chart\. write PART=VERSION with one"):
        other.asked([word])


def test_the_pinned_version_is_no_other() -> None:
    assert other.asked([f"volcano={other.load().raw['components']['volcano']}"]) == {}
