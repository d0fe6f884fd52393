"""Options: off, they cost nothing; each alone lists its images for the mirror and needs none of another's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from rendering import Objects, Rendering
from trainyard import components
from trainyard.chart import helm
from trainyard_dev.chart import images, package
from trainyard_dev.chart.options import OPTIONS, switched
from trainyard_dev.images import crane
from trainyard_dev.versions import load

MIRROR = "registry.example.org:5000/mirror"
# Bytes: default values of the parts; all of their files.
RELEASE_MORE, PACKAGE_MORE = len(OPTIONS) * 2560, len(OPTIONS) * 20 * 1024
TEAM = ["global.contract.teams[0].name=vision", "global.contract.teams[0].gid=20001"]
MADE = ("Secret", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart as it was before there were options."""
    chart = Path(shutil.copytree(package.assembled(), tmp_path_factory.mktemp("bare") / helm.NAME))
    for name in OPTIONS:
        shutil.rmtree(chart / "charts" / name)
    meta = yaml.safe_load((chart / "Chart.yaml").read_text())
    meta["dependencies"] = [one for one in meta["dependencies"] if one["name"] not in OPTIONS]
    (chart / "Chart.yaml").write_text(yaml.safe_dump(meta))
    return chart


def stable(objects: Objects) -> dict[tuple[str, str, str], str]:
    """All objects by name, without keys and certificates, which each rendering generates."""
    found = {}
    for obj in objects:
        text = json.dumps(obj, sort_keys=True)
        random = obj["kind"] in MADE or "BEGIN CERTIFICATE" in text or "checksum" in text or "minio" in text
        key = (obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
        found[key] = "" if random else text
    return found


@pytest.mark.parametrize("profile", ["kind", "on-prem"])
def test_off_they_render_nothing(bare: Path, rendered: dict[str, Objects], profile: str) -> None:
    found, due = stable(rendered[profile]), stable(package.render(profile, bare))
    assert found.keys() == due.keys() and found == due
    assert sum(map(bool, due.values())) > len(due) * 0.8  # few were left out


def test_off_the_release_and_the_package_are_as_small_as_before(bare: Path, chart: Path, tmp_path: Path) -> None:
    for profile in ("kind", "on-prem"):
        more = package.release_secret_size(profile, chart) - package.release_secret_size(profile, bare)
        assert 0 < more < RELEASE_MORE
    sizes = []
    for made in (chart, bare):
        out = tmp_path / str(len(sizes))
        out.mkdir()
        helm.call("package", made, "--destination", out)
        sizes.append(next(out.iterdir()).stat().st_size)
    assert 0 < sizes[0] - sizes[1] < PACKAGE_MORE


@pytest.fixture(scope="module")
def alone(render: Rendering) -> dict[str, Objects]:
    """The objects of each option alone, from a mirror."""
    sets = [*TEAM, f"global.imageRegistry={MIRROR}"]
    return {option: render(sets=[*sets, *switched(option)]) for option in OPTIONS}


def test_each_alone_the_mirror_s_list_has_its_images_and_no_other(render: Rendering, alone: dict[str, Objects]) -> None:
    off = {image.ref for image in render.images(*TEAM)}
    for option, rendered in alone.items():
        listed = {image.ref for image in render.images(*TEAM, *switched(option))}
        assert off < listed and listed - off == {load().image(name) for name in components.find(option).images}
        # All that is rendered is in the list, and nothing comes from elsewhere.
        assert images.references(rendered) <= {crane.under(MIRROR, ref) for ref in listed}


def test_together_they_bring_what_each_brings_and_nothing_more(render: Rendering, alone: dict[str, Objects]) -> None:
    together = render(sets=[*TEAM, *switched(*OPTIONS)])
    each = [set(stable(alone[option])) for option in OPTIONS]
    assert set(stable(together)) == set.union(*each)
    for brought in each:
        assert brought - set.union(*(other for other in each if other is not brought))
