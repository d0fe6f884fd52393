"""Generated files: pages, steps of pipelines, the product's data about images and chart."""

from collections.abc import Callable
from pathlib import Path

from trainyard.contract import render as contract
from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard.policy.lint import page as lint
from trainyard_dev.bench import page as bench
from trainyard_dev.bench import summary
from trainyard_dev.chart import component_page, reference
from trainyard_dev.images import contents, packages
from trainyard_dev.matrix import page as support
from trainyard_dev.sync import importable, kinds, steps
from trainyard_dev.sync.tree import Tree
from trainyard_dev.versions import read

SCHEMA = "charts/trainyard/values.schema.yaml"
FIGURES = "docs/benchmarks"
# File -> what a tree must have for it to be generated, and the function that generates it.
MADE: dict[str, tuple[str, Callable[[Path], str]]] = {
    "docs/values.md": (SCHEMA, lambda root: reference.render()),
    contract.DEFAULTS.relative_to(ROOT).as_posix(): (SCHEMA, lambda root: contract.text()),
    component_page.PAGE: ("charts/trainyard/component.yaml", lambda root: component_page.render()),
    lint.PAGE: ("policies", lambda root: lint.render()),
    "docs/benchmarks.md": (FIGURES, lambda root: bench.render(summary.read(root / FIGURES))),
    kinds.PAGE: (packages.LIST, kinds.render),
    contents.PAGE: (packages.LIST, contents.render),
    support.PAGE: ("support.yaml", lambda root: support.render(root, read(root))),
    importable.FILE: (importable.FILE, importable.render),
}


def write(tree: Tree) -> None:
    """Regenerates every file whose source exists; a source that can't be read is reported."""
    for file, (source, text) in MADE.items():
        if (tree.root / source).exists():
            try:
                tree.make(file, text(tree.root))
            except TrainyardError as error:
                tree.leave(file, error.what, error.hint)
        elif (tree.root / file).exists():
            tree.leave(file, f"its source {source} is missing", "remove the file, or restore its source")
    made = steps.files(tree.root) if (tree.root / steps.FOLDER).exists() else ()
    for file, content in (*made, *kinds.examples(tree)):
        tree.make(file, content)
