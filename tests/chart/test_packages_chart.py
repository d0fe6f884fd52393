"""Python packages of runs: the network to the index, values that are refused, images of an installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.errors import TrainyardError
from trainyard_dev.chart import images, package

TO_INDEX = {"to": [{"ipBlock": {"cidr": "10.0.0.8/32"}}], "ports": [{"protocol": "TCP", "port": 443}]}
INDEX = {"index": "https://pypi.example.org/simple", "egress": [TO_INDEX]}
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def values(folder: Path, **contract: Any) -> Path:
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump({"global": {"contract": {"teams": [{"name": "vision", "gid": 20001}], **contract}}}))
    return file


def policy(objects: list[dict[str, Any]]) -> dict[str, Any]:
    [found] = [one["spec"] for one in objects if one["kind"] == "NetworkPolicy"
               and (one["metadata"]["name"], one["metadata"]["namespace"]) == ("allow-packages", "vision")]  # fmt: skip
    return found


def test_only_marked_pods_reach_the_index_and_only_where_values_say(chart: Path, tmp_path: Path) -> None:
    found = policy(package.render("kind", chart, values=[values(tmp_path, packages=INDEX)]))
    assert found["podSelector"] == {"matchLabels": {"trainyard.io/packages": "true"}}
    assert (found["policyTypes"], found["egress"]) == (["Egress"], [TO_INDEX])
    for packages in ({}, {"index": INDEX["index"]}):
        found = policy(package.render("kind", chart, values=[values(tmp_path, packages=packages)]))
        assert found["egress"] == [], "no rule, no way"


@pytest.mark.parametrize(
    ("packages", "says"),
    [
        ({"egress": [TO_INDEX]}, "opens the network of runs for an index that is not named"),
        ({"secret": "keys"}, "keys of an index that is not named"),
        ({**INDEX, "index": "http://10.0.0.8/simple", "ca": PEM}, "write https://, or leave ca empty"),
        ({**INDEX, "egress": [{"ports": [{"port": 443}]}]}, "lets runs to every address"),
        ({**INDEX, "secret": "minio-root"}, "no team's pod may take a Secret that ends in -root"),
        ({"index": "https://me:key@pypi.example.org/simple"}, "packages"),
        ({**INDEX, "ca": "/etc/ssl/ca.pem"}, "packages"),
        ({**INDEX, "url": "x"}, "packages"),
    ],
)
def test_packages_that_do_not_fit_together_are_refused(
    chart: Path, tmp_path: Path, packages: dict[str, Any], says: str
) -> None:
    with pytest.raises(TrainyardError) as refused:
        package.render("kind", chart, values=[values(tmp_path, packages=packages)])
    assert says in str(refused.value)


def test_images_with_cuda_belong_to_an_installation_whose_gpus_compute(chart: Path, tmp_path: Path) -> None:
    def listed(profile: str, **contract: Any) -> set[str]:
        found = images.listed(profile, chart=chart, values=[values(tmp_path, **contract)])
        return {one.ref.partition(":")[0] for one in found if "-cuda:" in one.ref}

    every = {f"docker.io/trainyard/trainer-{name}-cuda" for name in ("torch", "tensorflow", "transformers")}
    assert listed("kind") == set()
    assert listed("kind", gpuImages="cuda") == every
