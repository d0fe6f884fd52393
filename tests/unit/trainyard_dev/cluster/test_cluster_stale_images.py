"""Images on a kept cluster's nodes that are outdated, as the registry has new ones of the same name."""

import subprocess
from collections.abc import Sequence

from trainyard_dev.cluster.nodes import forget_stale

LISTED = """REF TYPE DIGEST SIZE PLATFORMS LABELS
site.invalid/trainyard/platform:0.4.0 application/vnd.oci.image.manifest.v1+json sha256:old 26.2 MiB linux/amd64 managed
site.invalid/trainyard/base:0.4.0     application/vnd.oci.image.manifest.v1+json sha256:b   26.2 MiB linux/amd64 managed
site.invalid/trainyard/trainer:0.4.0  application/vnd.oci.image.manifest.v1+json sha256:t   26.2 MiB linux/amd64 managed
registry.k8s.io/pause:3.10         application/vnd.oci.image.manifest.v1+json sha256:p   0.2 MiB  linux/amd64 managed
"""


class Node:
    """An engine whose container lists images of containerd, and records removals."""

    def __init__(self) -> None:
        self.removed: list[str] = []

    def exec(self, container: str, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        assert container == "lab-worker"
        if argv[-1] != "ls":
            self.removed += argv[argv.index("--sync") + 1 :]
        return subprocess.CompletedProcess(argv, 0, LISTED, "")


def test_only_what_the_registry_has_anew_is_removed() -> None:
    node = Node()
    images = "site.invalid/trainyard"
    served = {f"{images}/platform:0.4.0": "sha256:new", f"{images}/base:0.4.0": "sha256:b", f"{images}/absent:1": "x"}
    stale = forget_stale(node, "lab-worker", served)  # type: ignore[arg-type]
    assert stale == node.removed == [f"{images}/platform:0.4.0"]


def test_an_image_that_is_still_being_made_is_removed_at_once() -> None:
    node = Node()
    forget_stale(node, "lab-worker", {"site.invalid/trainyard/trainer:0.4.0": ""})  # type: ignore[arg-type]
    assert node.removed == ["site.invalid/trainyard/trainer:0.4.0"]


def test_nothing_is_removed_where_all_is_as_served() -> None:
    node = Node()
    assert forget_stale(node, "lab-worker", {"site.invalid/trainyard/base:0.4.0": "sha256:b"}) == []  # type: ignore[arg-type]
    assert node.removed == []
