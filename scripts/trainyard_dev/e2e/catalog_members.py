"""Checks of what members bring and do: manifests and scripts as people have them, their data, and what they see."""

from __future__ import annotations

from trainyard.kinds.images import trainers
from trainyard.kinds.registry import KINDS
from trainyard_dev.corpus import picked
from trainyard_dev.e2e.checks import (
    arrivals,
    data,
    elsewhere,
    folder,
    frameworks,
    login,
    notebooks,
    parallel,
    requirements,
    seeing,
    serving,
    tracking,
    upstream,
)
from trainyard_dev.e2e.entry import (
    APART,
    DATA,
    EXAMPLES_CODE,
    GPU_USE,
    GPUS,
    KFP_IMAGES,
    KINDS_CODE,
    MONITORING,
    PEOPLE,
    PIPELINE_CODE,
    SERVING,
    SETTLED,
    TENSORFLOW,
    TORCH,
    UPGRADE_USE,
    VOLUME_USE,
    Entry,
    each,
)

ARRIVAL_CODE = ("policies", "scripts/trainyard/policy/fill", "scripts/trainyard_dev/corpus/stand-in", "images/trainer",
                "manifests/cluster")  # fmt: skip
ELSEWHERE = tuple(f"elsewhere.{name}" for name in ("workflow", "component", "object", "object-refused"))


def _script(script: frameworks.Script) -> Entry:
    kind = next(kind for kind in KINDS if kind.kind == script.kind)
    image = script.image or next(one.name for one in trainers() if one.key == kind.image)
    return Entry(
        (script.id,),
        lambda context: frameworks.train(context, script),
        needs=(DATA,),
        shares=GPU_USE,
        images=(image, "kubectl-delivery") if script.kind == "MPIJob" else (image,),
        inputs=(*KINDS_CODE, f"examples/{script.folder}", "scripts/trainyard/training"),
    )


def _upstream(kind: str) -> Entry:
    trainers_of = {one.trainer for one in picked.of_kind(kind)} - {""}
    beside = {"workflow": ("pipeline", "argoexec"), "mpijob": ("kubectl-delivery",)}.get(kind, ())
    return Entry(
        (upstream.check_id(kind),),
        lambda context: upstream.arrive(context, kind),
        shares=GPU_USE | VOLUME_USE,
        images=(*sorted(trainers_of), *beside),
        inputs=(*ARRIVAL_CODE, "scripts/trainyard_dev/corpus/picked.py", "versions.yaml"),
    )


# Minutes each, most of them waits: they begin first, and what computes runs beside them.
OPTIONS = (
    Entry(serving.IDS, serving.on, needs=(DATA,), locks=frozenset({SERVING, MONITORING}), shares=UPGRADE_USE,
          images=serving.IMAGES, long=True, parts=each(serving.IDS),
          inputs=("charts/serving", "charts/model-server", "scripts/trainyard/serving", "scripts/model_server",
                  "pipelines/serve.py", "scripts/trainyard_agent", "policies",
                  "scripts/trainyard_dev/e2e/flows/served")),
    Entry(tuple(login.TITLES), login.member, locks=frozenset({PEOPLE}), shares=UPGRADE_USE,
          images=("dex", "pipeline"), long=True, login=True,
          inputs=("charts/login", "charts/trainyard/templates/_login.tpl", "scripts/trainyard/login",
                  "scripts/trainyard/commands/login.py", "scripts/trainyard_dev/cluster/login.py",
                  "scripts/trainyard_dev/e2e/sites/person.py", "scripts/trainyard_dev/e2e/sites/login.py")),
    Entry(notebooks.IDS, notebooks.check, needs=(DATA,), locks=frozenset({PEOPLE, SERVING, APART}), shares=UPGRADE_USE,
          images=notebooks.IMAGES, long=True, login=True, parts=each(notebooks.IDS),
          inputs=("charts/notebooks", "images/notebook", "images/notebook-hub", "scripts/trainyard/login/hub.py",
                  "policies/notebook-hub.yaml", "policies/notebook-names.yaml", "scripts/trainyard_dev/browser.py",
                  "scripts/trainyard_dev/e2e/sites/person.py", "scripts/trainyard_dev/e2e/sites/login.py",
                  "scripts/trainyard_dev/e2e/sites/notebook_page.py", "scripts/trainyard_dev/e2e/sites/notebooks.py")),
)  # fmt: skip

