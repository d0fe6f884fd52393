"""The source of a cluster's images: pulled from public registries, or built on this machine."""

import urllib.error
import urllib.request
from dataclasses import dataclass

from trainyard.errors import UsageError
from trainyard_dev.engine import Engine
from trainyard_dev.images.base import BUILT_BASE, OLDER, UPDATED_BASE, make_base, update_base
from trainyard_dev.images.build import build
from trainyard_dev.versions import Image, load

PROBE = "https://registry.k8s.io/v2/"
API_HEADER = "Docker-Distribution-Api-Version"


@dataclass(frozen=True)
class Source:
    """`kind` is pull or build; `reason` explains the choice."""

    kind: str
    reason: str

    @property
    def base_ref(self) -> str:
        """The name of the base image, whether it exists or not."""
        return BUILT_BASE if self.kind == "build" else UPDATED_BASE

    def base(self, engine: Engine) -> str:
        """The base of our own images; it and that of the older suite are made if missing."""
        make = make_base if self.kind == "build" else update_base
        make(engine, OLDER)
        return make(engine)

    def node_image(self, engine: Engine, base: str) -> str:
        """The image of kind's nodes."""
        return build(engine, load().images["node"], base) if self.kind == "build" else load().exact("node-image")

    def registry_image(self, engine: Engine, base: str) -> str:
        """The image of the cluster's registry."""
        if self.kind == "pull":
            return load().exact("registry-image")
        return build(engine, load().images["registry"], base)

    def served(self, images: list[Image]) -> list[Image]:
        """Images that the cluster's own registry must have; public registries serve the others."""
        return [image for image in images if not image.local and (self.kind == "build" or image.own)]


def choose(wanted: str) -> Source:
    """`pull` or `build`; `auto` builds, as no run has pulled yet.

    Raises:
        UsageError: `wanted` is any other word.
    """
    if wanted in ("pull", "build"):
        return Source(wanted, "asked for")
    if wanted != "auto":
        raise UsageError(f"unknown image source `{wanted}`", hint="use auto, pull or build")
    return Source("build", "pulling was not tried; set `pull` to pull")


def registry_answers(url: str = PROBE, seconds: float = 4) -> bool:
    """Whether a public image registry answers; one that requires a login counts, a proxy's page or refusal does not."""
    try:
        with urllib.request.urlopen(url, timeout=seconds) as answer:
            return API_HEADER in answer.headers
    except urllib.error.HTTPError as error:
        return error.code == 401 and API_HEADER in error.headers
    except (urllib.error.URLError, OSError, ValueError):
        return False
