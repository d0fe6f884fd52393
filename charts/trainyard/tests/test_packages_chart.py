"""Python packages of runs: network access to the index, refused values, images of an installation."""

from __future__ import annotations

from typing import Any

import pytest
from found import one

from rendering import Objects, Rendering

TO_INDEX = {"to": [{"ipBlock": {"cidr": "10.0.0.8/32"}}], "ports": [{"protocol": "TCP", "port": 443}]}
INDEX = {"index": "https://pypi.example.org/simple", "egress": [TO_INDEX]}
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def values(**contract: Any) -> dict[str, Any]:
    return {"global": {"contract": {"teams": [{"name": "vision", "gid": 20001}], **contract}}}


def policy(objects: Objects) -> dict[str, Any]:
    found: dict[str, Any] = one(objects, "NetworkPolicy", "allow-packages", "vision")["spec"]
    return found


def test_only_marked_pods_reach_the_index_and_only_where_values_say(render: Rendering) -> None:
    found = policy(render(values(packages=INDEX)))
    assert found["podSelector"] == {"matchLabels": {"trainyard.io/packages": "true"}}
    assert (found["policyTypes"], found["egress"]) == (["Egress"], [TO_INDEX])
    for packages in ({}, {"index": INDEX["index"]}):
        assert policy(render(values(packages=packages)))["egress"] == [], "no rule, no way"


@pytest.mark.parametrize(
    ("packages", "says"),
    [
        ({"egress": [TO_INDEX]}, "opens the network for an index that is not set"),
        ({"secret": "keys"}, "credentials for an index that is not set"),
        ({**INDEX, "index": "http://10.0.0.8/simple", "ca": PEM}, "write https://, or leave ca empty"),
        ({**INDEX, "egress": [{"ports": [{"port": 443}]}]}, "allows runs to reach every address"),
        ({**INDEX, "secret": "minio-root"}, "pods of teams may not use Secrets whose names end in -root"),
        ({"index": "https://me:key@pypi.example.org/simple"}, "packages"),
        ({**INDEX, "ca": "/etc/ssl/ca.pem"}, "packages"),
        ({**INDEX, "url": "x"}, "packages"),
    ],
)
def test_packages_that_do_not_fit_together_are_refused(render: Rendering, packages: dict[str, Any], says: str) -> None:
    assert says in render.refusal(values(packages=packages))


def test_images_with_cuda_belong_to_an_installation_whose_gpus_compute(render: Rendering) -> None:
    def listed(*sets: str) -> set[str]:
        return {one.ref.partition(":")[0] for one in render.images(*sets) if "-cuda:" in one.ref}

    every = {f"site.invalid/trainyard/trainer-{name}-cuda" for name in ("torch", "tensorflow", "transformers")}
    assert listed() == set()
    assert listed("global.contract.gpuImages=cuda") == every
