"""Python packages of images: one list names them, `requirements.lock` has their versions.

`trainyard versions wheels` generates the `requirements.txt` of each, with hashes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name

from trainyard_dev import folders

# (file, problem, fix)
Finding = tuple[str, str, str]

LIST = "images/requirements.yaml"
CUDA = "-cuda"  # suffix of names of images for GPUs that compute
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)[\s\\]+--hash=(sha256:[0-9a-f]+)$", re.M)
_LOCKED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;]+)$", re.M)


@dataclass(frozen=True)
class PackagePins:
    """The pins of an image's file: package -> version, in order; and dependencies that are left out on purpose."""

    pins: dict[str, str]
    without: frozenset[str]
    source: bool


@dataclass
class ImagePackages:
    """The list's settings for every image, and its errors."""

    images: dict[str, PackagePins] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def pins(text: str) -> dict[str, tuple[str, str]]:
    """Package -> (version, hash) from an image's file."""
    return {canonicalize_name(name): (version, digest) for name, version, digest in _PIN.findall(text)}


def locked(root: Path) -> dict[str, str]:
    """Package -> version in the development environment."""
    return {canonicalize_name(name): found for name, found in _LOCKED.findall((root / "requirements.lock").read_text())}


def file_of(root: Path, image: str) -> str:
    """The file that an image's build installs."""
    return f"{folders.find(root, folders.IMAGES, image)}/requirements.txt"


def trainers(root: Path) -> dict[str, dict[str, Any]]:
    """The list's settings for each training image."""
    listed = yaml.load((root / LIST).read_text(), yaml.BaseLoader)["images"]
    return {image: spec for image, spec in listed.items() if spec.get("runs")}


def key(image: str) -> str:
    """An image's name in the contract: trainerTorch for trainer-torch, and for trainer-torch-cuda."""
    return re.sub(r"-(\w)", lambda letter: letter[1].upper(), image.removesuffix(CUDA))


def wishes(root: Path, lock: Mapping[str, str]) -> ImagePackages:
    """The list with the versions of `lock`, its own versions for packages that the lock lacks, and its exceptions."""
    # Every scalar is a text: 3.10 is not a number.
    raw, made = yaml.load((root / LIST).read_text(), yaml.BaseLoader), ImagePackages()
    own = raw.get("versions", {})
    for name in sorted(own.keys() & lock.keys()):
        made.findings.append((LIST, f"{name} is also in requirements.lock", "remove it from `versions`"))
    base = {**own, **lock}
    for image, spec in raw["images"].items():
        lists = [spec.get("packages", ()), *(raw["sets"][one] for one in spec.get("sets", ()))]
        names = sorted({name for one in lists for name in one})
        versions = dict(base)
        for one in (one for one in raw.get("otherwise", ()) if image in one["images"]):
            for name, version in one["versions"].items():
                if name not in names:
                    made.findings.append((LIST, f"{image} does not have {name}, which `otherwise` lists", "remove it"))
                elif base.get(name) == version:
                    made.findings.append((LIST, f"{name} {version} of {image} does not differ", "remove it"))
                versions[name] = version
        for name in names:
            if name not in versions:
                made.findings.append((LIST, f"{name} of {image} has no version", "add it under `versions`"))
        found = {name: versions[name] for name in names if name in versions}
        made.images[image] = PackagePins(found, frozenset(spec.get("without", ())), spec.get("source") == "true")
    return made
