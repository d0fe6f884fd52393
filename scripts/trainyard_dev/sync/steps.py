"""The content of `pipelines/components/`: one function for each kind of job, from the registry of kinds.

kfp reads a component's source, so each must be complete; their common parts are written once, here.
"""

from collections.abc import Iterator
from pathlib import Path

from trainyard.kinds import registry
from trainyard.kinds.registry import Kind

FOLDER = "pipelines/components"
# Further files, and the names that they define.
BY_HAND = [
    ("objects", "create_object"),
    ("serving", "gate_model, register_model, serve_model"),
    ("store", "with_store"),
]
HEAD = '''\
"""Training jobs as steps of kfp pipelines, one function for each kind.

Args:
    command: the program and its words, the same on every node.
    name: what the job's name begins with.
    arguments: further words, as in a shell; put values of other steps here: f"--lr={lr}".
    image: what the command runs in; empty takes the platform's.
    nodes: pods of the gang; all start together or none does.
    gpus: GPUs of each node.
    processes: ranks on each node; 0 means one for each GPU, at least one.
    parameter_servers: further pods without GPU that hold the weights.
    queue: of the team; empty takes the run's.
    priority: class; empty takes the run's.
    pool: nodes to run on; empty takes the default one for this many GPUs.
    cpu, memory, shared_memory: of each node.
    env: variables: a text, or {"secret": …, "key": …}.
    mounts: volumes: {"claim": …, "path": …, "readOnly": …}.
    results: folder that the command writes to and the platform keeps; empty where the command writes to {out}.
    checkpoints: folder that is kept while the job runs, and is restored when a node restarts.
    retries: how often a rank may fail and restart.
    deadline: the longest the job may take: 90m, 12h, 2d.
    settings: what {name} in words of the command stands for; kept in the metadata of `model`, too.
    data: what to train on.

Each returns the job's name as `Output`, beside the artifacts `model` and `metrics`.
"""

from typing import Optional

from kfp import dsl

from components.images import PIPELINE
from components.store import stored
'''
STEP = '''

@stored
@dsl.component(base_image=PIPELINE, install_kfp_package=False)
def {step}(
    command: list,
    model: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    name: str = "train",
    arguments: str = "",
    image: str = "",
    nodes: int = 1,
    gpus: int = 0,
{parameter}    queue: str = "",
    priority: str = "",
    pool: str = "",
    cpu: str = "1",
    memory: str = "2Gi",
    shared_memory: str = "256Mi",
    env: dict = {{}},
    mounts: list = [],
    results: str = "",
    checkpoints: str = "",
    retries: int = 0,
    deadline: str = "1d",
    settings: dict = {{}},
    data: Optional[dsl.Input[dsl.Dataset]] = None,
) -> str:
    """{about}

    An empty `image` takes the platform's {image}; all arguments: `help("components.training")`.
    """
    from trainyard.pipelines import steps

    return steps.train("{framework}", locals())
'''


def files(root: Path) -> Iterator[tuple[str, str]]:
    """Every file of a tree with its text. The docstring of `__init__.py` is written by hand, and stays."""
    kinds = sorted((kind for kind in registry.KINDS if kind.about), key=lambda kind: kind.step)
    yield f"{FOLDER}/training.py", HEAD + "".join(map(_step, kinds))
    modules = [*BY_HAND, ("training", ", ".join(kind.step for kind in kinds))]
    imports = "".join(f"from components.{module} import {names}\n" for module, names in modules)
    given = sorted(name for _, listed in modules for name in listed.split(", "))
    names = "".join(f'    "{name}",\n' for name in given)
    head = (root / FOLDER / "__init__.py").read_text().partition("from components.")[0].rstrip("\n")
    yield f"{FOLDER}/__init__.py", f"{head}\n\n{imports}\n__all__ = [\n{names}]\n"


def _step(kind: Kind) -> str:
    further = "processes" if kind.per_gpu else "parameter_servers" if "PS" in kind.roles else ""
    return STEP.format(
        step=kind.step,
        parameter=f"    {further}: int = 0,\n" if further else "",
        about=kind.about,
        image=kind.trainer,
        framework=kind.framework,
    )
