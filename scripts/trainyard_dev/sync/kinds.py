"""Writers of copies of the registry of kinds and the list of images: values of the charts, and docs/kinds.md."""

import re
from collections.abc import Iterator
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard_dev.images import packages
from trainyard_dev.sync.tree import Tree

PAGE = "docs/kinds.md"
EXAMPLE = "manifests/jobs/pytorchjob.yaml"  # from which others are derived
VALUES = "charts/trainyard/values.yaml"
OPERATOR = ("charts/training-operator/values.yaml", "charts/training-operator/values.schema.yaml")
WRITTEN = (VALUES, *OPERATOR)  # by hand, except for the lines that name kinds
HEAD = """\
# Kinds of jobs

After this page you can choose the framework of a job for [`trainyard train`](train.md).
`bin/trainyard versions sync` writes this page from the [registry](../scripts/trainyard/kinds/registry.py), to which
[you can add a kind](contributing/add-a-kind.md).

| framework | job | what it does | when a rank fails | image | [step](pipelines.md) | [example](examples.md) |
|---|---|---|---|---|---|---|
"""
IMAGES = """
The platform's images, with the frameworks whose jobs each one runs; [images](images.md) lists those with CUDA:

| image | for | has |
|---|---|---|
"""


def values(tree: Tree, version: str) -> None:
    """The contract's images of trainers, and the kinds that the training operator manages."""
    if tree.exists(VALUES) and tree.exists(packages.LIST):
        made = {False: "", True: ""}  # below `images`, and below `cudaImages`
        for name in packages.trainers(tree.root):
            made[name.endswith(packages.CUDA)] += f"      {packages.key(name)}: trainyard/{name}:{version}\n"
        lists = iter(made.values())
        text = re.sub(r"(?:^ {6}trainer\w+: \S+\n)+", lambda _: next(lists), tree.read(VALUES), flags=re.M)
        tree.write(VALUES, text, "images of trainers")
    due = [kind.plural.removesuffix("s") for kind in registry.of_part(registry.OPERATOR)]
    for file in filter(tree.exists, OPERATOR):
        text = re.sub(r"\[[^][]*job\]", lambda match: _schemes(match[0], due), tree.read(file))
        tree.write(file, text, "schemes")


def _schemes(held: str, due: list[str]) -> str:
    """A list in its existing order; new entries come last."""
    names = re.findall(r"\w+", held)
    due = sorted(due, key=lambda name: names.index(name) if name in names else len(names))
    return f"[{', '.join(due)}]"


def examples(tree: Tree) -> Iterator[tuple[str, str]]:
    """Examples of the kinds that a common builder makes, with their text: derived from the PyTorchJob, for two pods."""
    for kind in registry.KINDS if tree.exists(EXAMPLE) else ():
        if kind.builder:
            yield f"manifests/jobs/{kind.file}", _example(kind, tree.read(EXAMPLE))


def _example(kind: registry.Kind, text: str) -> str:
    name, framework = f"mnist-{kind.framework}", kind.kind.removesuffix("Job")
    of_four = text[text.index(f"{' ' * 10}# No node may") : text.index(f"{' ' * 10}securityContext:")]
    swaps = [
        (of_four, ""), ("minAvailable: 4", "minAvailable: 2"), ("all four pods", "both pods"),
        ("mnist-pytorch-master-0", name + kind.lead), ("mnist-pytorch", name), ("pytorchjob", kind.kind.lower()),
        ("PyTorchJob", kind.kind), ("pytorchReplicaSpecs", kind.replicas),
        ("name: pytorch #", f"name: {kind.container} #"), ("trainer-torch", kind.trainer),
        ("train_torch", f"train_{kind.framework}"), ("checkpoint.pt", "a checkpoint"),
        ("its rank, the world size and the master's address", ", ".join(kind.environment)),
        (f"{' ' * 16}- --epochs=2\n", ""),
    ]  # fmt: skip
    if kind.builder == "common.master_job":
        who, more = "a master and a worker", [("replicas: 3", "replicas: 1")]
    else:
        who, more = "two workers", [(text[text.index("    Worker:\n") :], ""), (" &labels", ""), (" &pod", ""),
                                    ("Master:\n      replicas: 1", "Worker:\n      replicas: 2")]  # fmt: skip
    swaps += [*more, (text.partition("\n")[0], f"# Data-parallel training with {framework}: {who} with one GPU each.")]
    if kind.number:
        label = "metadata.labels['training.kubeflow.org/replica-index']"
        number = f'- name: {kind.number}\n{" " * 18}valueFrom: {{fieldRef: {{fieldPath: "{label}"}}}}\n{" " * 16}'
        swaps.append(("- name: S3_ENDPOINT", f"{number}- name: S3_ENDPOINT"))
    for old, new in swaps:
        if old not in text:
            raise TrainyardError(f"the example lacks {old!r}", where=EXAMPLE, hint="update sync/kinds.py")
        text = text.replace(old, new)
    return text


def render(root: Path) -> str:
    """The page."""
    text = HEAD
    for kind in registry.KINDS:
        row = (f"`{kind.framework}`", f"{kind.kind} of {kind.group}", kind.about or "Runs one pod.", kind.restarts,
               f"`{kind.trainer}`", kind.about and f"`{kind.step}`", f"`{kind.file}`")  # fmt: skip
        text += f"| {' | '.join(row)} |\n"
    text += IMAGES
    for name, one in packages.trainers(root).items():
        if "about" in one:
            text += f"| `{name}` | {', '.join(f'`{framework}`' for framework in one['runs'])} | {one['about']} |\n"
    return text
