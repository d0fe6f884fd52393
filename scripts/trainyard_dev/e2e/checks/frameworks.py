"""Scripts as users write them, by `trainyard train`: the image with their imports, device and back end."""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from trainyard.kinds.registry import KINDS
from trainyard.paths import ROOT
from trainyard_dev.e2e import runs
from trainyard_dev.e2e.checks import computed
from trainyard_dev.e2e.context import NAMESPACE, Context
from trainyard_dev.e2e.entry import DATA, GPUS, KINDS_CODE, check
from trainyard_dev.e2e.recorder import Figures, had, possible, require

EXAMPLES = ROOT / "examples"
TRAIN_S = 600
BAR = 0.7  # for test images; the scripts reach more than 0.85 on MNIST, the small vision transformer 0.55
FIRST = "trainyard: computes on "
PYTHON = ("python", "train.py")


@dataclass(frozen=True)
class Script:
    """A folder of examples/, and the expected results of its training.

    `image`: the one that `train` must choose, "" for the kind's default; `says`: a sentence of `train`'s; `saved`: the
    file next to metrics.json.
    """

    id: str
    title: str
    folder: str
    kind: str
    backend: str
    saved: tuple[str, ...] = ("model.pt",)
    command: tuple[str, ...] = PYTHON
    image: str = ""
    nodes: int = 2
    gpus: int = 1
    memory: str = "1536Mi"
    bar: float = BAR
    says: str = ""

    def images(self) -> tuple[str, ...]:
        """Images that the job needs, by their names in versions.yaml."""
        image = self.image or next(kind.trainer for kind in KINDS if kind.kind == self.kind)
        return (image, "kubectl-delivery") if self.kind == "MPIJob" else (image,)


SCRIPTS = (
    Script("arrivals.keras", "a Keras script: Sequential, fit, save as .h5 and .keras", "mnist-keras", "TFJob", "none",
           ("my_model.h5", "my_model.keras"), nodes=1),
    Script("train.torchrun", "a DDP script with torchrun on two nodes", "mnist-ddp", "PyTorchJob", "gloo",
           command=("torchrun", "train.py")),
    Script("train.lightning", "a Lightning script on two nodes", "mnist-lightning", "PyTorchJob", "gloo",
           image="trainer-transformers"),
    Script("train.transformers", "Transformers' Trainer on two nodes", "mnist-transformers", "PyTorchJob", "gloo",
           ("model/model.safetensors", "model/config.json"), image="trainer-transformers", bar=0.4),
    Script("train.accelerate", "an Accelerate script on two nodes", "mnist-accelerate", "PyTorchJob", "gloo",
           image="trainer-transformers"),
    Script("arrivals.horovod", "a Horovod script for PyTorch with horovodrun: two ranks on each of two nodes",
           "mnist-horovod", "MPIJob", "horovod-mpi", gpus=2, memory="2Gi",
           command=("horovodrun", "-np", "4", "-H", "server1:2,server2:2", *PYTHON),
           says="horovodrun is run as an MPIJob: 2 nodes with 2 ranks each"),
    Script("arrivals.horovod-keras", "a Horovod script for Keras on two nodes", "mnist-horovod-keras", "MPIJob",
           "horovod-mpi", ("my_model.h5",), image="trainer-horovod-tensorflow"),
)  # fmt: skip


def train(context: Context, script: Script) -> None:
    """Trains one script as a member; its folder is copied, so that nothing is left in the repository."""
    with context.recorder.check(script.id, script.title) as figures, runs.copied(EXAMPLES / script.folder) as folder:
        runnable = context.gpu != "real" or script.kind != "MPIJob"
        possible(runnable, "the platform has no Horovod image with CUDA")
        asked = ["--nodes", script.nodes, "--gpus", script.gpus, "--cpu", "200m", "--memory", script.memory]
        words = [*map(str, asked), "--shared-memory", "64Mi", "--deadline", "10m", "--", *script.command]
        began = time.monotonic()
        code, out, said = _trainyard(context, folder, words)
        figures["seconds"] = round(time.monotonic() - began)
        require(code == 0, f"trainyard train exited with {code}: {said[-400:]}; its log: {out[-600:]}")
        require(f": {script.kind} " in said, f"the job is not a {script.kind}: {said[:300]}")
        require(script.says in said, f"the output lacks `{script.says}`: {said[:300]}")
        image = script.image and f"{script.image}{'-cuda' if context.gpu == 'real' else ''}"
        chosen = f"image {image}, which has " if image else ""
        require(chosen in said, f"the image is not {script.image}: {said[:300]}")
        # MPI's rank 0 prints its line after those of mpirun and of the shells that reach workers, which trace
        # themselves, both into one log at the same time.
        begin = out.splitlines()[: 16 if script.kind == "MPIJob" else 1]
        first = next((line for line in begin if line.startswith(FIRST)), "")
        require(first, f"the log does not begin with the device: {begin}")
        results = next((path.parent for path in (folder / "results").rglob("metrics.json")), None)
        results = had(results, f"no metrics.json was downloaded: {said[-400:]}")
        metrics = json.loads((results / "metrics.json").read_text())
        figures |= {"accuracy": round(metrics["accuracy"], 4), "world_size": metrics["world"], "says": first}
        computed.check(context, metrics, script.backend, figures, gpus=script.gpus)
        require(metrics["world"] == script.nodes * max(1, script.gpus), f"{metrics['world']} ranks took part")
        require(metrics["accuracy"] >= script.bar, f"accuracy {metrics['accuracy']:.4f} is below {script.bar}")
        for name in script.saved:
            size = (results / name).stat().st_size if (results / name).is_file() else 0
            require(size > 1000, f"the downloaded {name} has {size} bytes")


for one in SCRIPTS:
    check(
        one.id,
        needs=(DATA,),
        shares={GPUS},
        images=one.images(),
        inputs=(*KINDS_CODE, f"examples/{one.folder}", "scripts/trainyard/training"),
    )(lambda context, script=one: train(context, script))


@check("arrivals.imports", title="a script with imports that the image lacks is refused before the upload",
       inputs=("scripts/trainyard/kinds", "scripts/trainyard/training"))  # fmt: skip
def refused(context: Context, figures: Figures) -> None:
    """Imports that no image has are refused before anything is sent, with a hint."""
    with tempfile.TemporaryDirectory(prefix="trainyard-e2e-") as scratch:
        folder = Path(scratch)
        (folder / "train.py").write_text("import keras\nimport torch\nimport sklearn\n")
        code, out, said = _trainyard(context, folder, ["--", "python", "train.py"])
        figures["message"] = said.strip()
        require(code == 2 and not out, f"the command exited with {code}: {said[-300:]}")
        require("train.py:1: imports keras" in said, f"the line of the import is missing: {said}")
        require("train.py:3 imports sklearn" in said, f"the second missing import is not listed: {said}")
        require("write keras==" in said and "write scikit-learn into" in said, f"the hint is missing: {said}")
        require("code sent" not in said, f"code was uploaded before: {said}")


def _trainyard(context: Context, folder: Path, words: list[str]) -> tuple[int, str, str]:
    return runs.trainyard(context, "train", "--dir", folder, *words, team=NAMESPACE, check=False, timeout=TRAIN_S)
