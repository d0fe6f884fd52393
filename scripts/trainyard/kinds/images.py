"""Importable modules of each training image: images.yaml, which `bin/trainyard versions sync` writes."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from trainyard import __version__
from trainyard.kinds.requirements import PYTHON
from trainyard_agent.runs.install_packages import SAME
from trainyard_agent.runs.requirements import canonical

FILE = Path(__file__).with_name("images.yaml")
# Modules whose package has another name, for packages that no image has.
PACKAGES = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dotenv": "python-dotenv",
    "git": "GitPython",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "umap": "umap-learn",
}
# Alternative packages of a module, each of which is enough; hints name the usual package.
ALSO = {
    "cv2": ("opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "faiss": ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu12"),
    "onnxruntime": ("onnxruntime-gpu",),
    "psycopg2": ("psycopg2-binary",),
}
# Modules that no image has, and why adding them to requirements.txt doesn't help.
NOWHERE = {
    "horovod.keras": "for standalone Keras, whose version 3 Horovod doesn't support: import horovod.tensorflow.keras",
    "deepspeed": "the package compiles its operators at run time with CUDA's compiler: use an image with both",
}


@dataclass(frozen=True)
class Trainer:
    """An image that trains.

    Args:
        key: key in the contract's images or cudaImages.
        cuda: whether the image computes on GPUs instead of CPUs.
        python: major and minor version of its Python.
        runs: frameworks whose jobs it can run.
        modules: importable modules by top-level name, each with the line of requirements.txt that pins it; "" for
            modules from Debian.
        lacks: dotted submodules of these that are missing.
    """

    name: str
    key: str
    runs: tuple[str, ...]
    modules: Mapping[str, str]
    lacks: tuple[str, ...] = ()
    cuda: bool = False
    python: str = PYTHON

    def missing(self, module: str) -> str:
        """The part of a dotted module name that can't be imported: its top-level name or a submodule; "" if all can."""
        top = module.partition(".")[0]
        if top not in self.modules:
            return top
        return next((part for part in self.lacks if f"{module}.".startswith(f"{part}.")), "")


@functools.cache
def _all() -> tuple[Trainer, ...]:
    found = yaml.safe_load(FILE.read_text())
    for one in found.values():
        one |= {"runs": tuple(one["runs"]), "lacks": tuple(one.get("lacks", ()))}
    return tuple(Trainer(name, **one) for name, one in found.items())


def trainers(*, cuda: bool = False) -> tuple[Trainer, ...]:
    """All training images with CUDA, or all without, in order of preference."""
    return tuple(one for one in _all() if one.cuda == cuda and one.runs)


def of_reference(reference: str, *, steps: bool = False) -> Trainer | None:
    """The image of a reference; None for any other image, or if its version is not this platform's.

    Args:
        steps: also match the image of steps, which does not train.
    """
    last = reference.partition("@")[0].rpartition("/")[2]
    return next((one for one in _all() if last == f"{one.name}:{__version__}" and (one.runs or steps)), None)


def requirement(module: str, *, cuda: bool = False) -> str:
    """The line of requirements.txt that installs a module into an image with CUDA or without."""
    top = module.partition(".")[0]
    looked = (*trainers(cuda=True), *trainers()) if cuda else trainers()
    pinned = next((one.modules[top] for one in looked if one.modules.get(top)), "")
    name, equal, version = pinned.partition("==")
    if cuda:  # never the CPU-only package
        return f"{SAME.get(name, name)}{equal}{version}" or _usual(top)
    return pinned or _usual(top)


def packages(module: str) -> frozenset[str]:
    """Normalized names of the packages that provide a module, each of which is enough."""
    top = module.partition(".")[0]
    found = {
        _usual(top),
        *ALSO.get(top, ()),
        *(one.modules[top].partition("==")[0] for one in _all() if one.modules.get(top)),
    }
    return frozenset(canonical(one) for one in found | {SAME[one] for one in found & SAME.keys()})


def _usual(top: str) -> str:
    return PACKAGES.get(top, top.replace("_", "-"))
