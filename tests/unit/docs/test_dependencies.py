"""`pip install .` installs every package that the product imports.

A check on a cluster can't tell: where there is no index, it shows pip the packages of the laboratory.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

from trainyard.paths import ROOT

PACKAGES = ("trainyard", "trainyard_agent")
OURS = (*PACKAGES, "model_server")
OF_IMAGES = {"pip"}  # which a job's image has; runs nowhere else


def imports(file: Path) -> Iterator[str]:
    """First names of absolute imports, lazy ones and those for types alone included."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def names(requirements: list[str]) -> set[str]:
    """Names of requirements, without those of extras."""
    always = (one for one in requirements if "extra ==" not in one)
    return {normal(re.split(r"[<>=!~ (\[;]", one, maxsplit=1)[0]) for one in always}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def declared() -> set[str]:
    """Distributions that pyproject.toml requires, and their own unconditional requirements."""
    own = names(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    return own.union(*(names(requires(one) or []) for one in own))


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_imported_is_installed_with_it(package: str, declared: set[str]) -> None:
    known = packages_distributions()
    missing = {
        (str(file.relative_to(ROOT)), name)
        for file in (ROOT / "scripts" / package).rglob("*.py")
        for name in imports(file)
        if name not in sys.stdlib_module_names and name not in (*OURS, *OF_IMAGES)
        if not {normal(one) for one in known.get(name, [])} & declared
    }
    assert not missing, f"pyproject.toml doesn't name what these import: {sorted(missing)}"


@pytest.mark.parametrize("module", ["__init__", "contract", "errors"])
def test_the_product_reads_cards_without_the_servers_packages(module: str) -> None:
    """The model server's packages are only in its images."""
    file = ROOT / "scripts" / "model_server" / f"{module}.py"
    others = {name for name in imports(file) if name not in sys.stdlib_module_names}
    assert others <= {"model_server"}
