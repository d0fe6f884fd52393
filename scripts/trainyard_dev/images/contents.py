"""Contents of our training images: by their pins, which docs/images.md shows, and by inspecting an image."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from trainyard.paths import ROOT
from trainyard_dev.engine import Engine
from trainyard_dev.images import packages
from trainyard_dev.images.build import local_ref
from trainyard_dev.versions import Image

PAGE = "docs/images.md"
PIN = re.compile(r"^([a-z0-9-]+)==(\S+)", re.M)
FRAMEWORKS = ("torch", "tensorflow", "tensorflow-cpu", "lightning", "transformers", "accelerate")
PARTS = {"CUDA": "nvidia-cuda-runtime", "cuDNN": "nvidia-cudnn", "cuBLAS": "nvidia-cublas", "NCCL": "nvidia-nccl"}
# Reports what Python finds at run time, not what should be there; needs no GPU.
ASK = """\
import importlib, json, platform
found = {"python": platform.python_version()}
def torch(m):
    found.update(torch=m.__version__, cuda=m.version.cuda, cudnn=m.backends.cudnn.version())
    if m.version.cuda:
        found["nccl"] = ".".join(map(str, m.cuda.nccl.version()))
def tensorflow(m):
    built = m.sysconfig.get_build_info()
    found.update(tensorflow=m.__version__, cuda=built.get("cuda_version"), cudnn=built.get("cudnn_version"))
for name, look in (("torch", torch), ("tensorflow", tensorflow)):
    try:
        look(importlib.import_module(name))
    except ImportError as error:
        found.setdefault("missing", {})[name] = str(error)
print(json.dumps(found))
"""


def of_pins(root: Path, image: str) -> dict[str, str]:
    """Pinned versions of frameworks and CUDA, in an image and the one below it: title -> version."""
    below = yaml.safe_load((root / "versions.yaml").read_text())["images"].get(image, {}).get("parent", "")
    path, found = root / packages.file_of(root, image), of_pins(root, below) if below else {}
    if not path.exists():
        return found
    pins = dict(PIN.findall(path.read_text()))
    found |= {name: pins[name] for name in FRAMEWORKS if name in pins}
    for title, prefix in PARTS.items():
        for name in pins:
            if name == prefix or name.startswith(f"{prefix}-cu"):
                found[title] = pins[name]
    return found


def of_image(engine: Engine, image: Image, base: str) -> dict[str, Any]:
    """What Python finds in a local image, built on `base`. Raises TrainyardError."""
    hint = f"build it first: bin/trainyard images build {image.name}"
    argv = ("run", "--rm", "--pull=never", "--network=none", "--entrypoint=python3", local_ref(image, base), "-c", ASK)
    said = engine(*argv, hint=hint).stdout
    found: dict[str, Any] = json.loads(said.strip().splitlines()[-1])
    return found


def render(root: Path = ROOT) -> str:
    """The page: prose by hand, tables of the CUDA images' pins."""
    head = (Path(__file__).with_name("assets") / "images.md").read_text()
    names = sorted(path.parent.name for path in (root / "images").glob("trainer-*-cuda/requirements.txt"))
    lines = ["| image | framework | " + " | ".join(PARTS) + " |", "|---|---|" + "---|" * len(PARTS)]
    for name in names:
        found = of_pins(root, name)
        framework = ", ".join(f"{one} {found[one]}" for one in FRAMEWORKS if one in found)
        lines.append(f"| `{name}` | {framework} | " + " | ".join(found.get(title, "") for title in PARTS) + " |")
    return head.replace("@TABLE@", "\n".join(lines))