ENTRIES = (
    Entry(ELSEWHERE, elsewhere.check, shares=GPU_USE, images=("argoexec", "pipeline"),
          inputs=(*PIPELINE_CODE, "scripts/trainyard_dev/e2e/flows"), parts=each(ELSEWHERE)),
    *(_script(one) for one in frameworks.SCRIPTS),
    Entry(("arrivals.imports",), frameworks.refused, inputs=("scripts/trainyard/kinds", "scripts/trainyard/training")),
    Entry(("train.folder", "train.again", "train.failing", "train.traces"), folder.train, shares=GPU_USE,
          images=(TORCH,),
          inputs=("scripts/trainyard/training", "scripts/trainyard/observe", "scripts/trainyard/kinds")),
    Entry(tuple(arrivals.TITLES), arrivals.arrive, shares=GPU_USE | VOLUME_USE,
          images=(TORCH, TENSORFLOW, "pipeline", "argoexec"),
          inputs=(*ARRIVAL_CODE, "scripts/trainyard_dev/e2e/arrivals"), parts=each(tuple(arrivals.TITLES))),
    *(_upstream(kind) for kind in picked.kinds()),
    Entry(("train.requirements", "train.requirements-again", "pipelines.packages", "train.requirements-line"),
          requirements.installed, shares=GPU_USE, images=(TORCH, *KFP_IMAGES),
          inputs=("scripts/trainyard/training", "scripts/trainyard/kinds", "scripts/trainyard_agent",
                  "scripts/trainyard/pipelines", "images/platform")),
    Entry(("train.fsdp", "train.fsdp-resumed"), parallel.fsdp, shares=GPU_USE, images=(TORCH,), inputs=EXAMPLES_CODE),
    Entry((parallel.ELASTIC,), parallel.elastic, locks=frozenset({GPUS}), shares=UPGRADE_USE, images=(TORCH,),
          inputs=EXAMPLES_CODE),
    Entry(("data.put", "data.workspace", "data.refused"), data.put, needs=(DATA,), shares=VOLUME_USE,
          inputs=("scripts/trainyard/data", "scripts/trainyard/training/transfer", "scripts/trainyard_agent",
                  "scripts/trainyard/commands/data.py")),
    Entry(("seeing.gpus",), seeing.gpus, locks=frozenset({GPUS}),  # what the team holds is counted
          inputs=("scripts/trainyard_agent", "charts/trainyard/templates", "scripts/trainyard/observe/gpus.py",
                  "scripts/trainyard/commands/gpus.py")),
    Entry((tracking.ID,), tracking.mlflow, shares=UPGRADE_USE, images=(TORCH, "pipeline"),
          inputs=("scripts/trainyard_agent/run_metrics.py", "scripts/trainyard_agent/run_files.py",
                  "scripts/trainyard_agent/mlflow.py", "scripts/trainyard/kinds/environment.py",
                  "charts/trainyard/templates/_mlflow.tpl", "charts/trainyard/templates/team-network.yaml",
                  "scripts/trainyard_dev/e2e/sites/tracking_server.py")),
)  # fmt: skip

# It waits until nobody upgrades.
SEEN = Entry(("seeing.compare", "seeing.tensorboard"), seeing.looked_at, locks=SETTLED, images=(TORCH,),
             inputs=("scripts/trainyard/training", "scripts/trainyard/kube", "scripts/trainyard_agent",
                     "scripts/trainyard/observe/comparison.py", "scripts/trainyard/observe/comparison_svg.py",
                     "scripts/trainyard/commands/runs_compare.py",
                     "scripts/trainyard/commands/runs_tensorboard.py"))  # fmt: skip
