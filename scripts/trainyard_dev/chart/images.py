"""Images that an installation can start, from the rendered chart and from the examples."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.chart import helm
from trainyard.contract import of_objects
from trainyard.contract.model import OWN
from trainyard.paths import ROOT
from trainyard_dev.chart import package
from trainyard_dev.versions import load

EXAMPLES = "manifests/jobs"
# Without any team in the values, per-team objects don't exist; this team represents future ones.
ANY_TEAM = (
    "global.contract.teams[0].name=any", "global.contract.teams[0].gid=20001",
    "global.contract.network.s3[0].cidr=203.0.113.0/24", "global.contract.network.s3[0].port=443",
)  # fmt: skip
# A reference with its host, alone or after a flag: an operator's argument, a container's environment variable.
_HANDED_ON = re.compile(
    r"(?:--?[\w-]+=)?((?:[\w-]+\.)+[\w-]+(?::\d+)?/[a-z0-9][a-z0-9._/-]*(?::[\w][\w.-]*|@sha256:[0-9a-f]{64}))"
)


@dataclass(frozen=True)
class Listed:
    """An image: where it is published, where an installation with these values pulls it, and its users."""

    ref: str
    pulled: str
    own: bool
    uses: tuple[str, ...]


def listed(
    profile: str, *, values: Sequence[Path] = (), sets: Sequence[str] = (), render: Any = package.render
) -> list[Listed]:
    """Every image that a profile with these values can start, sorted by reference.

    Args:
        values: further values files, as for `helm --values`.
        sets: single values, as for `helm --set`.
        render: function that makes the objects.
    """
    objects = render(profile, sets=sets, values=values)
    known = of_objects(objects)
    if not known.teams:
        sets = [*sets, *ANY_TEAM]
        objects = render(profile, sets=sets, values=values)
    # Without a mirror every reference names the registry that publishes it; ours have no other than OWN.
    bare = [*sets, "global.imageRegistry=", f"global.ownImageRegistry={OWN}"]
    plain = objects if known.registry == OWN else render(profile, sets=bare, values=values)
    there = sorted(references(objects))
    uses: dict[str, set[str]] = {}
    for ref, use in [*_rendered(plain), *_examples()]:
        uses.setdefault(ref, set()).add(use)
    own = {image.ref for image in load().images.values() if image.own}
    return [
        Listed(ref, _pulled(ref, there) or known.reference(ref), ref in own, tuple(sorted(uses[ref])))
        for ref in sorted(uses)
    ]


def _pulled(ref: str, there: Sequence[str]) -> str:
    """Which of these references is the same image, perhaps in another registry; "" if none is."""
    path = ref.partition("/")[2]
    return next((one for one in there if one.endswith(f"/{path}")), "")


def references(objects: Sequence[dict[str, Any]]) -> set[str]:
    """Every image that rendered objects name, in any field."""
    return {ref for ref, _ in _rendered(objects)}


def _rendered(objects: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """(reference, its user) from pods, from objects that operators pass on, and from the contract."""
    for obj in objects:
        name = f"{obj['kind']} {obj['metadata']['name']}"
        for spec in helm.pod_specs(obj):
            for container in helm.containers(spec):
                yield container["image"], name
                for ref in _handed_on(container):
                    yield ref, f"jobs of {name}"
    known = of_objects(objects)
    for key, ref in known.images.items():
        yield ref, f"contract {key}"
    for key, image in ((known.raw.get("serving") or {}).get("images") or {}).items():
        yield known.reference(image), f"models of {key}"
    if any(pool.cuda for pool in known.pools):
        for key, ref in known.cuda_images.items():
            yield ref, f"contract {key} with CUDA"


def _handed_on(container: dict[str, Any]) -> Iterator[str]:
    words = [*(container.get("command") or []), *(container.get("args") or [])]
    words += [one.get("value") or "" for one in container.get("env") or []]
    for word in words:
        if match := _HANDED_ON.fullmatch(str(word)):
            yield match[1]


def _examples() -> Iterator[tuple[str, str]]:
    """Images in example jobs, wherever they are pinned."""
    known = {ref for image in load().images.values() for ref in (image.ref, *image.also)}
    for file in sorted((ROOT / EXAMPLES).glob("*.yaml")):
        text = file.read_text()
        for ref in sorted(ref for ref in known if ref in text):
            yield ref, str(file.relative_to(ROOT))
