"""Checks that a new training image imports everything that it declares, and has nothing else."""

import json

from trainyard.errors import TrainyardError
from trainyard.kinds.images import Trainer, trainers
from trainyard_dev.engine import Engine
from trainyard_dev.versions import Image

# Runs in the image. It lists what is installed before it imports: setuptools adds its vendored packages to the path.
LOOK = """
import importlib, importlib.util, json, pkgutil, sys
asked, failed, there = json.loads(sys.argv[1]), {}, []
installed = {one.name for one in pkgutil.iter_modules() if "/trainyard/" in one.module_finder.path + "/" \\
             or "dist-packages" in one.module_finder.path}
for name in asked["has"]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed[name] = str(error)[:200]
for name in asked["lacks"]:
    try:
        there += [name] if importlib.util.find_spec(name) else []
    except ImportError:
        pass
more = sorted(name for name in installed - set(asked["has"]) if not name.startswith("_"))
more = [one for one in more if one not in ("kfp", "isympy")]
print("found: " + json.dumps({"failed": failed, "there": there, "more": more}))
"""
WRONG = {
    "failed": "cannot be imported",
    "there": "installed, but listed as omitted",
    "more": "installed, but not listed",
}


def declared(image: Image) -> Trainer | None:
    """The packages that `trainyard train` lists for an image; None if it isn't for training."""
    return next((one for one in trainers() if one.name == image.name), None)


def check(engine: Engine, image: Image, tag: str) -> None:
    """Checks a new training image; any other passes. Raises TrainyardError with the differences."""
    trainer = declared(image)
    if not trainer:
        return
    asked = json.dumps({"has": sorted(trainer.modules), "lacks": list(trainer.lacks)})
    ended = engine("run", "--rm", "--network=none", "--entrypoint=python3", tag, "-c", LOOK, asked, timeout=300)
    found = json.loads(next(line for line in ended.stdout.splitlines() if line.startswith("found: "))[7:])
    wrong = [f"{words}: {found[key]}" for key, words in WRONG.items() if found[key]]
    if wrong:
        engine("rmi", "--force", tag, check=False)
        hint = "correct images/requirements.yaml, or the packages that the Containerfile installs"
        raise TrainyardError("; ".join(wrong), where=image.dir, hint=hint)
