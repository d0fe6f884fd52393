"""What each image of the platform that trains can import: images.yaml, which `bin/trainyard versions sync` writes."""

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
# Modules whose package has another name, of packages that no image has.
PACKAGES = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dotenv": "python-dotenv",
    "git": "GitPython",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "umap": "umap-learn",
}
# Further packages of a module, each of which is enough; the one to write is the usual one.
ALSO = {
    "cv2": ("opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "faiss": ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu12"),
    "onnxruntime": ("onnxruntime-gpu",),
    "psycopg2": ("psycopg2-binary",),
}
# What no image has, and why a line of requirements.txt is no answer either.
NOWHERE = {
    "horovod.keras": "it is for Keras by itself, of which Horovod knows no version 3: import horovod.tensorflow.keras",
    "deepspeed": "it compiles its operators where it runs, with CUDA's compiler: name an image of yours that has both",
}


@dataclass(frozen=True)
class Trainer:
    """One image.

    Args:
        key: of the contract's images, or of its cudaImages.
        cuda: it computes on GPUs; else on CPUs.
        python: the minor of its Python.
        runs: frameworks whose jobs it can run.
        modules: what can be imported, by its top-level name, with the line of requirements.txt that pins it; "" for
            what Debian brings.
        lacks: parts of these, with dots, that are left out.
    """

    name: str
    key: str
    runs: tuple[str, ...]
    modules: Mapping[str, str]
    lacks: tuple[str, ...] = ()
    cuda: bool = False
    python: str = PYTHON

    def missing(self, module: str) -> str:
        """What of a module, given with its dots, can't be imported: its top-level name or the part; "" for nothing."""
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
    """All images that train with CUDA, or all without, in the order in which one is looked for."""
    return tuple(one for one in _all() if one.cuda == cuda and one.runs)


def of_reference(reference: str, *, steps: bool = False) -> Trainer | None:
    """The image that a reference names; None for any other image, and for one of another version of the platform.

    Args:
        steps: also the image of steps, which trains nothing.
    """
    last = reference.partition("@")[0].rpartition("/")[2]
    return next((one for one in _all() if last == f"{one.name}:{__version__}" and (one.runs or steps)), None)


def requirement(module: str, *, cuda: bool = False) -> str:
    """The line of requirements.txt that brings a module, beside an image with CUDA or without."""
    top = module.partition(".")[0]
    looked = (*trainers(cuda=True), *trainers()) if cuda else trainers()
    pinned = next((one.modules[top] for one in looked if one.modules.get(top)), "")
    name, equal, version = pinned.partition("==")
    if cuda:  # never the one for CPUs alone
        return f"{SAME.get(name, name)}{equal}{version}" or _usual(top)
    return pinned or _usual(top)


def packages(module: str) -> frozenset[str]:
    """Packages that bring a module, each of which is enough, as pip compares them."""
    top = module.partition(".")[0]
    found = {
        _usual(top),
        *ALSO.get(top, ()),
        *(one.modules[top].partition("==")[0] for one in _all() if one.modules.get(top)),
    }
    return frozenset(canonical(one) for one in found | {SAME[one] for one in found & SAME.keys()})


def _usual(top: str) -> str:
    return PACKAGES.get(top, top.replace("_", "-"))
