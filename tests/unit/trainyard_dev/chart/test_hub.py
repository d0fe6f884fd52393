"""What Artifact Hub and `helm show` read."""

import shutil
from pathlib import Path

import yaml

from trainyard_dev.chart import hub, package


def test_the_chart_says_what_it_is(tmp_path: Path) -> None:
    chart = tmp_path / "trainyard"
    shutil.copytree(package.assembled(), chart)
    listed = hub.describe(chart, "https://example.org/trainyard")
    meta = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert meta["icon"].startswith("data:image/svg+xml;base64,")
    assert meta["home"] == "https://example.org/trainyard" and meta["sources"] == [meta["home"]]
    assert meta["maintainers"] and meta["annotations"]["artifacthub.io/license"] == "Apache-2.0"
    assert [one["image"] for one in yaml.safe_load(meta["annotations"]["artifacthub.io/images"])] == listed
    assert any(ref.startswith("docker.io/volcanosh/") for ref in listed)
    kinds = {one["kind"] for one in yaml.safe_load(meta["annotations"]["artifacthub.io/changes"])}
    assert kinds and kinds <= {"added", "changed", "deprecated", "removed", "fixed", "security"}
    page = (chart / "README.md").read_text()
    assert "`global.ownImageRegistry`" in page and "](../" not in page
