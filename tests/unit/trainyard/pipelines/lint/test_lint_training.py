"""Training steps: the job that a step of a pipeline would create is checked before the pipeline is sent."""

import shutil
from pathlib import Path

import pytest
import yaml

from trainyard import contract
from trainyard.paths import ROOT
from trainyard.pipelines import lint

SITE = lint.site(contract.load(ROOT / "tests" / "policies" / "teams.yaml"), "vision")


def written(folder: Path, name: str, text: str) -> Path:
    """Writes a pipeline next to the components that it imports."""
    shutil.copytree(ROOT / "pipelines" / "components", folder / "components")
    file = folder / name
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("argument", "code", "field"),
    [
        ("gpus=40", "p08", "gpus"),
        ('queue="speech"', "TY501", "queue"),
        ('priority="system-node-critical"', "TY502", "priority"),
        ('pool="huge"', "TY408", "pool"),
        ('deadline="soon"', "TY104", "deadline"),
    ],
)
def test_what_a_step_would_be_refused_for(tmp_path: Path, argument: str, code: str, field: str) -> None:
    text = (ROOT / "pipelines" / "mnist.py").read_text()
    assert "        gpus=gpus,\n" in text
    file = written(tmp_path, "mnist.py", text.replace("        gpus=gpus,\n", f"        {argument},\n"))
    (found,) = lint.file(file, SITE)
    assert (found.code, found.task, found.field) == (code, "pytorch-job", field)
    assert "pytorch_job(" in text.splitlines()[found.line - 1]


@pytest.mark.parametrize("gpu_images", ["cpu", "cuda"])
def test_the_pipelines_of_the_repository_are_clean(gpu_images: str, tmp_path: Path) -> None:
    """Also where GPUs compute, as the chart has it by default."""
    values = yaml.safe_load((ROOT / "tests" / "policies" / "teams.yaml").read_text())
    values["global"]["contract"]["gpuImages"] = gpu_images
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    site = lint.site(contract.load(tmp_path / "values.yaml"), "vision")
    assert any(pool.cuda for pool in site.contract.pools) == (gpu_images == "cuda")
    for file in sorted((ROOT / "pipelines").glob("*.py")):
        assert lint.file(file, site) == [], file


MPI = """\
from kfp import dsl

from components import mpi_job


@dsl.pipeline(name="ranks")
def ranks():
    mpi_job(command={command!r}, gpus=4)
"""


@pytest.mark.parametrize(
    ("hosts", "code", "says"),
    [("a:4,b:2", "TY104", "the hosts would have 4, 2 ranks"), ("a:4,b:4,c:4", "p08", "12 GPUs"), ("a:4,b:4", "", "")],
)
def test_the_size_that_a_launcher_names_is_the_job_s(tmp_path: Path, hosts: str, code: str, says: str) -> None:
    command = ["horovodrun", "-H", hosts, "python", "train.py"]
    file = written(tmp_path, "ranks.py", MPI.format(command=command))
    found = [one for one in lint.file(file, SITE) if one.severity is lint.Severity.ERROR]
    assert [(one.code, one.task) for one in found] == ([(code, "mpi-job")] if code else [])
    assert all(says in one.reason for one in found), found
